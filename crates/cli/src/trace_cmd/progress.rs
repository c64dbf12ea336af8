//! A line of progress for conversions, on a terminal and only when they take over a second.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Counts accesses and shows them from time to time.
pub struct AccessProgress {
    what: &'static str,
    total: Option<u64>,
    done: u64,
    next: Option<Instant>,
    shown: bool,
}

impl AccessProgress {
    /// Starts; `total` gives a percentage.
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        let first = Instant::now() + Duration::from_secs(1);
        Self {
            what,
            total: total.filter(|total| *total > 0),
            done: 0,
            next: stderr().is_terminal().then_some(first),
            shown: false,
        }
    }

    /// Adds what was done since.
    pub fn add(&mut self, count: u64) {
        self.done += count;
        let now = Instant::now();
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + Duration::from_millis(200));
        self.shown = true;
        let millions = self.done as f64 / 1e6;
        let share = self.total.map(|total| 100 * self.done / total);
        let share = share.map_or(String::new(), |percent| format!(" ({}%)", percent.min(100)));
        // A terminal that went away is no reason to stop.
        let _ = write!(stderr(), "\r\x1b[K{}: {millions:.1} M accesses{share}", self.what);
    }
}

impl Drop for AccessProgress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
