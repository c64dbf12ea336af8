//! When a task marks pages so that the next touch of each is a hint fault, and how many pages.
//!
//! A task marks at intervals of its CPU time; the threads of a program share the marking, so that
//! all threads together mark no more than one would. Linux slows down a task whose faults lead
//! nowhere, by the faults that it counts. Where only tiering is on, it counts faults that promoted
//! their page, as faults on another node: the period doubles with each round over the address space
//! that had such a fault, up to the longest.
//!
//! Mechanism: `docs/mechanisms.md#hint-faults`.

use super::sysctl::TieringConfig;

/// `MAX_SCAN_WINDOW`: the most address space that is marked a second.
const MAX_SCANS_MB_PER_S: u64 = 2560;
/// Pages of address space that a scan may look at, for each page of `scan_size`.
const VIRTUAL_FACTOR: u64 = 8;
/// CPU time before the next period begins, in multiples of the time the last scan took: scans take
/// at most 3 % of a task's CPU time.
const WORK_PER_SCAN: u64 = 32;
/// Milliseconds of a tick at `CONFIG_HZ` 250.
const TICK_MS: u64 = 4;

/// The bounds of the scan period of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanPeriod {
    /// The shortest, with which a task begins, in milliseconds.
    pub min_ms: u64,
    /// The longest, in milliseconds.
    pub max_ms: u64,
}

impl ScanPeriod {
    /// The bounds for a program with `rss_pages` resident pages: the more windows of `scan_size` it
    /// has, the shorter the periods.
    pub fn new(cfg: &TieringConfig, rss_pages: u64) -> ScanPeriod {
        let windows = rss_pages.div_ceil(cfg.scan_size_pages).max(1);
        // The scale of a scenario divides both, so the quotient is that of the sizes in MB.
        let limit_pages = (MAX_SCANS_MB_PER_S << 8) / cfg.scale;
        let floor = 1000 / (limit_pages / cfg.scan_size_pages).max(1);
        let min_ms = floor.max(cfg.scan_period_min_ms / windows);
        ScanPeriod { min_ms, max_ms: min_ms.max(cfg.scan_period_max_ms / windows) }
    }
}

/// The part of a task: its CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskScan {
    /// CPU time at which the current period began.
    stamp_ns: u64,
    /// Period of scans; 0: no scan was due yet.
    period_ms: u64,
    /// Round over the address space in which the last fault counted.
    round: u64,
}

impl TaskScan {
    /// Whether a scan is due after `cpu_ns` of CPU time of the task; if so, its period in
    /// milliseconds.
    pub fn due(&mut self, cfg: &TieringConfig, cpu_ns: u64, rss_pages: impl FnOnce() -> u64) -> Option<u64> {
        let period_ms = if self.period_ms == 0 { cfg.scan_delay_ms } else { self.period_ms };
        if cpu_ns <= self.stamp_ns + cfg.time_ns(period_ms) {
            return None;
        }
        if self.period_ms == 0 {
            self.period_ms = ScanPeriod::new(cfg, rss_pages()).min_ms;
        }
        self.stamp_ns += cfg.time_ns(self.period_ms);
        Some(self.period_ms)
    }

    /// Notes that a hint fault of the task promoted its page. The first one in a round over the
    /// address space doubles the period. `rss_pages`: resident pages of the program.
    pub fn note_promoted(
        &mut self,
        cfg: &TieringConfig,
        mm: &mut MmScan,
        now_ns: u64,
        rss_pages: impl FnOnce() -> u64,
    ) {
        if self.period_ms == 0 || mm.rounds == self.round {
            return;
        }
        self.round = mm.rounds;
        self.period_ms = (2 * self.period_ms).min(ScanPeriod::new(cfg, rss_pages()).max_ms);
        mm.next_ns = Some(now_ns + cfg.time_ns(self.period_ms));
    }

    /// Puts the next period off after a scan that took `scan_ns` of the task's CPU time.
    pub fn took(&mut self, scan_ns: u64) {
        self.stamp_ns += WORK_PER_SCAN * scan_ns;
    }

