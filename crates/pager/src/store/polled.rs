//! Reads that are polled for: a fast device has the page before a processor that halted would be
//! awake again.
//!
//! They go through io_uring, since a read by `pread` cannot but sleep. How long to poll is the
//! engine's ([`Polling`]). Where there is no ring to be had, or polling is not worth it, the
//! reader calls `pread`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use crate::control::{Polling, PollingStats};
use io_uring::{IoUring, opcode, types};

use super::ring::{self, Patience};
use crate::calls::{self, Call};

/// Rings at most: further readers use `pread`.
const MOST_RINGS: usize = 64;

/// Rings, one for each thread that reads at the same time, and what is known of waits.
#[derive(Default)]
pub(super) struct PolledReads(Mutex<State>);

#[derive(Default)]
struct State {
    polling: Polling,
    idle: Vec<IoUring>,
    /// Number of rings, free or in use.
    rings: usize,
    /// The system allows none.
    refused: bool,
}

impl std::fmt::Debug for PolledReads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PolledReads").field(&self.usage()).finish()
    }
}

impl PolledReads {
    /// Bytes of a ring: entries, and the heads of both queues with their completions, in whole
    /// pages.
    const RING_BYTES: u64 = 2 * 4096;

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Outcomes of waits, and the memory of the rings.
    pub(super) fn usage(&self) -> (PollingStats, u64) {
        let state = self.state();
        (state.polling.stats(), state.rings as u64 * Self::RING_BYTES)
    }

    /// Reads to these buffers from that place of the file; what it came to, as of `preadv`. `None`:
    /// it was not read, and is to be read in another way.
    ///
    /// # Safety
    /// Memory that the vectors name is nobody else's until this returns.
    pub(super) unsafe fn read(&self, file: &File, parts: &[libc::iovec], at: u64) -> Option<io::Result<usize>> {
        let (mut ring, most_ns) = self.take()?;
        let entry =
            opcode::Readv::new(types::Fd(file.as_raw_fd()), parts.as_ptr(), parts.len() as u32).offset(at).build();
        // SAFETY: the file is open, and what the entry names is there until its completion was
        // seen, below: the caller's contract.
        if !unsafe { submit(&mut ring, &entry) } {
            // Nothing of this ring is under way.
            self.state().rings -= 1;
            return None;
        }
        let begun = Instant::now();
        let mut poll = Poll { begun, last: 0, gap: 0 };
        let mut result = poll.until(most_ns, || take_result(&mut ring));
        let came = result.is_some();
        let mut patience = Patience::default();
        while result.is_none() {
            patience.enter(|| ring.submit_and_wait(1));
            result = take_result(&mut ring);
        }
        let mut state = self.state();
        state.polling.end(begun.elapsed().as_nanos() as u64, came, poll.gap);
        state.idle.push(ring);
        drop(state);
        result.map(|n| usize::try_from(n).map_err(|_| io::Error::from_raw_os_error(-n)))
    }

    /// A ring, and how long to poll.
    fn take(&self) -> Option<(IoUring, u64)> {
        let mut state = self.state();
        if state.refused || state.idle.is_empty() && state.rings >= MOST_RINGS {
            return None;
        }
        let most_ns = state.polling.begin();
        if most_ns == 0 {
            return None;
        }
        if let Some(ring) = state.idle.pop() {
            return Some((ring, most_ns));
        }
        state.rings += 1;
        drop(state);
        match calls::made(Call::RingSetup, || IoUring::new(1)) {
            Ok(ring) => Some((ring, most_ns)),
            Err(_) => {
                let mut state = self.state();
                state.rings -= 1;
                state.refused = true;
                None
            }
        }
    }
}

/// Hands an entry to the kernel. False: the kernel did not take it.
///
/// # Safety
/// Memory that the entry names is there until it is complete.
unsafe fn submit(ring: &mut IoUring, entry: &io_uring::squeue::Entry) -> bool {
    // SAFETY: the caller's contract.
    if unsafe { ring.submission().push(entry) }.is_err() {
        return false;
    }
    _ = calls::made(Call::RingEnter, || ring.submit());
    // The state of the entry decides, not what the call says.
    ring.submission().is_empty()
}

fn take_result(ring: &mut IoUring) -> Option<i32> {
    let entry = ring.completion().next()?;
    Some(ring::result(&entry) as i32)
}

/// A poll that goes on.
struct Poll {
    begun: Instant,
    /// When it looked last, and the longest time that it did not, in nanoseconds.
    last: u64,
    gap: u64,
}

impl Poll {
    fn until<T>(&mut self, most_ns: u64, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            let found = look();
            let now = self.begun.elapsed().as_nanos() as u64;
            self.gap = self.gap.max(now - self.last);
            self.last = now;
            if found.is_some() || now >= most_ns {
                return found;
            }
            std::hint::spin_loop();
        }
    }
}
