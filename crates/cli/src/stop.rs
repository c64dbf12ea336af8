//! Ends work that nobody wants any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by who works and who may end it. The command never does: its process just ends.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// What work ends with that was stopped.
pub(crate) const STOPPED: &str = "interrupted";

impl Stop {
    /// The work ends at the next place where it looks, with an error.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error if it was.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.is_set() { Err(STOPPED.into()) } else { Ok(()) }
    }
}
