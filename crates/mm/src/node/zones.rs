//! A memory node: zones, their watermarks, and the frames that are free. State that several nodes
//! have in common is in `nodes`.
//!
//! Without a size a node never runs short, and none of this is looked at: then only the limits of
//! memcgs count.
//!
//! Mechanism: `docs/mechanisms.md#zones-and-watermarks`.

use crate::config::node::{MachineMarks, NodeConfig};
use crate::node::boost::Boost;
use crate::node::kswapd::Kswapd;
use crate::node::page_blocks::{MigrateType, PageBlocks};
use crate::node::pcp::{PcpLimits, PerCpuPages, ZoneState};
use crate::node::vm_stat_diff::VmStatDiff;

/// The pool of zone DMA for devices (`atomic_pool_size`): 128 KiB for each GiB, at least 128 KiB.
const DMA_POOL_FRACTION: u64 = 8192;
const DMA_POOL_PAGES: u64 = 32;
/// `lowmem_reserve_ratio`: a lower zone keeps 1/256 of the zones above it.
pub(super) const LOWMEM_RESERVE_RATIO: u64 = 256;

/// Watermark down to which an allocation may take pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AllocWatermark {
    /// The fast path.
    Low,
    /// The slow path.
    Min,
    /// Reclaim itself, and what cannot wait.
    None,
}

/// The watermarks of a zone, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// Free pages below which only reclaim itself may allocate.
    pub min: u64,
    /// Free pages below which kswapd is woken.
    pub low: u64,
    /// Free pages above which kswapd is content.
    pub high: u64,
    /// Free pages above which kswapd is content where promotion wants room.
    pub promo: u64,
}

/// One zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zone {
    pub(crate) name: &'static str,
    pub(crate) managed: u64,
    /// Pages among `managed` that came after marks and reserves were computed.
    pub(super) init: u64,
    pub(crate) free: u64,
    pub(crate) marks: Watermarks,
    /// Pages that allocations which could use higher zones must leave.
    pub(super) reserve: u64,
    /// Frames of no folio, by migratetype: page tables, tree nodes, and frames that the driver
    /// took.
    kernel: [u64; MigrateType::COUNT],
    /// Pages of slabs of buffer heads. Not counted in `kernel`, because each slab knows its zone.
    buffer_slabs: u64,
    /// By CPU: its lists of free frames. Empty: frames are taken and given back singly.
    pcp: Vec<PerCpuPages>,
    pcp_limits: PcpLimits,
    level: VmStatDiff,
    /// An allocation found the zone below its high watermark, and it has not been above since.
    below_high: bool,
    /// Page blocks; none: free pages have no migratetype.
    blocks: Option<PageBlocks>,
    pub(super) boost: Boost,
    pub(super) boost_factor: u32,
}

impl Zone {
    /// The pages that it had when marks and reserves were computed.
    pub(super) fn counted(&self) -> u64 {
        self.managed.saturating_sub(self.init)
    }

    /// Zones and watermarks: free pages beyond the mark, with its boost, and the reserve.
    fn is_above(&self, mark: u64) -> bool {
        self.seen_free() > mark + self.boost.pages + self.reserve
    }

    /// Free pages as marks are compared with them.
    pub(super) fn seen_free(&self) -> u64 {
        self.level.seen(self.free)
    }

    fn state(&self, reclaim_active: bool) -> ZoneState {
        ZoneState { below_high: self.below_high, reclaim_active }
    }

    /// Whether an allocation may take pages here: the zone is above its high mark, or above
    /// `level`. Notes a zone below its high mark, whose per-CPU lists then hold less.
    fn allows(&mut self, level: u64, nr: u64) -> bool {
        if !self.pcp.is_empty() && !self.below_high {
            if self.seen_free() >= self.marks.high + self.boost.pages + self.reserve + nr {
                return self.free >= nr;
            }
            self.below_high = true;
        }
        self.free >= nr && self.seen_free() >= level + nr
    }

    /// Free frames leave the zone for pages of a kind.
    fn pull(&mut self, nr: u64, kind: MigrateType) {
        self.free -= nr;
        let Some(blocks) = &mut self.blocks else { return };
        for _ in 0..nr {
            if blocks.take(kind) {
                self.boost.raise(self.managed, self.marks.high, self.boost_factor);
            }
        }
    }

    /// Frames that pages of a kind had are free.
    fn push(&mut self, nr: u64, kind: MigrateType) {
        self.free += nr;
        if let Some(blocks) = &mut self.blocks {
            (0..nr).for_each(|_| blocks.give_back(kind));
        }
    }

