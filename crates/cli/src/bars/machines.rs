//! A bar for runs in virtual time, on a terminal, for work over a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use refault::watch::{MachineMeter, MachineState};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// All runs.
type Runs = Arc<Mutex<Vec<MachineState>>>;

/// The bar of some runs, shared by the threads that do them.
#[derive(Debug)]
pub(super) struct Machines {
    bar: ProgressBar,
    runs: Runs,
    started: Instant,
    shown: AtomicBool,
}

/// Parts of one run on the bar.
const PARTS: f64 = 10_000.0;
impl Machines {
    /// For so many runs of work that `started` then.
    pub(super) fn new(name: &str, runs: usize, started: Instant) -> Machines {
        let total = runs as u64 * PARTS as u64;
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        bar.set_message(name.to_owned());
        let runs: Runs = Arc::new(Mutex::new(vec![MachineState { share: Some(0.0), ..MachineState::default() }; runs]));
        let progress = Machines { bar, runs, started, shown: AtomicBool::new(false) };
        progress.style("{msg} {wide_bar} {virtual} s virtual, {rate} s per s, {eta} left");
        progress
    }

    fn style(&self, template: &str) {
        // The templates are constants: a mistake in them would show in every run.
        let Ok(style) = ProgressStyle::with_template(template) else { return };
        let sum =
            |runs: &Runs, of: fn(&MachineState) -> u64| runs.lock().map_or(0, |runs| runs.iter().map(of).sum::<u64>());
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
}

impl MachineMeter for Machines {
    fn set(&self, at: usize, run: MachineState) {
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

impl Drop for Machines {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
