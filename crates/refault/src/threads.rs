//! Jobs on threads: the one pool of the library. Its jobs are few and long (a cell, a machine, a
//! size), so that a shared counter is all the balance they need; a work-stealing pool would be five
//! more crates below the command.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of threads: as given, or one per core.
pub fn threads(given: Option<u16>) -> usize {
    given.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// Does every job on some threads; results are in the order of the jobs.
///
/// # Errors
/// The error of the first job, in their order, that has one.
pub fn on_threads<J: Copy + Sync, R: Send>(
    threads: usize,
    jobs: &[J],
    one: &(dyn Fn(J) -> Result<R, String> + Sync),
) -> Result<Vec<R>, String> {
    let taken = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<R, String>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    on_each_thread(threads.min(jobs.len()), &|| {
        loop {
            let at = taken.fetch_add(1, Ordering::Relaxed);
            let Some(&job) = jobs.get(at) else { return };
            let result = one(job);
            if let Ok(mut done) = done.lock() {
                done[at] = Some(result);
            }
        }
    });
    // A thread that panicked ended the scope with its panic: every job has a result.
    done.into_inner().unwrap_or_default().into_iter().flatten().collect()
}

/// Does the same work on `threads` threads; returns when all have finished.
pub(crate) fn on_each_thread(threads: usize, work: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
}