    /// Takes frames, a single one from the list of the CPU.
    fn take(&mut self, nr: u64, cpu: usize, kind: MigrateType) {
        let state = self.state(false);
        let Some(pcp) = self.pcp.get_mut(cpu).filter(|_| nr == 1) else { return self.pull(nr, kind) };
        let more = pcp.refill(&self.pcp_limits, state, kind).min(self.free);
        self.pull(more, kind);
        self.level.note(cpu, -(more as i64));
        let pcp = &mut self.pcp[cpu];
        pcp.count[kind.index()] += more;
        pcp.take(kind);
    }

    /// A single frame is free again, and goes to the list of the CPU.
    fn give_back_one(&mut self, cpu: usize, reclaim_active: bool, kind: MigrateType) {
        let state = self.state(reclaim_active);
        let kind = self.blocks.as_mut().map_or(kind, |b| b.free_to_block(kind));
        let Some(pcp) = self.pcp.get_mut(cpu) else { return self.push(1, kind) };
        let back = pcp.put(&self.pcp_limits, state, kind);
        self.push_from(cpu, back);
        if back.iter().any(|&n| n > 0) && self.below_high && self.is_above(self.marks.high) {
            self.below_high = false;
        }
    }

    /// Frames from the list of a CPU are free in the zone, by kind.
    fn push_from(&mut self, cpu: usize, back: [u64; MigrateType::COUNT]) {
        self.level.note(cpu, back.iter().sum::<u64>() as i64);
        MigrateType::ALL.into_iter().for_each(|kind| self.push(back[kind.index()], kind));
    }

    /// Frames come, or are gone.
    pub(crate) fn resize_blocks(&mut self, more: u64, less: u64) {
        self.blocks.iter_mut().for_each(|b| b.resize(more, less));
    }

    /// Frames on the lists of CPUs.
    fn on_pcp(&self) -> u64 {
        self.pcp.iter().flat_map(|p| p.count).sum()
    }
}

/// State that kswapd and direct reclaim share about a node, and its frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Lowest first; empty: the node has no size.
    pub(crate) zones: Vec<Zone>,
    pub(crate) kswapd: Kswapd,
    /// kswapd makes room for promotion, too.
    balance_to_promo: bool,
    /// `vm.min_free_kbytes` in force, in pages, of the whole machine.
    pub(crate) min_free_pages: u64,
    /// Many dirty folios at the tail: kswapd may write them.
    pub(crate) dirty: bool,
    /// Many folios under writeback at the tail: kswapd waits.
    pub(crate) writeback: bool,
    /// All dirty folios seen were under writeback already: direct reclaim waits a tick.
    pub(crate) congested: bool,
}

impl Node {
    /// A node with its zones, whose watermarks are those of the machine ([`MachineMarks`]).
    pub(crate) fn new(cfg: &NodeConfig, machine: &MachineMarks, balance_to_promo: bool, cpus: usize) -> Node {
        let mut zones = split(cfg);
        zones.last_mut().iter_mut().for_each(|top| top.init = cfg.init_pages);
        set_watermarks(&mut zones, machine);
        for z in zones.iter_mut().filter(|_| cfg.per_cpu_lists) {
            z.pcp = vec![PerCpuPages::default(); cpus];
            z.pcp_limits = PcpLimits::new(z.counted(), z.marks.low, cpus as u64);
            z.level = VmStatDiff::new(z.counted(), cpus);
        }
        for z in zones.iter_mut().filter(|_| cfg.page_blocks) {
            z.blocks = Some(PageBlocks::new(z.managed, z.managed));
            z.boost_factor = cfg.watermark_boost_factor;
        }
        Node { zones, balance_to_promo, min_free_pages: machine.min_pages, ..Node::default() }
    }

    /// Whether the node has zones with marks; a node of a trace replay has no bound.
    #[inline(always)]
    pub(crate) fn is_limited(&self) -> bool {
        !self.zones.is_empty()
    }

    /// Lists that are in use, one a zone.
    pub(crate) fn zone_lists(&self) -> usize {
        self.zones.len().max(1)
    }

