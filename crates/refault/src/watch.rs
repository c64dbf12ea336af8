//! Progress and cancel of work: a handle that the caller keeps a copy of.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Error of work that was cancelled.
pub const STOPPED: &str = "interrupted";

/// Progress of a piece of work that counts accesses. Its end is when it is dropped.
pub trait Meter: Send + Sync {
    /// Adds accesses done since.
    fn add(&self, accesses: u64);
}

/// Progress of machines that run in virtual time. Its end is when it is dropped.
pub trait MachineMeter: Send + Sync {
    /// Sets the state of run number `run`.
    fn set(&self, run: usize, state: MachineState);
}

/// State of a machine in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineState {
    /// Virtual nanoseconds since its start.
    pub virtual_ns: u64,
    /// Events handled so far.
    pub events: u64,
    /// Share of the work that is done, 0 to 1; none: its end is not known.
    pub share: Option<f64>,
}

/// Source of meters, such as bars on a terminal.
pub trait Monitor: Send + Sync {
    /// Begins a piece of work of `total` accesses; none: their number is not known.
    fn accesses(&self, name: String, total: Option<u64>) -> Box<dyn Meter>;
    /// Begins `runs` runs of machines.
    fn machines(&self, name: &str, runs: usize) -> Box<dyn MachineMeter>;
    /// Takes a remark on the work that has begun.
    fn remark(&self, _text: &str) {}
}

/// Handle on work: ends it, and is told how far it is. By default nobody is told.
#[derive(Clone, Default)]
pub struct Watch {
    stopped: Arc<AtomicBool>,
    monitor: Option<Arc<dyn Monitor>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("stopped", &self.is_stopped()).finish_non_exhaustive()
    }
}

impl Watch {
    /// Handle that reports to `monitor`.
    pub fn new(monitor: Arc<dyn Monitor>) -> Watch {
        Watch { monitor: Some(monitor), ..Watch::default() }
    }

    /// The same handle, but reporting to `monitor`.
    pub fn with_monitor(&self, monitor: Arc<dyn Monitor>) -> Watch {
        Watch { monitor: Some(monitor), ..self.clone() }
    }

    /// The same handle, whose work is told to nobody.
    pub(crate) fn quiet(&self) -> Watch {
        Watch { monitor: None, ..self.clone() }
    }

    /// Ends the work at the next place where it looks, with an error.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// An error if it was.
    ///
    /// # Errors
    /// [`STOPPED`].
    pub fn check(&self) -> Result<(), String> {
        if self.is_stopped() { Err(STOPPED.into()) } else { Ok(()) }
    }

    /// Begins a piece of work of `total` accesses; none: their number is not known.
    pub fn accesses(&self, name: String, total: Option<u64>) -> Progress {
        Progress(self.monitor.as_ref().map(|monitor| monitor.accesses(name, total)))
    }

    /// Remarks on the work that has begun.
    pub fn remark(&self, text: &str) {
        if let Some(monitor) = &self.monitor {
            monitor.remark(text);
        }
    }

    /// Begins `runs` runs of machines.
    pub fn machines(&self, name: &str, runs: usize) -> Option<Box<dyn MachineMeter>> {
        self.monitor.as_ref().map(|monitor| monitor.machines(name, runs))
    }
}

/// Progress of a piece of work; of one that nobody watches, nothing.
pub struct Progress(Option<Box<dyn Meter>>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

impl Progress {
    /// Adds accesses done since.
    pub fn add(&self, accesses: u64) {
        if let Some(meter) = &self.0 {
            meter.add(accesses);
        }
    }
}
