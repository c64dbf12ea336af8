//! A memory node: zones, their watermarks, and the frames that are free. What several nodes have in
//! common is in `nodes`.
//!
//! Without a size a node never runs short, and none of this is looked at: then only the limits of
//! memcgs count.
//!
//! Mechanism: `docs/mechanisms.md#zones-and-watermarks`.

use crate::config::node::{MachineMarks, NodeConfig};
use crate::node::kswapd::Kswapd;

/// `lowmem_reserve_ratio`: a lower zone keeps 1/256 of the zones above it.
const LOWMEM_RESERVE_RATIO: u64 = 256;

/// How far an allocation may go down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
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
    /// Below it only reclaim itself may allocate.
    pub min: u64,
    /// Below it kswapd is woken.
    pub low: u64,
    /// Above it kswapd is content.
    pub high: u64,
    /// Above it kswapd is content where promotion wants room.
    pub promo: u64,
}

/// One zone.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    pub(crate) name: &'static str,
    pub(crate) managed: u64,
    pub(crate) free: u64,
    pub(crate) marks: Watermarks,
    /// Pages that allocations which could use higher zones must leave.
    reserve: u64,
    /// Taken for page tables, tree nodes and what the driver takes: they belong to no folio.
    kernel: u64,
}

impl Zone {
    /// Zones and watermarks: free pages beyond the mark and the reserve.
    fn is_above(&self, mark: u64) -> bool {
        self.free > mark + self.reserve
    }
}

/// What kswapd and direct reclaim tell each other about a node, and its frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Lowest first; empty: the node has no size.
    pub(crate) zones: Vec<Zone>,
    pub(crate) kswapd: Kswapd,
    /// kswapd makes room for promotion, too.
    balance_to_promo: bool,
    /// Many dirty folios at the tail: kswapd may write them.
    pub(crate) dirty: bool,
    /// Many folios under writeback at the tail: kswapd waits.
    pub(crate) writeback: bool,
    /// All dirty folios seen were under writeback already: direct reclaim waits a tick.
    pub(crate) congested: bool,
}

impl Node {
    /// A node with its zones, whose watermarks are those of the machine ([`MachineMarks`]).
    pub(crate) fn new(cfg: &NodeConfig, machine: &MachineMarks, balance_to_promo: bool) -> Node {
        let mut zones = split(cfg.pages, cfg.low_zones);
        set_watermarks(&mut zones, machine);
        Node { zones, balance_to_promo, ..Node::default() }
    }

    /// Whether it has a size.
    #[inline(always)]
    pub(crate) fn is_limited(&self) -> bool {
        !self.zones.is_empty()
    }

    /// Lists that are in use, one a zone.
    pub(crate) fn zone_lists(&self) -> usize {
        self.zones.len().max(1)
    }

    /// Frames from the highest zone that has more than the mark; which one.
    pub(crate) fn take(&mut self, nr: u64, mark: Mark) -> Option<usize> {
        let level = |z: &Zone| match mark {
            Mark::Low => z.marks.low,
            Mark::Min => z.marks.min,
            Mark::None => 0,
        };
        let reserve = |z: &Zone| if mark == Mark::None { 0 } else { z.reserve };
        let i = self.zones.iter().rposition(|z| z.free >= level(z) + reserve(z) + nr)?;
        self.zones[i].free -= nr;
        debug_assert!(mark == Mark::None || self.zones[i].free >= level(&self.zones[i]), "the mark was met");
        Some(i)
    }

    /// These frames hold no folio.
    pub(crate) fn note_kernel(&mut self, zone: usize, nr: u64) {
        if let Some(z) = self.zones.get_mut(zone) {
            z.kernel += nr;
        }
    }

    /// Frames are free again, or given back unused.
    #[inline]
    pub(crate) fn give_back(&mut self, zone: usize, nr: u64) {
        if let Some(z) = self.zones.get_mut(zone) {
            z.free += nr;
            debug_assert!(z.free <= z.managed, "{} has {} of {} pages free", z.name, z.free, z.managed);
        }
    }

    /// Frames without a folio are free again; the lowest zones first, where they are missed most.
    /// Returns how many there were not here.
    pub(crate) fn free_kernel(&mut self, mut nr: u64) -> u64 {
        for z in &mut self.zones {
            let here = nr.min(z.kernel);
            z.kernel -= here;
            z.free += here;
            nr -= here;
        }
        nr
    }

    /// Takes up to so many frames for what is no folio, from the highest zone downwards, as far as
    /// each goes. Returns how many.
    pub(crate) fn take_kernel(&mut self, want: u64) -> u64 {
        let mut taken = 0;
        for z in self.zones.iter_mut().rev() {
            let here = (want - taken).min(z.free);
            z.free -= here;
            z.kernel += here;
            taken += here;
        }
        taken
    }

