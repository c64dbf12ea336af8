//! Pressure: the share of time that is lost to waiting for memory, in the meaning of
//! `/proc/pressure/memory` ([`Psi`]).
//!
//! Stalled are threads that wait for a page that was in memory before, for room, or because of
//! `memory.high`; their number is known at any time. Threads that work are looked at now and then
//! (`/proc/PID/task/TID/stat`): threads that ran then or were stalled are not idle, and as many of
//! them as are not stalled at another time are productive then.

use refault_mm::{Psi, PsiKind};

use super::core::Core;
use super::maps;

/// Nanoseconds between two looks at threads, while any are stalled now and then.
const LOOK_EVERY_NS: u64 = 20_000_000;
/// Most threads that a look covers.
const MOST_THREADS: usize = 64;
/// Looks of which the largest count is taken: a thread that has just faulted is neither seen to run
/// nor known to wait.
const LOOKS: usize = 4;

/// Threads that wait for memory, and threads that work.
pub(super) struct Pressure {
    psi: Psi,
    stalled: u32,
    /// There were stalls since the last look.
    had_stalls: bool,
    looked_ns: u64,
    /// Threads that were not idle, at the last looks.
    busy: [u32; LOOKS],
    next: usize,
}

impl Pressure {
    pub(super) fn new() -> Pressure {
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        Pressure { psi: Psi::new(cpus), stalled: 0, had_stalls: false, looked_ns: 0, busy: [0; LOOKS], next: 0 }
    }

    fn set(&mut self, now_ns: u64, stalled: u32) {
        self.stalled = stalled;
        self.had_stalls |= stalled > 0;
        let busy = self.busy.iter().max().copied().unwrap_or(0);
        self.psi.set(now_ns, stalled, busy.saturating_sub(stalled));
    }

    /// Microseconds lost: while some threads were stalled, and while nobody worked instead.
    pub(super) fn total_us(&self, now_ns: u64) -> (u64, u64) {
        let mut psi = self.psi.clone();
        (psi.read(now_ns, PsiKind::Some).total_us, psi.read(now_ns, PsiKind::Full).total_us)
    }
}

impl Core {
    /// Notes how many are stalled, if that has changed.
    pub(super) fn note_pressure(&mut self) {
        let stalled = self.stalled() as u32;
        if stalled != self.pressure.stalled {
            self.pressure.set(self.now_ns, stalled);
        }
    }

    /// Looks which threads work. It is done under the lock, so that no agent is at work and the
    /// stalled threads are known.
    pub(super) fn look_at_threads(&mut self) {
        if !self.pressure.had_stalls || self.now_ns - self.pressure.looked_ns < LOOK_EVERY_NS {
            return;
        }
        let mut left = MOST_THREADS;
        let running: usize = self.pids().into_iter().map(|(_, pid)| maps::running(pid, &mut left)).sum();
        let stalled = self.stalled() as u32;
        let (p, now_ns) = (&mut self.pressure, self.now_ns);
        p.busy[p.next] = running as u32 + stalled;
        p.next = (p.next + 1) % LOOKS;
        (p.looked_ns, p.had_stalls) = (now_ns, false);
        p.set(now_ns, stalled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_wait_at_once_lose_no_more_than_all_of_the_time() {
        let mut p = Pressure { psi: Psi::new(2), ..Pressure::new() };
        p.busy[0] = 2;
        // Two threads wait for a second, and one of them for another second.
        p.set(0, 2);
        p.set(1_000_000_000, 1);
        p.set(2_000_000_000, 0);
        assert_eq!(p.total_us(4_000_000_000), (1_500_000, 1_500_000));
        // On one processor somebody works for the thread that waits.
        let mut p = Pressure { psi: Psi::new(1), ..Pressure::new() };
        p.busy[3] = 2;
        p.set(0, 2);
        p.set(1_000_000_000, 1);
        p.set(2_000_000_000, 0);
        assert_eq!(p.total_us(4_000_000_000), (2_000_000, 1_000_000));
    }

    #[test]
    fn where_nobody_was_looked_at_those_who_wait_are_all() {
        let mut p = Pressure { psi: Psi::new(4), ..Pressure::new() };
        p.set(0, 1);
        assert_eq!(p.total_us(3_000_000), (3_000, 3_000));
    }
}
