//! The cost of a size, as far as a recording tells.
//!
//! Attached to a warm service in a tight limit, a recording sees pages come in that a larger limit
//! might have kept from before. Their first touches are *open*: misses at most, hits at best. From
//! the moment at which the engine has filled the size that is tried nothing is open any more, so
//! that the rate after it is the rate of that size; it also says which part of the open misses
//! before it were misses. A size that is never filled has bounds alone.

use super::count::{Compared, MissCosts};

/// Share of all accesses, one in this many, that must follow the filling of a size, for their miss
/// rate to hold for the accesses before.
const LEAST_SETTLED: u64 = 5;

/// A count that is between two bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Lower bound.
    pub low: u64,
    /// Most likely value; equal to `high` where nothing speaks for one.
    pub best: u64,
    /// Upper bound.
    pub high: u64,
}

/// The costs of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Accesses compared.
    pub accesses: u64,
    /// Misses.
    pub misses: Interval,
    /// Refaults of files.
    pub refaults: Interval,
    /// Pages read from disks.
    pub read_pages: Interval,
    /// Requests to disks.
    pub reads: Interval,
    /// Accesses to pages that may or may not have been in memory: the recording does not say.
    pub first_touches: u64,
    /// Share of accesses, 0 to 1, after this size was filled; 1: nothing is left open.
    pub settled: f64,
    /// Whether too few accesses follow the filling: bounds are known, but no best value.
    pub is_bounds_only: bool,
}

impl Interval {
    /// Interval of a count `all`: of `open` in it, the share `real` most likely happened.
    fn new(all: u64, open: u64, real: f64) -> Interval {
        let low = all.saturating_sub(open);
        Interval { low, best: low + ((all - low) as f64 * real).round() as u64, high: all }
    }
}

impl Estimate {
    /// Estimate of a replay.
    pub fn of(compared: &Compared) -> Estimate {
        let count = |name: &str| compared.ours.get(name).copied().unwrap_or(0);
        let refaults = count("workingset_refault_file") + count("workingset_refault_anon");
        let (total, MissCosts { misses, .. }) = (&compared.total, compared.open);
        let settled = compared.settled.0;
        let is_bounds_only = misses > 0 && settled.saturating_mul(LEAST_SETTLED) < total.accesses;
        let real = if is_bounds_only { 1.0 } else { real_part(compared) };
        Estimate {
            accesses: total.accesses,
            misses: Interval::new(total.lab_misses, misses, real),
            refaults: Interval::new(refaults, compared.open.refaults, real),
            read_pages: Interval::new(compared.lab_reads.read_pages, compared.open.read_pages, real),
            reads: Interval::new(compared.lab_reads.reads, compared.open.reads, real),
            first_touches: misses,
            settled: if misses == 0 { 1.0 } else { settled as f64 / total.accesses.max(1) as f64 },
            is_bounds_only,
        }
    }

    /// The hit rate, 0 to 1, at the least, most likely, and at best.
    pub fn hit_rate(&self) -> (f64, f64, f64) {
        let rate = |misses: u64| self.accesses.saturating_sub(misses) as f64 / self.accesses.max(1) as f64;
        (rate(self.misses.high), rate(self.misses.best), rate(self.misses.low))
    }
}

/// Share of the open misses, 0 to 1, that are real if the accesses before the filling of a size
/// miss at the rate of the accesses after it.
fn real_part(compared: &Compared) -> f64 {
    let (settled, settled_misses) = compared.settled;
    let before = compared.total.accesses.saturating_sub(settled) as f64;
    let rate = settled_misses as f64 / settled.max(1) as f64;
    let known = compared.total.lab_misses.saturating_sub(settled_misses + compared.open.misses);
    let real = (before * rate - known as f64) / compared.open.misses.max(1) as f64;
    real.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::count::Agreement;
    use super::*;

    fn compared(settled: (u64, u64), misses: u64, open: u64) -> Compared {
        let mut compared = Compared::default();
        compared.total = Agreement { accesses: 1000, lab_misses: misses, ..Agreement::default() };
        compared.settled = settled;
        compared.open = MissCosts { misses: open, ..MissCosts::default() };
        compared
    }

    #[test]
    fn nothing_open_is_exact() {
        let estimate = Estimate::of(&compared((1000, 300), 300, 0));
        assert!(estimate.misses.low == estimate.misses.high && !estimate.is_bounds_only);
        assert_eq!((estimate.hit_rate(), estimate.settled), ((0.7, 0.7, 0.7), 1.0));
    }

    #[test]
    fn the_rate_after_a_size_was_filled_stands_for_what_was_before() {
        // 600 accesses miss at 20 %; of 400 before them 200 missed, 150 of these at a first touch.
        let estimate = Estimate::of(&compared((600, 120), 320, 150));
        assert_eq!(estimate.misses, Interval { low: 170, best: 200, high: 320 });
        // Before it more were known to miss, and fewer can have: the bounds hold.
        assert_eq!(Estimate::of(&compared((600, 0), 320, 150)).misses.best, 170);
        assert_eq!(Estimate::of(&compared((600, 600), 900, 150)).misses.best, 900);
    }

    #[test]
    fn a_size_that_is_hardly_filled_has_bounds() {
        let estimate = Estimate::of(&compared((100, 10), 320, 150));
        assert_eq!(estimate.misses, Interval { low: 170, best: 320, high: 320 });
        assert!(estimate.is_bounds_only);
    }
}