    /// The CPU time before which nothing is due.
    pub fn next_ns(&self, cfg: &TieringConfig) -> u64 {
        self.stamp_ns + cfg.time_ns(if self.period_ms == 0 { cfg.scan_delay_ms } else { self.period_ms })
    }
}

/// The part that the threads of a program share: time and place of the next scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MmScan {
    /// Time before which no scan begins; none: no thread was due yet.
    next_ns: Option<u64>,
    /// The page of the address space at which the next scan goes on.
    offset: u64,
    /// Times that it began again at the start.
    rounds: u64,
}

/// Consecutive pages of an area of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PteRange {
    /// First page.
    pub first: u64,
    /// Number of pages.
    pub pages: u64,
}

impl MmScan {
    /// Whether a thread that is due begins a scan: no thread of the program began one within the
    /// period. False at the first call, when the program's `scan_delay` begins.
    pub fn begins(&mut self, cfg: &TieringConfig, now_ns: u64, period_ms: u64) -> bool {
        let next_ns = *self.next_ns.get_or_insert(now_ns + cfg.time_ns(cfg.scan_delay_ms));
        // The kernel compares ticks.
        let turn = now_ns + cfg.time_ns(TICK_MS) > next_ns;
        if turn {
            self.next_ns = Some(now_ns + cfg.time_ns(period_ms));
        }
        turn
    }

    /// Scans an address space; `areas`: pages of each `vm_area_struct`. Calls `mark` with one range
    /// after the other, which returns the pages it marked; a range with a marked page counts whole.
    /// Ends when `scan_size` pages have counted, when 8 times `scan_size` were looked at, or at the
    /// end of the address space: then the next scan begins at the start.
    pub fn scan(
        &mut self,
        cfg: &TieringConfig,
        areas: impl Iterator<Item = u64> + Clone,
        mut mark: impl FnMut(PteRange) -> u64,
    ) -> u64 {
        let (mut marks_left, mut looks_left) = (cfg.scan_size_pages, cfg.scan_size_pages * VIRTUAL_FACTOR);
        let (mut marked, mut end) = (0, 0);
        if self.offset > 0 && self.offset >= areas.clone().sum() {
            (self.offset, self.rounds) = (0, self.rounds + 1);
        }
        for pages in areas {
            end += pages;
            while self.offset < end {
                let range = PteRange { first: self.offset, pages: (end - self.offset).min(marks_left) };
                let here = mark(range);
                marked += here;
                self.offset += range.pages;
                looks_left = looks_left.saturating_sub(range.pages);
                if here > 0 {
                    marks_left -= range.pages;
                }
                if marks_left == 0 || looks_left == 0 {
                    return marked;
                }
            }
        }
        (self.offset, self.rounds) = (0, self.rounds + u64::from(end > 0));
        marked
    }