    /// Takes `nr` frames from the highest zone above the mark. Returns the zone's index.
    pub(crate) fn take(&mut self, nr: u64, mark: AllocWatermark, cpu: usize, kind: MigrateType) -> Option<usize> {
        let level = |z: &Zone| match mark {
            AllocWatermark::Low => z.marks.low + z.boost.pages + z.reserve,
            AllocWatermark::Min => z.marks.min + z.boost.pages + z.reserve,
            AllocWatermark::None => 0,
        };
        let mut found = self.zones.iter_mut().rposition(|z| z.allows(level(z), nr));
        if found.is_none() && mark == AllocWatermark::None {
            self.drain_pcp();
            found = self.zones.iter_mut().rposition(|z| z.allows(0, nr));
        }
        let i = found?;
        self.zones[i].take(nr, cpu, kind);
        Some(i)
    }

    /// Gives the free pages that CPUs keep for themselves back to the zones.
    pub(crate) fn drain_pcp(&mut self) {
        for z in &mut self.zones {
            for cpu in 0..z.pcp.len() {
                let back = std::mem::take(&mut z.pcp[cpu].count);
                z.push_from(cpu, back);
            }
        }
    }

    /// A while has passed: levels are exact, and lists that are larger than they must be shrink.
    pub(crate) fn decay_pcp(&mut self) {
        for z in &mut self.zones {
            z.level.add_up();
            for cpu in 0..z.pcp.len() {
                let back = z.pcp[cpu].decay(&z.pcp_limits);
                z.push_from(cpu, back);
            }
        }
    }

    /// These frames hold no folio.
    pub(crate) fn note_kernel(&mut self, zone: usize, nr: u64, kind: MigrateType) {
        if let Some(z) = self.zones.get_mut(zone) {
            z.kernel[kind.index()] += nr;
        }
    }

    /// This frame holds buffer heads.
    pub(crate) fn note_buffer_slab(&mut self, zone: usize) {
        if let Some(z) = self.zones.get_mut(zone) {
            z.buffer_slabs += 1;
        }
    }

    /// A frame that held buffer heads is about to be given back.
    pub(crate) fn forget_buffer_slab(&mut self, zone: usize) {
        if let Some(z) = self.zones.get_mut(zone) {
            z.buffer_slabs -= 1;
        }
    }

    /// Frames are free again, or given back unused.
    #[inline]
    pub(crate) fn give_back(&mut self, zone: usize, nr: u64, cpu: usize, kind: MigrateType) {
        let reclaim_active = self.kswapd.awake;
        if let Some(z) = self.zones.get_mut(zone) {
            match nr {
                1 => z.give_back_one(cpu, reclaim_active, kind),
                _ => z.push(nr, kind),
            }
            debug_assert!(z.free <= z.managed, "{} has {} of {} pages free", z.name, z.free, z.managed);
        }
    }

    /// Frees frames that held no folio, of the lowest zones first, where they are missed most.
    /// Returns how many of `nr` the node did not have.
    pub(crate) fn free_kernel_pages(&mut self, mut nr: u64, kind: MigrateType) -> u64 {
        for z in &mut self.zones {
            let here = nr.min(z.kernel[kind.index()]);
            z.kernel[kind.index()] -= here;
            z.push(here, kind);
            nr -= here;
        }
        nr
    }

    /// Takes up to `want` frames for other uses than folios, from the highest zone downwards.
    /// Returns how many it took.
    pub(crate) fn take_kernel(&mut self, want: u64, kind: MigrateType) -> u64 {
        if want > self.free_pages() {
            self.drain_pcp();
        }
        let mut taken = 0;
        for z in self.zones.iter_mut().rev() {
            let here = (want - taken).min(z.free);
            z.pull(here, kind);
            z.kernel[kind.index()] += here;
            taken += here;
        }
        taken
    }

    /// At boot devices get a pool of zone DMA (`atomic_pool_dma`), in its first block. Returns its
    /// pages, a power of two.
    pub(crate) fn take_dma_pool(&mut self, most: u64) -> u64 {
        let pool = (self.managed_pages() / DMA_POOL_FRACTION).clamp(DMA_POOL_PAGES, 1024).next_power_of_two();
        let Some(z) = self.zones.first_mut().filter(|z| z.name == "DMA") else { return 0 };
        if z.pcp.is_empty() && z.blocks.is_none() {
            return 0;
        }
        z.blocks.iter_mut().for_each(|b| b.set_partial_block_type(MigrateType::Unmovable));
        let here = pool.min(most).min(z.free);
        z.pull(here, MigrateType::Unmovable);
        z.kernel[MigrateType::Unmovable.index()] += here;
        here
    }

    /// Free pages that kswapd aims at in a zone (kswapd).
    pub(super) fn balance_mark(&self, z: &Zone) -> u64 {
        if self.balance_to_promo { z.marks.promo } else { z.marks.high }
    }

