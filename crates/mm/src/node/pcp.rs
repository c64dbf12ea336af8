//! Per-CPU lists of free pages: a CPU takes frames of a zone, and gives them back, many at a time.
//!
//! The watermarks are compared with what the zone itself has free, so the level falls and rises in
//! steps, and frames on the lists of other CPUs are of no use to a CPU that finds none.
//!
//! A list is of a kind of pages, and all lists together are bounded.
//!
//! Mechanism: `docs/mechanisms.md#per-cpu-lists-of-free-pages`.

use crate::node::page_blocks::MigrateType;

/// `CONFIG_PCP_BATCH_SCALE_MAX`: log2 of the batches that are moved at a time at most.
const BATCH_SCALE_MAX: u32 = 5;
/// `MIN_PERCPU_PAGELIST_HIGH_FRACTION`: all CPUs' lists of a zone hold at most an eighth of its
/// pages.
const HIGH_FRACTION: u64 = 8;
/// A batch is about a 4,096th of the zone's pages, at most a quarter of a MiB, and one less than a
/// power of two. Before the division by 4: the share of the zone, and the most pages.
const BATCH_FRACTION: u64 = 1024;
const MAX_BATCH_PAGES: u64 = 256;
/// Nanoseconds between two looks at lists that are not used (`vm.stat_interval`).
pub(crate) const DECAY_INTERVAL_NS: u64 = 1_000_000_000;

/// The bounds of the lists of a zone, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PcpLimits {
    batch: u64,
    high_min: u64,
    high_max: u64,
}

impl PcpLimits {
    /// The limits of a zone from its managed pages, its low watermark (pages), and the CPUs that
    /// use it.
    pub(crate) fn new(managed: u64, low_mark: u64, cpus: u64) -> PcpLimits {
        let quarter = ((managed / BATCH_FRACTION).min(MAX_BATCH_PAGES) / 4).max(1);
        let around = quarter + quarter / 2;
        let batch = ((1 << around.ilog2()) - 1).max(1);
        let share = |pages: u64| (pages / cpus.max(1)).max(batch << 2);
        // The low mark of a tiny zone is above an eighth of it.
        let high_min = share(low_mark);
        PcpLimits { batch, high_min, high_max: share(managed / HIGH_FRACTION).max(high_min) }
    }
}

/// State of a zone and its reclaim that its lists depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneState {
    /// An allocation found the zone below its high watermark, and it has not been above since.
    pub(crate) below_high: bool,
    /// kswapd is reclaiming from the zone.
    pub(crate) reclaim_active: bool,
}

/// The lists of one CPU in one zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerCpuPages {
    /// Frames on the lists, by migratetype.
    pub(crate) count: [u64; MigrateType::COUNT],
    /// Most frames that the lists may hold.
    high: u64,
    /// log2 of the batches that the next refill takes.
    alloc_factor: u32,
    /// Frames given back lately: halved by each frame that is taken.
    free_count: u64,
}

impl PerCpuPages {
    fn total(&self) -> u64 {
        self.count.iter().sum()
    }

    /// Frames that the zone should hand over before one is taken off the list of `kind`.
    pub(crate) fn refill(&mut self, limits: &PcpLimits, zone: ZoneState, kind: MigrateType) -> u64 {
        if self.count[kind.index()] > 0 {
            return 0;
        }
        let PcpLimits { batch: base, high_min, high_max } = *limits;
        let mut batch = base << self.alloc_factor;
        self.high = self.high.clamp(high_min, high_max);
        if self.high < base {
            return 1;
        }
        if !zone.below_high {
            self.high = (self.high + batch).min(high_max);
        }
        let most = self.high.saturating_sub(base + self.total()).max(base);
        if batch <= most && self.alloc_factor < BATCH_SCALE_MAX {
            self.alloc_factor += 1;
        }
        batch = batch.min(most);
        batch.max(1)
    }

    /// Takes a frame from the list.
    pub(crate) fn take(&mut self, kind: MigrateType) {
        self.count[kind.index()] -= 1;
        self.free_count /= 2;
    }

    /// Puts a freed frame on its list. Returns the frames of each migratetype that go on to the
    /// zone.
    pub(crate) fn put(&mut self, limits: &PcpLimits, zone: ZoneState, kind: MigrateType) -> [u64; MigrateType::COUNT] {
        self.alloc_factor /= 2;
        self.count[kind.index()] += 1;
        if self.free_count < limits.batch << BATCH_SCALE_MAX {
            self.free_count += 1;
        }
        let high = self.high_for_free(limits, zone);
        if self.total() < high {
            return [0; MigrateType::COUNT];
        }
        let nr = match high.checked_sub(limits.batch) {
            None => 1,
            Some(most) => self.free_count.max(limits.batch).min(most.max(1)),
        };
        self.hand_over(nr, kind)
    }

    /// Takes `nr` frames off the lists, one list after the other, beginning with `first`. Returns
    /// them by migratetype.
    fn hand_over(&mut self, mut nr: u64, first: MigrateType) -> [u64; MigrateType::COUNT] {
        let mut back = [0; MigrateType::COUNT];
        for i in (0..MigrateType::COUNT).map(|i| (first.index() + i) % MigrateType::COUNT) {
            back[i] = nr.min(self.count[i]);
            self.count[i] -= back[i];
            nr -= back[i];
        }
        back
    }

