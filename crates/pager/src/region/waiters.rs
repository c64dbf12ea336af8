//! Threads that wait in a handler of their own faults.

use std::time::Duration;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Condvar, MutexGuard};
use crate::threads;

/// Time after which a thread that waits for a page looks again, whether it was woken or not.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Waiters {
    arrived: Condvar,
    /// Changed under the lock of the region.
    n: AtomicU32,
}

impl Waiters {
    /// Sleeps until nobody is at work on what is waited for.
    pub(super) fn wait_while<'a, C>(
        &self,
        mut core: MutexGuard<'a, C>,
        mut is_awaited: impl FnMut(&mut C) -> bool,
    ) -> MutexGuard<'a, C> {
        while is_awaited(&mut core) {
            self.n.fetch_add(1, Ordering::Relaxed);
            core = threads::wait(&self.arrived, core, LOOK_AGAIN);
            self.n.fetch_sub(1, Ordering::Relaxed);
        }
        core
    }

    /// A page has arrived, or is lost, or its wait is over: all look whether it is theirs. Called
    /// under the lock of the region.
    pub(super) fn wake(&self) {
        if self.n.load(Ordering::Relaxed) > 0 {
            self.arrived.notify_all();
        }
    }
}
