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

/// After so many faults it is looked who made them.
const WINDOW: u32 = 64;
/// Of which so many have to be of one thread.
const MOST: u32 = 56;
/// Where the thread runs is looked up after so many windows at the most.
const PATIENCE: u32 = 4;
/// Threads of a region.
const MAX_THREADS: usize = 64;

/// What is known of a region's threads, and of those who fault.
pub(crate) struct Placement {
    turn: Mutex<Voter>,
    threads: [AtomicU32; MAX_THREADS],
    n: AtomicUsize,
    /// Where they were at first.
    all: Cpus,
}

/// Who faults most, by the majority vote of Boyer and Moore.
#[derive(Debug, Default)]
pub(crate) struct Voter {
    candidate: u32,
    score: u32,
    seen: u32,
    /// Windows of one thread in a row.
    windows: u32,
    /// The CPU that all are bound to.
    bound: Option<usize>,
}

/// A set of CPUs.
#[derive(Clone, Copy)]
struct Cpus(libc::cpu_set_t);

impl Cpus {
    /// Those of this thread.
    fn here() -> Cpus {
        // SAFETY: plain data, filled by the call; if it fails the set is empty.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
            Cpus(set)
        }
    }

    fn only(cpu: usize) -> Cpus {
        // SAFETY: plain data; the number is below the size of the set, by the check.
        unsafe {
            let mut set = std::mem::zeroed();
            if cpu < libc::CPU_SETSIZE as usize {
                libc::CPU_SET(cpu, &mut set);
            }
            Cpus(set)
        }
    }
}

impl Placement {
    pub(crate) fn new() -> Placement {
        let threads = [const { AtomicU32::new(0) }; MAX_THREADS];
        Placement { turn: Mutex::default(), threads, n: AtomicUsize::new(0), all: Cpus::here() }
    }

    /// This thread belongs to the region.
    pub(crate) fn join(&self) {
        // SAFETY: takes nothing, cannot fail.
        let tid = unsafe { libc::gettid() } as u32;
        if let Some(place) = self.threads.get(self.n.fetch_add(1, Ordering::Relaxed)) {
            place.store(tid, Ordering::Relaxed);
        }
    }

    /// Waits until it is this thread's turn to wait for faults; it is as long as the guard lives.
    pub(crate) fn turn(&self) -> MutexGuard<'_, Voter> {
        self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A fault of a thread, as it is told by whose turn it is.
    pub(crate) fn fault_of(&self, voter: &mut Voter, thread: u32) {
        let Some(alone) = voter.window_of(thread) else { return };
        // Where it runs may have changed.
        let cpu = alone.map(cpu_of);
        match cpu {
            Some(Some(cpu)) if voter.bound != Some(cpu) => {
                voter.bound = Some(cpu);
                self.bind(&Cpus::only(cpu));
            }
            None if voter.bound.is_some() => {
                voter.bound = None;
                self.bind(&self.all);
            }
            _ => {}
        }
    }

    /// If the kernel refuses, they stay where they are, which is only slower.
    fn bind(&self, cpus: &Cpus) {
        for thread in self.threads.iter().map(|t| t.load(Ordering::Relaxed)).filter(|&t| t != 0) {
            // SAFETY: the set outlives the call; only where the thread runs changes.
            unsafe { libc::sched_setaffinity(thread as libc::pid_t, size_of::<libc::cpu_set_t>(), &cpus.0) };
        }
    }
}

impl Voter {
    /// At the end of a window: the thread that made nearly all faults, if there is one and it is
    /// time to look for it.
    fn window_of(&mut self, thread: u32) -> Option<Option<u32>> {
        self.seen += 1;
        if thread == self.candidate {
            self.score += 1;
        } else if self.score == 0 {
            (self.candidate, self.score) = (thread, 1);
        } else {
            self.score -= 1;
        }
        if self.seen < WINDOW {
            return None;
        }
        let alone = self.score >= 2 * MOST - WINDOW;
        (self.seen, self.score) = (0, 0);
        if !alone {
            self.windows = 0;
            return Some(None);
        }
        self.windows += 1;
        let due = self.bound.is_none() || self.windows.is_multiple_of(PATIENCE);
        due.then_some(Some(self.candidate))
    }
}

/// The CPU on which a thread runs, or ran last.
fn cpu_of(thread: u32) -> Option<usize> {
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    // Field 39; the name, field 2, may have spaces.
    stat.rsplit_once(") ")?.1.split(' ').nth(36)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_told_from_several() {
        let mut v = Voter::default();
        let of = |v: &mut Voter, thread: fn(u32) -> u32| (0..WINDOW).filter_map(|i| v.window_of(thread(i))).last();
        assert_eq!(of(&mut v, |_| 7), Some(Some(7)));
        assert_eq!(of(&mut v, |i| if i % 16 == 5 { 9 } else { 7 }), Some(Some(7)));
        assert_eq!(of(&mut v, |i| i % 2), Some(None));
        assert_eq!(of(&mut v, |i| if i % 4 == 0 { 9 } else { 7 }), Some(None));
        v.bound = Some(0);
        let asked = (0..8).filter(|_| of(&mut v, |_| 7).is_some()).count();
        assert_eq!(asked, 2, "where it runs is looked up now and then");
    }

    #[test]
    fn a_thread_is_found_where_it_was_bound() {
        let cpus = Cpus::here();
        // SAFETY: the number is below the size of the set.
        let cpu = (0..libc::CPU_SETSIZE as usize).find(|&c| unsafe { libc::CPU_ISSET(c, &cpus.0) });
        let cpu = cpu.expect("a thread has a CPU");
        let p = Placement::new();
        std::thread::scope(|s| {
            s.spawn(|| {
                p.join();
                p.bind(&Cpus::only(cpu));
                // SAFETY: takes nothing, cannot fail.
                assert_eq!(cpu_of(unsafe { libc::gettid() } as u32), Some(cpu));
                p.bind(&p.all);
            });
        });
    }
}
