//! Waking threads of a process that wait for a page.
//!
//! A thread that is woken takes the processor of the thread that wakes it. If that holds the lock,
//! all others wait for the lock until the program faults again or its time slice is over. So the
//! threads that serve faults wake when the lock is free.

use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use crate::threads::fatal;
use crate::uffd::{PAGE, Uffd};

/// Threads that are to be woken as soon as the lock is free.
#[derive(Default)]
pub(super) struct Wakes {
    /// They are kept. Only while the lock is held by a thread that takes them before it lets go.
    are_kept: bool,
    places: Vec<(Arc<Uffd>, usize)>,
}

impl Wakes {
    /// A page is in its place; whether its wake is kept for later. Else it is to be made now.
    pub(super) fn are_kept(&self) -> bool {
        self.are_kept
    }

    pub(super) fn keep(&mut self, uffd: Arc<Uffd>, address: usize) {
        debug_assert!(self.are_kept);
        self.places.push((uffd, address));
    }

    /// Wakes the threads that wait.
    pub(super) fn give(self) {
        self.places.into_iter().for_each(|(uffd, address)| wake_at(&uffd, address, PAGE));
    }
}

impl Core {
    /// Wakes are kept from now on, until they are taken, which is before the lock is let go.
    pub(super) fn keep_wakes(&mut self) {
        self.wakes.are_kept = true;
    }

    /// Takes the wakes that were kept, to be given without the lock. No more are kept.
    pub(super) fn take_wakes(&mut self) -> Wakes {
        std::mem::take(&mut self.wakes)
    }
}

/// Wakes the threads that wait there.
pub(super) fn wake_at(uffd: &Uffd, start: usize, len: usize) {
    let mut errno = 0;
    for attempt in 0..8 {
        errno = match uffd.wake(start, len) {
            Ok(()) => return,
            Err(e) => e.raw_os_error().unwrap_or(0),
        };
        match errno {
            // The memory is gone, and with it those who wait.
            libc::ENOENT | libc::ESRCH => return,
            libc::EAGAIN | libc::EINTR | libc::ENOMEM | libc::EBUSY => {
                std::thread::sleep(Duration::from_millis(1 << attempt));
            }
            _ => break,
        }
    }
    // They would wait for ever.
    fatal(&format!("the thread that waits for a page cannot be woken: error {errno}"));
}
