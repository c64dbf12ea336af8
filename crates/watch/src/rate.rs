//! The rate of a sample by a budget of processor time and memory, and what the watcher takes of it.

use std::fs;

/// Nanoseconds from one look at what the watcher takes to the next.
pub(crate) const PERIOD_NS: u64 = 10_000_000_000;

/// Pages of a page of the sample at most and at least: a filter of the kernel takes no smaller
/// sample, and events of a larger one cost the programs that are watched.
const ONE_IN: (u64, u64) = (256, 16);

/// Share of a budget below which twice the sample will be inside of it.
const ROOM: f64 = 0.4;

/// Periods below that share before the sample grows, at first and at most.
const CALM: (u32, u32) = (6, 96);

/// Shares that a watcher may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Processor time, as a share of one CPU; none: the rate stays as it is.
    pub cpu: Option<f64>,
    /// Resident memory of the watcher, in bytes.
    pub memory_bytes: u64,
}

/// Time and memory that a watcher took in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// Processor time, as a share of one CPU.
    pub cpu: f64,
    /// Resident memory in bytes.
    pub memory_bytes: u64,
}

/// Control of the rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateControl {
    budget: Budget,
    over: u32,
    calm: u32,
    /// Calm periods before the sample grows: more each time that it had to shrink after it grew.
    wanted: u32,
    has_grown: bool,
}

impl RateControl {
    pub(crate) fn new(budget: Budget) -> RateControl {
        RateControl { budget, over: 0, calm: 0, wanted: CALM.0, has_grown: false }
    }

    /// The rate after a period; none: it stays. One period beyond the budget may be an accident,
    /// two are not.
    pub(crate) fn next(&mut self, one_in: u64, taken: Taken) -> Option<u64> {
        let cpu = taken.cpu / self.budget.cpu?.max(1e-9);
        let memory = taken.memory_bytes as f64 / self.budget.memory_bytes.max(1) as f64;
        self.over = if cpu > 1.0 || memory > 1.0 { self.over + 1 } else { 0 };
        self.calm = if cpu < ROOM && memory < 2.0 * ROOM { self.calm + 1 } else { 0 };
        let (most, least) = ONE_IN;
        if (self.over > 1 || cpu > 2.0) && one_in < most {
            self.over = 0;
            if std::mem::take(&mut self.has_grown) {
                self.wanted = (self.wanted * 2).min(CALM.1);
            }
            return Some(one_in * 2);
        }
        if self.calm < self.wanted || one_in <= least {
            return None;
        }
        (self.calm, self.has_grown) = (0, true);
        Some(one_in / 2)
    }
}

/// Processor time of this process so far in nanoseconds, and its resident memory in bytes.
pub(crate) fn own() -> (u64, u64) {
    let text = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let resident = text("statm").split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    (cpu_ns(&text("schedstat"), &text("stat")), resident * 4096)
}

/// Nanoseconds by the scheduler's own count of the only thread, or in ticks of 10 ms.
fn cpu_ns(schedstat: &str, stat: &str) -> u64 {
    let exact = schedstat.split(' ').next().and_then(|n| n.parse().ok()).filter(|&ns| ns > 0);
    let ticks = || {
        // The name in parentheses may have blanks.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        rest.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum::<u64>()
    };
    exact.unwrap_or_else(|| ticks() * 10_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn control() -> RateControl {
        RateControl::new(Budget { cpu: Some(0.005), memory_bytes: 64 * MIB })
    }

    fn taken(cpu: f64, mib: u64) -> Taken {
        Taken { cpu, memory_bytes: mib * MIB }
    }

    #[test]
    fn the_sample_shrinks_beyond_the_budget() {
        let mut control = control();
        assert_eq!(control.next(64, taken(0.006, 30)), None, "once is an accident");
        assert_eq!(control.next(64, taken(0.006, 30)), Some(128));
        assert_eq!(control.next(128, taken(0.02, 30)), Some(256), "far beyond");
        assert_eq!(control.next(256, taken(0.02, 30)), None, "the smallest");
        let mut control = self::control();
        assert_eq!((control.next(64, taken(0.001, 70)), control.next(64, taken(0.001, 70))), (None, Some(128)));
    }

    #[test]
    fn the_sample_grows_where_there_is_room_for_twice_as_much() {
        let mut control = control();
        let mut grow = |one_in| (1..200).find(|_| control.next(one_in, taken(0.001, 30)) == Some(one_in / 2));
        assert_eq!((grow(64), grow(32), grow(16)), (Some(6), Some(6), None));
        let (mut control, mut changes, mut one_in) = (self::control(), Vec::new(), 64);
        // Work that is too much at 1/16 and little at 1/32.
        for period in 0..1000 {
            if let Some(next) = control.next(one_in, taken(if one_in == 16 { 0.006 } else { 0.0015 }, 30)) {
                (one_in, _) = (next, changes.push(period));
            }
        }
        assert!(changes.len() < 40 && changes.windows(3).last().is_some_and(|of| of[2] - of[0] > 50), "{changes:?}");
        assert_eq!(RateControl::new(Budget { cpu: None, memory_bytes: 0 }).next(64, taken(1.0, 99)), None);
    }

    #[test]
    fn processor_time_is_read_either_way() {
        assert_eq!(cpu_ns("1500 7 3\n", ""), 1500);
        let stat = "9 (a b) c) S 1 9 9 0 -1 4194560 5 0 0 0 12 3 0 0 20 0 1 0 7";
        assert_eq!(cpu_ns("", stat), 150_000_000);
        assert_eq!(cpu_ns("0 0 0\n", stat), 150_000_000);
        assert!(own().0 > 0 && own().1 > 4096);
    }
}