    /// Times that it came to the end of the address space.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mb(n: u64) -> u64 {
        n << 8
    }

    #[test]
    fn the_period_follows_the_windows_of_the_program() {
        let cfg = TieringConfig::default();
        assert_eq!(ScanPeriod::new(&cfg, 0), ScanPeriod { min_ms: 1000, max_ms: 60_000 });
        assert_eq!(ScanPeriod::new(&cfg, mb(256)), ScanPeriod { min_ms: 1000, max_ms: 60_000 });
        assert_eq!(ScanPeriod::new(&cfg, mb(1024)), ScanPeriod { min_ms: 250, max_ms: 15_000 });
        // 10 windows of 256 MB a second are the most.
        assert_eq!(ScanPeriod::new(&cfg, mb(65_536)).min_ms, 100);
        // A larger window is due less often.
        let wide = TieringConfig { scan_size_pages: mb(2048), ..TieringConfig::default() };
        assert_eq!(ScanPeriod::new(&wide, mb(8192)).min_ms, 1000);
        // A scenario divided by 64.
        let small = TieringConfig { scan_size_pages: mb(4), scale: 64, ..TieringConfig::default() };
        assert_eq!(ScanPeriod::new(&small, mb(1024)), ScanPeriod::new(&cfg, mb(65_536)));
    }

    #[test]
    fn a_task_is_asked_by_cpu_time_and_the_program_by_the_clock() {
        let cfg = TieringConfig::default();
        let ms = 1_000_000;
        let mut task = TaskScan::default();
        assert_eq!(task.due(&cfg, 1000 * ms, || mb(512)), None);
        assert_eq!(task.due(&cfg, 1000 * ms + 1, || mb(512)), Some(500));
        // Missed periods are made up for, one at a time, as Linux does.
        assert_eq!(task.due(&cfg, 1600 * ms, || unreachable!()), Some(500));
        assert_eq!(task.next_ns(&cfg), 1500 * ms);
        assert_eq!(task.due(&cfg, 1500 * ms, || unreachable!()), None);
        // A scan of 20 ms: 640 ms of work come first.
        task.took(20 * ms);
        assert_eq!(task.next_ns(&cfg), (1500 + 640) * ms);
        let mut mm = MmScan::default();
        assert!(!mm.begins(&cfg, 1700 * ms, 500), "the first time that a thread is due");
        assert!(!mm.begins(&cfg, 2696 * ms, 500));
        assert!(mm.begins(&cfg, 2700 * ms, 500));
        assert!(!mm.begins(&cfg, 3196 * ms, 500), "another thread, too early");
        assert!(mm.begins(&cfg, 3200 * ms, 500));
    }

    #[test]
    fn the_period_doubles_with_each_round_in_which_a_page_was_promoted() {
        let (cfg, ms) = (TieringConfig::default(), 1_000_000);
        let (mut task, mut mm) = (TaskScan::default(), MmScan::default());
        assert_eq!(task.due(&cfg, 1001 * ms, || mb(512)), Some(500));
        let mut promote = |task: &mut TaskScan, rounds: u64, now_ns: u64| {
            mm.rounds = rounds;
            task.note_promoted(&cfg, &mut mm, now_ns, || mb(512));
            (task.period_ms, mm.next_ns.unwrap_or(0) / ms)
        };
        assert_eq!(promote(&mut task, 0, 2000 * ms), (500, 0), "in the first round");
        assert_eq!(promote(&mut task, 1, 3000 * ms), (1000, 4000));
        assert_eq!(promote(&mut task, 1, 5000 * ms), (1000, 4000), "once in a round");
        for round in 2..10 {
            promote(&mut task, round, 5000 * ms);
        }
        assert_eq!(promote(&mut task, 10, 5000 * ms).0, 30_000, "the longest, with two windows");
    }

    #[test]
    fn a_scan_goes_on_where_the_last_one_ended_and_skips_what_it_cannot_mark() {
        let cfg = TieringConfig { scan_size_pages: 1024, ..TieringConfig::default() };
        let mut mm = MmScan::default();
        let mut seen = Vec::new();
        let two = || [512, 2488].into_iter();
        let marked = mm.scan(&cfg, two(), |r| {
            seen.push(r);
            r.pages / 2
        });
        // One range for each area; a range with a marked page counts whole.
        assert_eq!(
            (marked, seen.as_slice()),
            (512, &[PteRange { first: 0, pages: 512 }, PteRange { first: 512, pages: 512 }][..])
        );
        seen.clear();
        // A scan ends with the address space, and the next one begins at its start.
        let marked = mm.scan(&cfg, two(), |r| {
            seen.push(r);
            0
        });
        assert_eq!((marked, seen.iter().map(|r| r.pages).sum::<u64>(), seen[0].first), (0, 3000 - 1024, 1024));
        assert_eq!(mm.rounds(), 1);
        mm.scan(&cfg, two(), |r| {
            assert!(r.first < 1024);
            r.pages
        });
        // In a large space no more than 8 times the size.
        let mut looked = 0;
        mm.scan(&cfg, [1 << 20].into_iter(), |r| {
            looked += r.pages;
            0
        });
        assert_eq!(looked, 8 * 1024);
        assert_eq!(mm.scan(&cfg, [].into_iter(), |_| unreachable!()), 0);
    }
}
