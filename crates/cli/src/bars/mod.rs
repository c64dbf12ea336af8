//! Progress on a terminal: bars of what the library does, for anything over a second.

mod accesses;
mod machines;

pub(crate) use accesses::Accesses;
use machines::Machines;
use refault::Watch;
use refault::watch::{MachineMeter, Meter, Monitor};
use std::sync::Arc;

/// Bars on standard error, if that is a terminal.
struct Terminal;

impl Monitor for Terminal {
    fn accesses(&self, name: String, total: Option<u64>) -> Box<dyn Meter> {
        Box::new(Accesses::new(name, total))
    }

    fn machines(&self, name: &str, runs: usize) -> Box<dyn MachineMeter> {
        Box::new(Machines::new(name, runs))
    }
}

/// A handle whose work is shown.
pub(crate) fn watch() -> Watch {
    Watch::new(Arc::new(Terminal))
}

/// The same handle, whose work is shown.
pub(crate) fn shown(watch: &Watch) -> Watch {
    watch.with_monitor(Arc::new(Terminal))
}
