//! A bar on a terminal, for anything over a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Accesses done, of how many, how fast, and how long still. Shared by the threads that do them.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: AtomicBool,
}

impl Progress {
    /// Begins a piece of work; `total` is in accesses, if it is known.
    pub fn new(what: String, total: Option<u64>) -> Progress {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        let style = match total {
            Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} accesses, {human_per_sec}, {eta} left",
            None => "{msg} {human_pos} accesses, {human_per_sec}",
        };
        // The templates are constants: a mistake in them would show in every run.
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Progress { bar, started: Instant::now(), shown: AtomicBool::new(false) }
    }

    /// Adds what was done since.
    pub fn add(&self, accesses: u64) {
        self.bar.inc(accesses);
        let late = self.started.elapsed() > Duration::from_secs(1);
        if late && !self.shown.swap(true, Ordering::Relaxed) {
            // Draws nothing unless standard error is a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
