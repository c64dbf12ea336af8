//! Threads of the pager, the lock that they share, and the end of a process whose memory cannot be
//! trusted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::calls;
use crate::error::Error;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// A thread that takes no signals of the program. If it dies, the memory it serves would hang
/// the thread that touches it, so the process dies.
pub(crate) fn spawn<S: Send + Sync + 'static>(
    name: &str,
    shared: &Arc<S>,
    run: fn(&S),
) -> Result<JoinHandle<()>, Error> {
    let shared = shared.clone();
    let body = move || {
        block_signals();
        if catch_unwind(AssertUnwindSafe(|| run(&shared))).is_err() {
            fatal("a thread of the pager died");
        }
    };
    calls::spawn(name, body).map_err(Error::io("starting a thread"))
}

/// Most threads that serve faults: more would only wait for one another, as they work under one
/// lock. Each takes half a MiB.
const MOST_SERVING: usize = 256;

/// Checks the number of threads that are to serve faults, and how long a fault may wait for room.
pub(crate) fn check_serving(fault_threads: usize, stall_limit: Duration) -> Result<(), Error> {
    let wrong = if fault_threads > MOST_SERVING {
        format!(
            "fault_threads is {fault_threads}; at most {MOST_SERVING}, and 0 is as many as suit this machine, at most 4"
        )
    } else if stall_limit < Duration::from_millis(1) {
        format!(
            "stall_limit is {stall_limit:?}: a page would be lost whenever a fault has to wait for room; at least 1 ms, 30 s is usual"
        )
    } else {
        return Ok(());
    };
    Err(Error::Config(wrong))
}

/// In a child of `fork`: what the threads share, and their handles, stay as they are. Neither the
/// threads nor who may hold a lock are there.
pub(crate) fn abandon<S>(shared: &Arc<S>, threads: impl Iterator<Item = JoinHandle<()>>) {
    std::mem::forget(shared.clone());
    threads.for_each(std::mem::forget);
}

fn block_signals() {
    // SAFETY: a signal set is plain data, filled before it is used; only the mask of this thread
    // changes.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// The lock on states and engine. A thread that held it when it died left them in between.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|_| died_at_work())
}

/// Waits without the lock to be told, for at most `most`.
pub(crate) fn wait<'a, T>(on: &Condvar, guard: MutexGuard<'a, T>, most: Duration) -> MutexGuard<'a, T> {
    on.wait_timeout(guard, most).unwrap_or_else(|_| died_at_work()).0
}

/// Processor time of this thread.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is filled by the call, and zero if it fails.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A time as data: as many as there can be.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn died_at_work() -> ! {
    fatal("a thread of the pager died at work")
}

/// Ends the process after something that may not happen. Memory cannot be trusted any more, so
/// nothing goes on.
pub(crate) fn fatal(what: &str) -> ! {
    say(&format!("fatal: {what}"));
    std::process::abort();
}

/// Writes a line to standard error; async-signal-safe, unlike `eprintln!`, whose lock an
/// interrupted thread may hold.
pub(crate) fn say(what: &str) {
    let line = format!("refault: {what}\n");
    // SAFETY: the text outlives the call. If it cannot be written, nobody is to be told.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