    /// Promotion: whether some zone has `nr` free pages above its high watermark.
    pub(crate) fn has_room_for_promotion(&self, nr: u64) -> bool {
        self.zones.iter().any(|z| z.is_above(z.marks.high + nr))
    }

    /// Free pages of each zone, and its mark for promotion with the reserve.
    pub(crate) fn promotion_marks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.zones.iter().map(|z| (z.free, z.marks.promo + z.reserve))
    }

    /// All memcgs in turn: every zone has its high mark free for kswapd, its low mark for others.
    pub(crate) fn has_enough(&self, kswapd: bool) -> bool {
        self.zones.iter().all(|z| z.free >= z.boost.pages + if kswapd { z.marks.high } else { z.marks.low })
    }

    /// Direct reclaim: too little is left even for reclaim itself; direct reclaim waits for kswapd.
    pub(crate) fn is_exhausted(&self) -> bool {
        let min: u64 = self.zones.iter().map(|z| z.marks.min).sum();
        self.free_pages() <= min / 2
    }

    /// Free pages in all zones.
    pub(crate) fn free_pages(&self) -> u64 {
        self.zones.iter().map(|z| z.free).sum()
    }

    /// All its frames.
    pub(crate) fn managed_pages(&self) -> u64 {
        self.zones.iter().map(|z| z.managed).sum()
    }

    /// Sum of the high marks.
    pub(crate) fn high_pages(&self) -> u64 {
        self.zones.iter().map(|z| z.marks.high + z.boost.pages).sum()
    }

    /// Out of memory: whether some zone would be above its min mark and reserve with `reclaimable`
    /// pages more free, and `nr` of them taken.
    pub(crate) fn could_meet_min(&self, reclaimable: u64, nr: u64) -> bool {
        self.zones.iter().any(|z| z.free + reclaimable >= z.marks.min + z.reserve + nr)
    }

    /// Every frame is free, a folio's (or about to be), or the kernel's.
    pub(crate) fn validate(&self, folio_pages: u64) -> Result<(), String> {
        let sum = |of: fn(&Zone) -> u64| self.zones.iter().map(of).sum::<u64>();
        let (managed, free, kernel) =
            (sum(|z| z.managed), sum(|z| z.free + z.on_pcp()), sum(|z| z.kernel.iter().sum::<u64>() + z.buffer_slabs));
        for z in &self.zones {
            z.blocks.as_ref().map_or(Ok(()), |b| b.validate(z.free)).map_err(|e| format!("{}: {e}", z.name))?;
            z.level.validate()?;
        }
        if self.is_limited() && managed != free + kernel + folio_pages {
            return Err(format!("node: {managed} frames, {free} free, {kernel} kernel, {folio_pages} of folios"));
        }
        Ok(())
    }
}

/// The zones DMA, DMA32 and Normal, as far as they have pages.
fn split(cfg: &NodeConfig) -> Vec<Zone> {
    let sizes = ["DMA", "DMA32", "Normal"].into_iter().zip(cfg.zone_pages());
    let zone = |(name, managed)| Zone { name, managed, free: managed, ..Zone::default() };
    sizes.filter(|s| s.1 > 0).map(zone).collect()
}

