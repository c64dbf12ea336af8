//! Who waits for pages that are between two states, and threads that wait in a handler of their own faults.

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

/// Pages between two states that were touched, and whether to write. There are seldom more than the threads that fault, and a page is looked
/// up whenever one arrives or leaves, so it is a list.
#[derive(Default)]
pub(super) struct Waiting(Vec<(u32, bool)>);

impl Waiting {
    pub(super) fn add(&mut self, page: u32, write: bool) {
        match self.0.iter_mut().find(|(p, _)| *p == page) {
            Some((_, w)) => *w |= write,
            None => self.0.push((page, write)),
        }
    }

    /// Whether someone waited for it, and to write.
    pub(super) fn remove(&mut self, page: u32) -> Option<bool> {
        let at = self.0.iter().position(|&(p, _)| p == page)?;
        Some(self.0.swap_remove(at).1)
    }
}
