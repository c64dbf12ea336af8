//! Progress on a terminal: bars of what the library does, once it has taken over a second, however
//! short its parts are.

mod accesses;
mod machines;

use crate::say;
pub(crate) use accesses::Accesses;
use machines::Machines;
use refault::Watch;
use refault::watch::{MachineMeter, Meter, Monitor};
use std::sync::Arc;
use std::time::Instant;

/// Bars on standard error, if that is a terminal, of work that began then.
struct Terminal(Instant);

impl Monitor for Terminal {
    fn accesses(&self, name: String, total: Option<u64>) -> Box<dyn Meter> {
        Box::new(Accesses::new(name, total, self.0))
    }

    fn machines(&self, name: &str, runs: usize) -> Box<dyn MachineMeter> {
        Box::new(Machines::new(name, runs, self.0))
    }

    fn remark(&self, text: &str) {
        say(&format!("note: {text}"));
    }
}

/// A handle whose work is shown.
pub(crate) fn watch() -> Watch {
    Watch::new(Arc::new(Terminal(Instant::now())))
}

/// The same handle, whose work is shown.
pub(crate) fn shown(watch: &Watch) -> Watch {
    watch.with_monitor(Arc::new(Terminal(Instant::now())))
}