/// Zones and watermarks.
pub(crate) fn set_watermarks(zones: &mut [Zone], machine: &MachineMarks) {
    let mut above = 0;
    for z in zones.iter_mut().rev() {
        let min = (u128::from(machine.min_pages) * u128::from(z.counted()) / u128::from(machine.total)) as u64;
        let gap = (min / 4).max(z.counted() * machine.scale_factor / 10_000);
        z.marks = Watermarks { min, low: min + gap, high: min + 2 * gap, promo: min + 3 * gap };
        z.reserve = above / LOWMEM_RESERVE_RATIO;
        above += z.counted();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ANY_ZONE;

    fn node(pages: u64) -> Node {
        let cfg = NodeConfig::new(pages);
        Node::new(&cfg, &MachineMarks::new(std::slice::from_ref(&cfg)), false, 1)
    }

    #[test]
    fn watermarks_follow_the_formula() {
        // 16 GiB: isqrt(16 · 16777216 kB) = 16384 kB = 4096 pages of minimum, a quarter of each
        // zone's as the gap.
        let n = node(4 << 20);
        let sum = |of: fn(&Watermarks) -> u64| n.zones.iter().map(|z| of(&z.marks)).sum::<u64>();
        assert_eq!(n.zones.len(), 3);
        assert!((4090..=4096).contains(&sum(|m| m.min)), "{}", sum(|m| m.min));
        let normal = &n.zones[2];
        assert_eq!(normal.marks.low - normal.marks.min, (normal.managed / 1000).max(normal.marks.min / 4));
        assert_eq!(normal.marks.high - normal.marks.low, normal.marks.low - normal.marks.min);
        assert_eq!(normal.reserve, 0);
        assert_eq!(n.zones[0].reserve, (n.zones[1].managed + normal.managed) / 256);
    }

    /// Found by random machines: a zone above its high mark may still have too little for a large
    /// folio.
    #[test]
    fn a_large_folio_does_not_take_what_is_not_there() {
        let cfg = NodeConfig { per_cpu_lists: true, low_zones: [0, 0], ..NodeConfig::new(256) };
        let mut n = Node::new(&cfg, &MachineMarks::new(std::slice::from_ref(&cfg)), false, 1);
        assert_eq!(n.take(512, AllocWatermark::Low, 0, MigrateType::Movable), None);
        assert_eq!(n.take(1, AllocWatermark::Low, 0, MigrateType::Movable), Some(0));
        n.validate(1).unwrap();
    }

    /// The level falls and rises by what a CPU moves at a time, and nothing is lost.
    #[test]
    fn cpus_take_and_give_back_many_frames_at_a_time() {
        let cfg = NodeConfig { per_cpu_lists: true, ..NodeConfig::new(1 << 17) };
        let mut n = Node::new(&cfg, &MachineMarks::new(std::slice::from_ref(&cfg)), false, 2);
        let (mut folios, mut steps) = (Vec::new(), Vec::new());
        let mut level = n.free_pages();
        while let Some(zone) = n.take(1, AllocWatermark::Low, folios.len() % 2, MigrateType::Movable) {
            folios.push(zone);
            steps.extend((n.free_pages() != level).then(|| level - n.free_pages()));
            level = n.free_pages();
            n.validate(folios.len() as u64).unwrap();
        }
        assert!(steps.len() * 20 < folios.len(), "{} steps", steps.len());
        let dma32 = &n.zones[1];
        assert!(dma32.free < dma32.marks.low, "a step leads below the mark");
        assert!(n.zones.iter().any(|z| z.on_pcp() > 0));
        n.drain_pcp();
        assert_eq!(n.free_pages() + folios.len() as u64, 1 << 17);
        let nr = folios.len() as u64;
        folios.into_iter().enumerate().for_each(|(i, zone)| n.give_back(zone, 1, i % 2, MigrateType::Movable));
        n.validate(0).unwrap();
        assert!(nr > 0 && n.free_pages() < 1 << 17, "some stay on lists");
    }

    /// The level of zone DMA moves by three from what the pool leaves.
    #[test]
    fn devices_have_their_pool_where_levels_are_a_kernels() {
        for (lists, pages, pool) in [(true, 1 << 17, 32), (true, 505_498, 64), (false, 1 << 17, 0)] {
            let cfg = NodeConfig { per_cpu_lists: lists, ..NodeConfig::new(pages) };
            let mut n = Node::new(&cfg, &MachineMarks::new(std::slice::from_ref(&cfg)), false, 1);
            assert_eq!((n.take_dma_pool(1000), n.zones[0].seen_free()), (pool, n.zones[0].managed - pool));
            n.validate(0).unwrap();
        }
    }

    #[test]
    fn frames_come_from_the_highest_zone_and_go_back_where_they_came_from() {
        let mut n = node(2 << 20);
        let before: Vec<u64> = n.zones.iter().map(|z| z.free).collect();
        let mut folios = Vec::new();
        while let Some(zone) = n.take(1, AllocWatermark::Low, 0, MigrateType::Movable) {
            folios.push(zone);
        }
        assert!(n.zones.iter().all(|z| z.free <= z.marks.low + z.reserve));
        assert!(!n.is_balanced(ANY_ZONE));
        n.validate(folios.len() as u64).unwrap();
        let zone = n.take(1, AllocWatermark::Min, 0, MigrateType::Movable).expect("there is room between the marks");
        n.give_back(zone, 1, 0, MigrateType::Movable);
        folios.into_iter().for_each(|zone| n.give_back(zone, 1, 0, MigrateType::Movable));
        assert_eq!(before, n.zones.iter().map(|z| z.free).collect::<Vec<_>>());
        assert!(n.is_balanced(ANY_ZONE));
    }
}
