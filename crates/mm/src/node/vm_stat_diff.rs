//! The level of a zone as watermarks see it: CPUs add what they took and gave back to the count of
//! free pages only now and then, so it lags (`vm_stat_diff`, `stat_threshold`).
//!
//! Mechanism: `docs/mechanisms.md#per-cpu-lists-of-free-pages`.

/// `MAX_THRESHOLD`, in pages.
const MOST: u64 = 125;
/// Pages to units of 128 MiB, as a shift: the threshold grows with the units of the zone.
const CHUNK_SHIFT: u32 = 15;

/// Counts of pages that CPUs have not added yet; empty: the count is exact.
#[derive(Clone, Debug, Default)]
pub(super) struct VmStatDiff {
    threshold: i64,
    unseen: Vec<i64>,
    /// Sum of `unseen` over all CPUs, in pages.
    sum: i64,
}

impl VmStatDiff {
    /// No pages to add yet. The threshold grows with the zone's managed pages and with the CPUs.
    pub(super) fn new(managed: u64, cpus: usize) -> VmStatDiff {
        let bits = |n: u64| u64::from(u64::BITS - n.leading_zeros());
        let threshold = 2 * bits(cpus as u64) * (1 + bits(managed >> CHUNK_SHIFT));
        VmStatDiff { threshold: threshold.min(MOST) as i64, unseen: vec![0; cpus], sum: 0 }
    }

    /// Notes pages that a CPU gave back or, if negative, took, one by one: a count that exceeds the
    /// threshold is added to the zone's.
    pub(super) fn note(&mut self, cpu: usize, pages: i64) {
        if let Some(unseen) = self.unseen.get_mut(cpu) {
            let before = std::mem::replace(unseen, (*unseen + pages) % (self.threshold + 1));
            self.sum += *unseen - before;
        }
    }

    /// Adds the counts of all CPUs to the zone's (`refresh_cpu_vm_stats`).
    pub(super) fn add_up(&mut self) {
        self.unseen.fill(0);
        self.sum = 0;
    }

    /// Free pages that watermarks see in a zone with `free` free pages.
    #[inline]
    pub(super) fn seen(&self, free: u64) -> u64 {
        free.saturating_add_signed(-self.sum)
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if self.sum != self.unseen.iter().sum() {
            return Err(format!("{:?} free pages that CPUs have not added are {}", self.unseen, self.sum));
        }
        match self.unseen.iter().find(|n| n.abs() > self.threshold) {
            Some(n) => Err(format!("a CPU has not added {n} free pages, with a threshold of {}", self.threshold)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `/proc/zoneinfo` of a guest of 512 MiB with one CPU shows them.
    #[test]
    fn thresholds_are_those_of_a_guest() {
        assert_eq!(VmStatDiff::new(3840, 1).threshold, 2);
        assert_eq!(VmStatDiff::new(115_162, 1).threshold, 6);
        assert_eq!(VmStatDiff::new(1 << 30, 4096).threshold, 125);
    }

    #[test]
    fn the_level_moves_by_one_more_than_the_threshold() {
        let mut level = VmStatDiff::new(3840, 1);
        let mut free = 480;
        let mut seen = Vec::new();
        for _ in 0..7 {
            free -= 1;
            level.note(0, -1);
            seen.push(level.seen(free));
        }
        assert_eq!(seen, [480, 480, 477, 477, 477, 474, 474]);
        // Pages that come back make up for those that were taken and not added yet.
        level.note(0, 3);
        assert_eq!(level.seen(free + 3), 474);
        level.note(0, 1);
        assert_eq!(level.seen(free + 4), 477);
        level.note(0, 31);
        assert_eq!((level.seen(free + 35), level.validate()), (477 + 30, Ok(())));
        assert_eq!(VmStatDiff::default().seen(7), 7);
    }

    /// From then on it moves from where it was seen.
    #[test]
    fn what_is_added_up_is_seen() {
        let mut level = VmStatDiff::new(3840, 1);
        level.note(0, -2);
        assert_eq!(level.seen(478), 480);
        level.add_up();
        assert_eq!((level.seen(478), level.validate()), (478, Ok(())));
        level.note(0, -2);
        assert_eq!(level.seen(476), 478);
        level.note(0, -1);
        assert_eq!(level.seen(475), 475);
    }
}
