//! A bar for runs in virtual time, on a terminal, for anything over a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use refault_lab::machine::{Machine, RunResult};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the bar shows of one run.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    virtual_ns: u64,
    events: u64,
    /// None: nothing says when it ends.
    share: Option<f64>,
}

/// All runs.
type Runs = Arc<Mutex<Vec<Run>>>;

/// The bar of some runs, shared by the threads that do them.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    runs: Runs,
    started: Instant,
    shown: AtomicBool,
}

/// Parts of one run on the bar.
const PARTS: f64 = 10_000.0;
/// How often a run is shown.
const EVERY: Duration = Duration::from_millis(100);

impl Progress {
    /// For so many runs.
    pub(super) fn new(what: &str, runs: usize) -> Progress {
        let total = runs as u64 * PARTS as u64;
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        bar.set_message(what.to_owned());
        let runs: Runs = Arc::new(Mutex::new(vec![Run { share: Some(0.0), ..Run::default() }; runs]));
        let progress = Progress { bar, runs, started: Instant::now(), shown: AtomicBool::new(false) };
        progress.style("{msg} {wide_bar} {virtual} s virtual, {rate} s per s, {eta} left");
        progress
    }

    fn style(&self, template: &str) {
        // The templates are constants: a mistake in them would show in every run.
        let Ok(style) = ProgressStyle::with_template(template) else { return };
        let sum = |runs: &Runs, of: fn(&Run) -> u64| runs.lock().map_or(0, |runs| runs.iter().map(of).sum::<u64>());
        let seconds = move |runs: &Runs| sum(runs, |run| run.virtual_ns) as f64 / 1e9;
        let (a, b, c) = (Arc::clone(&self.runs), Arc::clone(&self.runs), Arc::clone(&self.runs));
        let style = style
            .with_key("virtual", move |_: &ProgressState, w: &mut dyn Write| {
                let _ = write!(w, "{:.1}", seconds(&a));
            })
            .with_key("rate", move |state: &ProgressState, w: &mut dyn Write| {
                let _ = write!(w, "{:.1}", seconds(&b) / state.elapsed().as_secs_f64().max(1e-3));
            })
            .with_key("events", move |_: &ProgressState, w: &mut dyn Write| {
                let _ = write!(w, "{:.1}", sum(&c, |run| run.events) as f64 / 1e6);
            });
        self.bar.set_style(style);
    }

    /// What run number `at` reports to.
    pub(super) fn meter(&self, at: usize) -> Meter<'_> {
        Meter { progress: self, at, shown_at: Instant::now() }
    }

    fn set(&self, at: usize, run: Run) {
        let Ok(mut runs) = self.runs.lock() else { return };
        runs[at] = run;
        let known = runs.iter().all(|run| run.share.is_some());
        let share: f64 = runs.iter().filter_map(|run| run.share).sum();
        // Drawing asks for the runs again.
        drop(runs);
        if !known {
            self.style("{msg} {virtual} s virtual, {rate} s per s, {events} M events");
        }
        self.bar.set_position((share * PARTS) as u64);
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

/// One run's part of the bar.
#[derive(Debug)]
pub(super) struct Meter<'a> {
    progress: &'a Progress,
    at: usize,
    shown_at: Instant,
}

impl Meter<'_> {
    /// Shows how far a machine is, now and then.
    pub(super) fn show(&mut self, machine: &Machine) {
        if self.shown_at.elapsed() >= EVERY {
            self.shown_at = Instant::now();
            let (virtual_ns, events) = (machine.now_ns(), machine.events());
            self.progress.set(self.at, Run { virtual_ns, events, share: machine.done_share() });
        }
    }

    /// The run is over.
    pub(super) fn end(&self, result: &RunResult) {
        let virtual_ns = (result.seconds * 1e9) as u64;
        self.progress.set(self.at, Run { virtual_ns, events: result.events, share: Some(1.0) });
    }
}