    /// What kswapd aims at in a zone (kswapd).
    fn balance_mark(&self, z: &Zone) -> u64 {
        if self.balance_to_promo { z.marks.promo } else { z.marks.high }
    }

    /// kswapd: some zone is above what kswapd aims at.
    pub(crate) fn is_balanced(&self) -> bool {
        self.zones.iter().any(|z| z.is_above(self.balance_mark(z)))
    }

    /// Every zone is above that by so much (Multi-gen eviction).
    pub(crate) fn is_safe(&self, beyond: u64) -> bool {
        self.zones.iter().all(|z| z.is_above(self.balance_mark(z) + beyond))
    }

    /// Promotion: some zone has so many pages above its high mark.
    pub(crate) fn has_room_for_promotion(&self, nr: u64) -> bool {
        self.zones.iter().any(|z| z.is_above(z.marks.high + nr))
    }

    /// Free pages of each zone, and its mark for promotion with the reserve.
    pub(crate) fn promotion_marks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.zones.iter().map(|z| (z.free, z.marks.promo + z.reserve))
    }

    /// All memcgs in turn: every zone has its high mark free for kswapd, its low mark for others.
    pub(crate) fn has_enough(&self, kswapd: bool) -> bool {
        self.zones.iter().all(|z| z.free >= if kswapd { z.marks.high } else { z.marks.low })
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
        self.zones.iter().map(|z| z.marks.high).sum()
    }

    /// What a kswapd run aims at (kswapd).
    pub(crate) fn kswapd_target(&self, cluster: u64) -> u64 {
        self.zones.iter().map(|z| z.marks.high.max(cluster)).sum()
    }

    /// Out of memory: whether some zone would meet its minimum with so many pages more.
    pub(crate) fn could_meet_min(&self, reclaimable: u64, nr: u64) -> bool {
        self.zones.iter().any(|z| z.free + reclaimable >= z.marks.min + z.reserve + nr)
    }

    /// Every frame is free, a folio's (or about to be), or the kernel's.
    pub(crate) fn validate(&self, folio_pages: u64) -> Result<(), String> {
        let sum = |of: fn(&Zone) -> u64| self.zones.iter().map(of).sum::<u64>();
        let (managed, free, kernel) = (sum(|z| z.managed), sum(|z| z.free), sum(|z| z.kernel));
        if self.is_limited() && managed != free + kernel + folio_pages {
            return Err(format!("node: {managed} frames, {free} free, {kernel} kernel, {folio_pages} of folios"));
        }
        Ok(())
    }
}

/// DMA, DMA32 and Normal, those that have pages.
fn split(pages: u64, [dma, dma32]: [u64; 2]) -> Vec<Zone> {
    let dma = dma.min(pages / 8);
    let dma32 = (pages - dma).min(dma32);
    let sizes = [("DMA", dma), ("DMA32", dma32), ("Normal", pages - dma - dma32)];
    let zone =
        |(name, managed)| Zone { name, managed, free: managed, marks: Watermarks::default(), reserve: 0, kernel: 0 };
    sizes.into_iter().filter(|s| s.1 > 0).map(zone).collect()
}

/// Zones and watermarks.
pub(crate) fn set_watermarks(zones: &mut [Zone], machine: &MachineMarks) {
    let mut above = 0;
    for z in zones.iter_mut().rev() {
        let min = (u128::from(machine.min_pages) * u128::from(z.managed) / u128::from(machine.total)) as u64;
        let gap = (min / 4).max(z.managed * machine.scale_factor / 10_000);
        z.marks = Watermarks { min, low: min + gap, high: min + 2 * gap, promo: min + 3 * gap };
        z.reserve = above / LOWMEM_RESERVE_RATIO;
        above += z.managed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(pages: u64) -> Node {
        let cfg = NodeConfig::new(pages);
        Node::new(&cfg, &MachineMarks::new(std::slice::from_ref(&cfg)), false)
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

    #[test]
    fn frames_come_from_the_highest_zone_and_go_back_where_they_came_from() {
        let mut n = node(2 << 20);
        let before: Vec<u64> = n.zones.iter().map(|z| z.free).collect();
        let mut folios = Vec::new();
        while let Some(zone) = n.take(1, Mark::Low) {
            folios.push(zone);
        }
        assert!(n.zones.iter().all(|z| z.free <= z.marks.low + z.reserve));
        assert!(!n.is_balanced());
        n.validate(folios.len() as u64).unwrap();
        let zone = n.take(1, Mark::Min).expect("there is room between the marks");
        n.give_back(zone, 1);
        folios.into_iter().for_each(|zone| n.give_back(zone, 1));
        assert_eq!(before, n.zones.iter().map(|z| z.free).collect::<Vec<_>>());
        assert!(n.is_balanced());
    }
}
