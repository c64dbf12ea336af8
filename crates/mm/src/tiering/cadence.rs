//! When a task marks pages so that the next touch of each is a hint fault, and how many.
//!
//! A task is asked by its CPU time; the threads of a program share the marking, so that all of them
//! together do no more of it than one. Linux slows down a task whose faults lead nowhere, by the
//! faults that it counts. Where only tiering is on, faults on slow memory are not counted and fast
//! memory has none, so the period stays as it begins.
//!
//! Mechanism: `docs/mechanisms.md#hint-faults`.

use super::sysctl::TieringConfig;

/// Marking goes at most so fast: `MAX_SCAN_WINDOW`, 2560 MB a second.
const MAX_SCANS_MB_PER_S: u64 = 2560;
/// So much of address space is looked at for what is marked.
const VIRTUAL_FACTOR: u64 = 8;

/// The bounds of the scan period of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanPeriod {
    /// The shortest, with which a task begins, in milliseconds.
    pub min_ms: u64,
    /// The longest, in milliseconds.
    pub max_ms: u64,
}

impl ScanPeriod {
    /// For a program with so many resident pages: the more windows of `scan_size` there are, the
    /// sooner the next one comes.
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
    /// 0: it has not begun.
    period_ms: u64,
}

impl TaskScan {
    /// The task has had so much CPU time: whether a scan is due, and its period.
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

    /// The CPU time before which nothing is due.
    pub fn next_ns(&self, cfg: &TieringConfig) -> u64 {
        self.stamp_ns + cfg.time_ns(if self.period_ms == 0 { cfg.scan_delay_ms } else { self.period_ms })
    }
}

/// The part that the threads of a program share: time and place of the next scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MmScan {
    next_ns: u64,
    /// The page of the address space at which the next scan goes on.
    offset: u64,
    /// Times that it began again at the start.
    rounds: u64,
}

/// Consecutive pages of an address space, at most those of a page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PteRange {
    /// First page.
    pub first: u64,
    /// Number of pages.
    pub pages: u64,
}

impl MmScan {
    /// A program that begins then.
    pub fn new(cfg: &TieringConfig, now_ns: u64) -> MmScan {
        MmScan { next_ns: now_ns + cfg.time_ns(cfg.scan_delay_ms), offset: 0, rounds: 0 }
    }

    /// A thread is due to scan, with this period: whether it is its turn, and nobody scanned since
    /// less than that.
    pub fn begins(&mut self, cfg: &TieringConfig, now_ns: u64, period_ms: u64) -> bool {
        let turn = now_ns >= self.next_ns;
        if turn {
            self.next_ns = now_ns + cfg.time_ns(period_ms);
        }
        turn
    }

    /// One scan over an address space of so many pages: `mark` is called with one range after the
    /// other and says how many pages of it it has marked. A page table in which some were counts
    /// whole. Ends when `scan_size` pages counted, or 8 times as many were looked at, or all.
    pub fn scan(&mut self, cfg: &TieringConfig, space_pages: u64, mut mark: impl FnMut(PteRange) -> u64) -> u64 {
        if space_pages == 0 {
            return 0;
        }
        let mut marks_left = cfg.scan_size_pages;
        let mut looks_left = (cfg.scan_size_pages * VIRTUAL_FACTOR).min(space_pages);
        let mut marked = 0;
        while marks_left > 0 && looks_left > 0 {
            if self.offset >= space_pages {
                (self.offset, self.rounds) = (0, self.rounds + 1);
            }
            // Up to the end of a page table, as Linux aligns it.
            let table_end = (self.offset / TABLE_PAGES + 1) * TABLE_PAGES;
            let pages = (table_end.min(space_pages) - self.offset).min(looks_left).min(marks_left);
            let here = mark(PteRange { first: self.offset, pages });
            marked += here;
            if here > 0 {
                marks_left = marks_left.saturating_sub(pages);
            }
            looks_left -= pages;
            self.offset += pages;
        }
        marked
    }

    /// Times that it came to the end of the address space.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }
}

/// Pages of a page table.
const TABLE_PAGES: u64 = 512;

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
        let mut mm = MmScan::new(&cfg, 0);
        assert!(!mm.begins(&cfg, 999 * ms, 500));
        assert!(mm.begins(&cfg, 1000 * ms, 500));
        assert!(!mm.begins(&cfg, 1499 * ms, 500), "another thread, too early");
        assert!(mm.begins(&cfg, 1500 * ms, 500));
    }

    #[test]
    fn a_scan_goes_on_where_the_last_one_ended_and_skips_what_it_cannot_mark() {
        let cfg = TieringConfig { scan_size_pages: 1024, ..TieringConfig::default() };
        let mut mm = MmScan::new(&cfg, 0);
        let mut seen = Vec::new();
        let marked = mm.scan(&cfg, 3000, |r| {
            seen.push(r);
            r.pages
        });
        assert_eq!(
            (marked, seen.as_slice()),
            (1024, &[PteRange { first: 0, pages: 512 }, PteRange { first: 512, pages: 512 }][..])
        );
        seen.clear();
        // Nothing to mark: all of it is looked at, once.
        let marked = mm.scan(&cfg, 3000, |r| {
            seen.push(r);
            0
        });
        assert_eq!((marked, seen.iter().map(|r| r.pages).sum::<u64>(), seen[0].first), (0, 3000, 1024));
        assert_eq!(mm.rounds(), 1);
        // In a large space no more than 8 times the size.
        let mut looked = 0;
        mm.scan(&cfg, 1 << 20, |r| {
            looked += r.pages;
            0
        });
        assert_eq!(looked, 8 * 1024);
        assert_eq!(mm.scan(&cfg, 0, |_| unreachable!()), 0);
    }
}
