//! A lock as a server: the times at which it is held.
//!
//! The work of a thread in its burst is decided when the burst begins, so requests do not come in
//! the order of their times. A lock therefore remembers when it is held, and a request gets the
//! first gap that is long enough. It is never held by two at once, and never idle for the want of
//! order.

use std::collections::VecDeque;

/// Counts and times of a lock, from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LockStats {
    /// Times that the lock was taken, and how many of them had to wait.
    pub(crate) acquisitions: u64,
    pub(crate) contended: u64,
    /// Nanoseconds that the lock was held, and that CPUs waited for it.
    pub(crate) hold_ns: u64,
    pub(crate) wait_ns: u64,
}

impl LockStats {
    pub(super) fn plus(self, other: LockStats) -> LockStats {
        LockStats {
            acquisitions: self.acquisitions + other.acquisitions,
            contended: self.contended + other.contended,
            hold_ns: self.hold_ns + other.hold_ns,
            wait_ns: self.wait_ns + other.wait_ns,
        }
    }
}

/// One lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    /// Times at which the lock is held, (from, to) in nanoseconds, in order and not overlapping.
    held: VecDeque<(u64, u64)>,
    stats: LockStats,
}

impl Lock {
    /// Nobody asks for a time before this any more.
    pub(super) fn forget_before(&mut self, ns: u64) {
        while self.held.front().is_some_and(|&(_, to)| to <= ns) {
            self.held.pop_front();
        }
    }

    /// Takes the lock at `at_ns` or as soon as it is free, for `hold_ns`. Returns the nanoseconds
    /// waited. A waiter gets the lock `handover_ns` after the holder before it has let go.
    pub(super) fn acquire(&mut self, at_ns: u64, hold_ns: u64, handover_ns: u64) -> u64 {
        self.stats.acquisitions += 1;
        self.stats.hold_ns += hold_ns;
        let mut at = self.held.partition_point(|&(_, to)| to <= at_ns);
        let (mut from, mut needed) = (at_ns, hold_ns);
        while let Some(&(start, end)) = self.held.get(at) {
            if from + needed <= start {
                break;
            }
            // Waiters are next; the time of the handover is part of what the lock is taken.
            (from, needed) = (end, hold_ns + handover_ns);
            at += 1;
        }
        self.insert(at, from, from + needed);
        let wait_ns = from + needed - hold_ns - at_ns;
        self.stats.contended += u64::from(wait_ns > 0);
        self.stats.wait_ns += wait_ns;
        wait_ns
    }

    /// Adds a time at which the lock is held, at index `at` of the list.
    fn insert(&mut self, at: usize, from: u64, to: u64) {
        if from == to {
            return;
        }
        let joins_next = self.held.get(at).is_some_and(|next| next.0 == to);
        match at.checked_sub(1).and_then(|before| self.held.get_mut(before)) {
            Some(before) if before.1 == from => before.1 = to,
            _ if joins_next => self.held[at].0 = from,
            _ => self.held.insert(at, (from, to)),
        }
    }

    pub(super) fn stats(&self) -> LockStats {
        self.stats
    }

    /// Checks that the lock is held by one CPU at a time.
    pub(super) fn validate(&self) -> Result<(), String> {
        if let Some((from, to)) = self.held.iter().find(|(from, to)| from >= to) {
            return Err(format!("is held from {from} to {to} ns"));
        }
        let pairs = self.held.iter().zip(self.held.iter().skip(1));
        match pairs.into_iter().find(|(one, next)| one.1 > next.0) {
            Some((one, next)) => Err(format!("is held twice: {one:?} and {next:?} ns")),
            None => Ok(()),
        }
    }
}