    /// Frames that may stay on the lists: few while kswapd works, fewer and fewer while the zone is
    /// short.
    fn high_for_free(&mut self, limits: &PcpLimits, zone: ZoneState) -> u64 {
        let PcpLimits { batch, high_min, high_max } = *limits;
        self.high = self.high.clamp(high_min, high_max);
        let lowered = |high: u64, by: u64| high.saturating_sub(by).max(high_min);
        if zone.reclaim_active {
            self.high = lowered(self.high, self.free_count.max(batch));
            return (batch << 2).min(self.high);
        }
        if zone.below_high {
            self.high = lowered(self.high, self.free_count.max(batch));
            return self.total().max(high_min);
        }
        let high = self.high;
        if self.total() >= high && self.high < self.free_count + batch {
            // Large enough for what comes back in a row.
            self.high = (self.free_count + batch).clamp(high_min, high_max);
        }
        high
    }

    /// Shrinks lists that are larger than they must be. Returns the frames of each migratetype that
    /// go back to the zone.
    pub(crate) fn decay(&mut self, limits: &PcpLimits) -> [u64; MigrateType::COUNT] {
        if self.high > limits.high_min {
            let slowly = self.high - self.high / 8;
            let at_once = self.total().saturating_sub(limits.batch << BATCH_SCALE_MAX);
            self.high = at_once.max(slowly).max(limits.high_min);
        }
        let nr = self.total().saturating_sub(self.high.max(limits.high_min));
        self.hand_over(nr, MigrateType::Unmovable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::{MachineMarks, NodeConfig};
    use crate::node::zones::{AllocWatermark, Node};

    const M: MigrateType = MigrateType::Movable;

    fn all(back: [u64; MigrateType::COUNT]) -> u64 {
        back.iter().sum()
    }

    const QUIET: ZoneState = ZoneState { below_high: false, reclaim_active: false };
    const SHORT: ZoneState = ZoneState { below_high: true, reclaim_active: false };
    const RECLAIM: ZoneState = ZoneState { below_high: true, reclaim_active: true };

    /// As `/proc/zoneinfo` of a guest of 512 MiB shows them.
    #[test]
    fn limits_are_those_of_a_guest() {
        let dma32 = PcpLimits::new(115_094, 825, 2);
        assert_eq!(dma32, PcpLimits { batch: 31, high_min: 412, high_max: 115_094 / 8 / 2 });
        assert_eq!(PcpLimits::new(3840, 27, 2).batch, 1);
    }

    #[test]
    fn a_cpu_that_only_allocates_takes_more_each_time_up_to_its_bound() {
        let limits = PcpLimits::new(115_094, 825, 1);
        let mut pcp = PerCpuPages::default();
        let mut taken = Vec::new();
        for _ in 0..7 {
            let nr = pcp.refill(&limits, SHORT, M);
            taken.push(nr);
            pcp.count = [0, nr, 0];
            (0..nr).for_each(|_| pcp.take(M));
        }
        assert_eq!(taken, [31, 62, 124, 248, 496, 794, 794]);
        assert_eq!(all(pcp.put(&limits, SHORT, M)), 0);
        assert_eq!(pcp.refill(&limits, SHORT, M), 0, "there is one");
        pcp.take(M);
        assert_eq!(pcp.refill(&limits, SHORT, M), 31 << 2, "frames that come back halve the factor");
    }

    #[test]
    fn little_stays_on_a_list_while_kswapd_works() {
        let limits = PcpLimits::new(115_094, 825, 2);
        let mut pcp = PerCpuPages::default();
        let back: u64 = (0..1000).map(|_| all(pcp.put(&limits, RECLAIM, M))).sum();
        assert!(pcp.total() < 4 * limits.batch && back + pcp.total() == 1000, "{pcp:?}");
        // Without it the list fills up.
        let mut pcp = PerCpuPages::default();
        let back: u64 = (0..400).map(|_| all(pcp.put(&limits, QUIET, M))).sum();
        assert_eq!((back, pcp.total()), (0, 400));
    }

    #[test]
    fn a_list_that_is_not_used_shrinks() {
        let limits = PcpLimits::new(115_094, 825, 2);
        let mut pcp = PerCpuPages { count: [0, 3000, 0], high: 4000, ..PerCpuPages::default() };
        assert_eq!(all(pcp.decay(&limits)), 0);
        let back: u64 = (0..60).map(|_| all(pcp.decay(&limits))).sum();
        assert_eq!((pcp.high, pcp.total(), back), (limits.high_min, limits.high_min, 3000 - limits.high_min));
    }

    /// Pages that a system call takes and gives back leave a batch on a list of their own, from
    /// which no folio takes. With it lists are full sooner, and the zone sees more of what kswapd
    /// frees.
    #[test]
    fn lists_are_by_kind_and_full_together() {
        let cfg = NodeConfig { per_cpu_lists: true, ..NodeConfig::new(1 << 17) };
        let machine = MachineMarks::new(std::slice::from_ref(&cfg));
        let seen = |borrows: bool| {
            let mut n = Node::new(&cfg, &machine, false, 1);
            let mut folios: Vec<usize> = (0..3100).map_while(|_| n.take(1, AllocWatermark::Low, 0, M)).collect();
            for fills in [true, false].into_iter().filter(|_| borrows) {
                let before = n.free_pages();
                let zone = n.take(1, AllocWatermark::Low, 0, MigrateType::Unmovable).unwrap();
                n.give_back(zone, 1, 0, MigrateType::Unmovable);
                assert_eq!(before - n.free_pages() >= 31, fills, "a list of its own, that no folio takes from");
            }
            assert_eq!(folios.len(), 3100);
            n.kswapd.awake = true;
            let before = n.free_pages();
            folios.drain(..277).for_each(|zone| n.give_back(zone, 1, 0, M));
            n.free_pages() - before
        };
        let (with, without) = (seen(true), seen(false));
        assert!(with > without, "of 277 pages the zone sees {with}, and {without} where nothing lies apart");
    }
}
