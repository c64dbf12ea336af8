//! Waking threads of a process that wait for a page.

use std::time::Duration;

use crate::threads::fatal;
use crate::uffd::Uffd;

/// Those who wait there go on.
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
