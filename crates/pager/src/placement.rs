//! Where the threads of a region run, and which of them waits for faults.
//!
//! A thread that is woken on another CPU than the one that faulted costs an interrupt there, and
//! each page that is moved out interrupts the CPUs that run threads of this process. So while all
//! faults come from one thread, the threads of the region run where it runs: it waits for them
//! anyway. When others fault, too, they run where the scheduler likes.
//!
//! The kernel wakes everyone who waits for a fault, and all but one in vain. So one thread waits at
//! a time.

use std::fs;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::control::{ServingCpu, ServingCpuStep};

/// Threads of a region.
const MAX_THREADS: usize = 64;

/// Places of a region's threads, and of the threads that fault.
pub(crate) struct Placement {
    turn: Mutex<ServingCpu>,
    threads: [AtomicU32; MAX_THREADS],
    n: AtomicUsize,
    /// Where they were at first.
    all: Cpus,
}

/// A set of CPUs.
#[derive(Clone, Copy)]
pub(crate) struct Cpus(libc::cpu_set_t);

impl Cpus {
    /// CPUs that this thread may run on.
    pub(crate) fn here() -> Cpus {
        // SAFETY: plain data, filled by the call; if it fails the set is empty.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
            Cpus(set)
        }
    }

    pub(crate) fn only(cpu: usize) -> Cpus {
        // SAFETY: plain data; the number is below the size of the set, by the check.
        unsafe {
            let mut set = std::mem::zeroed();
            if cpu < libc::CPU_SETSIZE as usize {
                libc::CPU_SET(cpu, &mut set);
            }
            Cpus(set)
        }
    }

    /// Their numbers.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        // SAFETY: the numbers are below the size of the set.
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &self.0) }).collect()
    }

    /// Has a thread run on CPUs of this set only. If the kernel refuses, the thread stays where it
    /// is, which is only slower.
    pub(crate) fn bind(&self, thread: u32) {
        // SAFETY: the set outlives the call; only where the thread runs changes.
        unsafe { libc::sched_setaffinity(thread as libc::pid_t, size_of::<libc::cpu_set_t>(), &self.0) };
    }
}

impl Placement {
    pub(crate) fn new() -> Placement {
        let threads = [const { AtomicU32::new(0) }; MAX_THREADS];
        Placement { turn: Mutex::default(), threads, n: AtomicUsize::new(0), all: Cpus::here() }
    }

    /// This thread belongs to the region.
    pub(crate) fn join(&self) {
        if let Some(place) = self.threads.get(self.n.fetch_add(1, Ordering::Relaxed)) {
            place.store(own_number(), Ordering::Relaxed);
        }
    }

    /// Waits until it is this thread's turn to wait for faults; it is as long as the guard lives.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ServingCpu> {
        self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes note of a thread's fault; called by the thread whose turn it is to wait.
    pub(crate) fn fault_of(&self, rule: &mut ServingCpu, thread: u32) {
        match rule.fault_of(thread) {
            Some(ServingCpuStep::Look(thread)) => {
                if let Some(cpu) = cpu_of(thread).filter(|&cpu| rule.runs_on(cpu)) {
                    self.bind(&Cpus::only(cpu));
                }
            }
            Some(ServingCpuStep::Anywhere) => self.bind(&self.all),
            None => {}
        }
    }

    fn bind(&self, cpus: &Cpus) {
        let threads = self.threads.iter().map(|t| t.load(Ordering::Relaxed));
        threads.filter(|&t| t != 0).for_each(|thread| cpus.bind(thread));
    }
}

/// The number of this thread.
pub(crate) fn own_number() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// The CPU on which a thread runs, or ran last.
pub(crate) fn cpu_of(thread: u32) -> Option<usize> {
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    // Field 39; the name, field 2, may have spaces.
    stat.rsplit_once(") ")?.1.split(' ').nth(36)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_where_it_was_bound() {
        let cpu = *Cpus::here().numbers().first().expect("a thread has a CPU");
        let p = Placement::new();
        std::thread::scope(|s| {
            s.spawn(|| {
                p.join();
                p.bind(&Cpus::only(cpu));
                assert_eq!(cpu_of(own_number()), Some(cpu));
                p.bind(&p.all);
            });
        });
    }
}
