//! A bar for accesses, on a terminal, for work over a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use refault::watch::Meter;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Accesses done, of how many, how fast, and how long still. Shared by the threads that do them.
#[derive(Debug)]
pub(crate) struct Accesses {
    bar: ProgressBar,
    started: Instant,
    shown: AtomicBool,
}

impl Accesses {
    /// Begins a piece of work that `started` then; `total` is in accesses, if it is known.
    pub(crate) fn new(name: String, total: Option<u64>, started: Instant) -> Accesses {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        let style = match total {
            Some(_) => "{msg} {wide_bar} {done} of {all} M accesses, {rate} M/s, {eta} left",
            None => "{msg} {done} M accesses, {rate} M/s",
        };
        // The templates are constants: a mistake in them would show in every run.
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(with_millions(style));
        }
        bar.set_message(name);
        Accesses { bar, started, shown: AtomicBool::new(false) }
    }
}

impl Meter for Accesses {
    fn add(&self, accesses: u64) {
        self.bar.inc(accesses);
        let late = self.started.elapsed() > Duration::from_secs(1);
        if late && !self.shown.swap(true, Ordering::Relaxed) {
            // Draws nothing unless standard error is a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        }
    }
}

/// Counts of accesses in millions: digits that can be read while they move.
fn with_millions(style: ProgressStyle) -> ProgressStyle {
    style
        .with_key("done", |state: &ProgressState, w: &mut dyn Write| {
            let _ = write!(w, "{:.0}", state.pos() as f64 / 1e6);
        })
        .with_key("all", |state: &ProgressState, w: &mut dyn Write| {
            let _ = write!(w, "{:.0}", state.len().unwrap_or(0) as f64 / 1e6);
        })
        .with_key("rate", |state: &ProgressState, w: &mut dyn Write| {
            let _ = write!(w, "{:.1}", state.per_sec() / 1e6);
        })
}

impl Drop for Accesses {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
