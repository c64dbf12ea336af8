//! Writes by io_uring: a batch is submitted in one call, and its writes are under way at the same
//! time.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, types};

use crate::calls::{self, Call, CallFault};
use crate::threads::fatal;

/// Writes at a time.
const ENTRIES: u32 = 64;
/// Tries of a call that the kernel refuses for the moment, with a pause between them: ten seconds
/// and more.
const ATTEMPTS: u32 = 10_000;
const PAUSE: Duration = Duration::from_millis(1);

/// A ring of its own for a file.
pub(super) struct Ring(IoUring);

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ring")
    }
}

impl Ring {
    /// Memory of a ring: 64 bytes for each entry, 16 for each of twice as many completions, in
    /// whole pages with the rings' heads.
    pub(super) const BYTES: u64 = 3 * 4096;

    /// A ring, where the system allows one.
    pub(super) fn new() -> io::Result<Ring> {
        calls::made(Call::RingSetup, || IoUring::new(ENTRIES)).map(Ring)
    }

    /// Writes each of these to its place in the file, and waits for all; what each came to, as of
    /// `pwritev`. None is under way afterwards.
    ///
    /// # Safety
    /// Memory that the vectors name can be read until this returns.
    pub(super) unsafe fn write(&mut self, file: &File, calls: &[(u64, &[libc::iovec])]) -> Vec<isize> {
        let mut results = vec![-1; calls.len()];
        for (n, batch) in calls.chunks(ENTRIES as usize).enumerate() {
            let first = n * ENTRIES as usize;
            for (i, (at, pages)) in batch.iter().enumerate() {
                let entry = opcode::Writev::new(types::Fd(file.as_raw_fd()), pages.as_ptr(), pages.len() as u32)
                    .offset(*at)
                    .build()
                    .user_data((first + i) as u64);
                // SAFETY: the file is open, and what the entry names stays until its completion was
                // seen, below: the caller's contract.
                if unsafe { self.0.submission().push(&entry) }.is_err() {
                    fatal("a ring of io_uring is full that was empty");
                }
            }
            self.wait(batch.len(), &mut results);
        }
        results
    }

    /// Waits until `entries` entries are complete. It does not give up: the kernel may be reading
    /// the pages.
    fn wait(&mut self, entries: usize, results: &mut [isize]) {
        let (mut left, mut patience) = (entries, Patience::default());
        while left > 0 {
            patience.enter(|| self.0.submit_and_wait(left));
            for entry in self.0.completion() {
                results[entry.user_data() as usize] = result(&entry);
                left -= 1;
            }
        }
    }
}

/// Result of an entry, as of the call that it stands for.
pub(super) fn result(entry: &cqueue::Entry) -> isize {
    match calls::next(Call::RingResult) {
        Some(CallFault::Fails(errno)) => -(errno as isize),
        Some(CallFault::Short(most)) => (entry.result() as isize).min(most as isize),
        _ => entry.result() as isize,
    }
}

/// With a kernel that refuses for the moment, while entries are under way that cannot be given up.
#[derive(Default)]
pub(super) struct Patience {
    attempts: u32,
}

impl Patience {
    /// Enters the kernel, to wait for completions; there may be none afterwards.
    pub(super) fn enter(&mut self, enter: impl FnOnce() -> io::Result<usize>) {
        match calls::made(Call::RingEnter, enter) {
            Ok(_) => self.attempts = 0,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // The kernel may be short of something for the moment. Entries under way complete
            // whatever this call says.
            Err(_) if self.attempts < ATTEMPTS => {
                self.attempts += 1;
                std::thread::sleep(PAUSE);
            }
            Err(e) => fatal(&format!("io_uring: {e}")),
        }
    }
}
