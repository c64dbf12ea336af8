//! Threads that wait in a handler of their own faults.

use std::sync::{Condvar, MutexGuard};
use std::time::Duration;

use super::core::Core;
use crate::threads;

#[derive(Default)]
pub(super) struct Waiters {
    arrived: Condvar,
    /// Changed under the lock of the region.
    n: std::sync::atomic::AtomicU32,
}

impl Waiters {
    /// Sleeps until some page has arrived, or so long.
    pub(super) fn wait<'a>(&self, core: MutexGuard<'a, Core>, most: Duration) -> MutexGuard<'a, Core> {
        use std::sync::atomic::Ordering::Relaxed;
        self.n.fetch_add(1, Relaxed);
        let core = threads::wait(&self.arrived, core, most);
        self.n.fetch_sub(1, Relaxed);
        core
    }

    /// A page has arrived, or is lost, or its wait is over: all look whether it is theirs.
    pub(super) fn wake(&self) {
        if self.n.load(std::sync::atomic::Ordering::Relaxed) > 0 {
            self.arrived.notify_all();
        }
    }
}
