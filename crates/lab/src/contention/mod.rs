//! Costs of CPUs to each other: locks that they wait for, and interrupts that they send.
//!
//! A lock is a server with hold times. A CPU that asks while it is held spins until it is free, and
//! that is CPU time of the kernel. A flush of the TLB interrupts every CPU that runs one of the
//! programs whose pages were unmapped; who asks waits until the last of them has answered, and each
//! loses the time of its interrupt. Hold times follow from what the engine did; the times of a
//! handover and of an interrupt are measured (`cargo bench -p refault-lab --bench contention`).
//!
//! | file | what is in it |
//! |---|---|
//! | `spec` | [`ContentionSpec`]: the constants, and where they are from |
//! | `lock` | a lock: when it is held, who waits how long |
//! | `interrupts` | CPUs that interrupt each other |
//! | `demand` | what a call of the engine needs of locks and other CPUs, as a list of steps |
//!
//! It calls nothing: `kernel` says what was done, and charges what is to be waited.
//!
//! Mechanism: `docs/mechanisms.md#contention`.

mod demand;
mod interrupts;
mod lock;
mod spec;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use demand::{ContentionStep, steps};
pub(crate) use demand::{Demand, LockHolds};
pub(crate) use interrupts::InterruptStats;
use interrupts::Interrupts;
use lock::Lock;
pub(crate) use lock::LockStats;
pub use spec::{ContentionSpec, InterruptCosts};

/// Name of a lock, held by one CPU at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockName {
    /// The lists of a group.
    Lruvec(u32),
    /// The map of a swap device.
    SwapDevice(u32),
    /// The pool of a swap device in memory.
    Zsmalloc(u32),
    /// The count of faults under way, of a program or of one of its areas.
    Mmap(u64),
}

impl LockName {
    /// Name of locks of its kind in results.
    fn kind(self) -> &'static str {
        match self {
            LockName::Lruvec(_) => "lruvec",
            LockName::SwapDevice(_) => "swap",
            LockName::Zsmalloc(_) => "zsmalloc",
            LockName::Mmap(_) => "mmap",
        }
    }
}

/// Kinds of locks, in the order of results.
pub(crate) const LOCK_KINDS: [&str; 4] = ["lruvec", "swap", "zsmalloc", "mmap"];

/// Locks and CPUs of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Contention {
    spec: ContentionSpec,
    holds: LockHolds,
    locks: BTreeMap<LockName, Lock>,
    interrupts: Interrupts,
    /// The CPU on which the kernel runs now.
    cpu: Option<usize>,
    /// Time before which no CPU asks for anything any more.
    floor_ns: u64,
    /// By program: whether it has several threads.
    is_threaded: Vec<bool>,
}

impl Contention {
    pub(crate) fn new(spec: ContentionSpec, holds: LockHolds, cpus: usize, is_threaded: Vec<bool>) -> Contention {
        Contention {
            interrupts: Interrupts::new(cpus, spec.interrupts),
            spec,
            holds,
            locks: BTreeMap::new(),
            cpu: None,
            floor_ns: 0,
            is_threaded,
        }
    }

    /// A thread gets a CPU, of this program or of the kernel.
    pub(crate) fn enter(&mut self, cpu: usize, program: Option<u32>, now_ns: u64) {
        self.cpu = Some(cpu);
        self.floor_ns = now_ns;
        self.interrupts.set_running(cpu, program);
    }

    /// Ends the work on the CPU: from now on calls are on behalf of nobody.
    pub(crate) fn leave(&mut self) {
        self.cpu = None;
    }

    /// A thread gives its CPU back.
    pub(crate) fn stop(&mut self, cpu: usize) {
        self.interrupts.set_running(cpu, None);
    }

    /// Time that a CPU has lost to interrupts since that was last asked for.
    pub(crate) fn take_lost_ns(&mut self, cpu: usize) -> u64 {
        self.interrupts.take_lost_ns(cpu)
    }

    /// Nanoseconds that a call of the engine at `at_ns`, with `work_ns` of work of its own, waits
    /// for locks and other CPUs.
    pub(crate) fn wait(&mut self, at_ns: u64, work_ns: u64, demand: &Demand) -> u64 {
        let Some(cpu) = self.cpu else { return 0 };
        let steps = steps(demand, &self.holds);
        // The call needs locks and flushes one after the other, evenly spread over its work.
        let gap_ns = work_ns / (steps.len() as u64 + 1);
        let (mut clock, mut waited) = (at_ns, 0);
        for step in steps {
            clock += gap_ns;
            let ns = match step {
                ContentionStep::Hold(name, hold_ns) => self.acquire(name, clock, hold_ns),
                ContentionStep::Flush(programs) => self.interrupts.flush(cpu, clock, programs, self.floor_ns),
            };
            clock += ns;
            waited += ns;
        }
        waited
    }

    /// Nanoseconds that a fault of a program at `at_ns` waits for faults of the program's other
    /// threads.
    pub(crate) fn fault(&mut self, program: u32, space: usize, at_ns: u64) -> u64 {
        if self.cpu.is_none() || !self.is_threaded.get(program as usize).is_some_and(|&threaded| threaded) {
            return 0;
        }
        let area = if self.holds.lock_per_area { space as u64 + 1 } else { 0 };
        self.acquire(LockName::Mmap(u64::from(program) << 32 | area), at_ns, self.spec.mmap_lock_ns)
    }

    fn acquire(&mut self, name: LockName, at_ns: u64, hold_ns: u64) -> u64 {
        let lock = self.locks.entry(name).or_default();
        lock.forget_before(self.floor_ns);
        lock.acquire(at_ns, hold_ns, self.spec.handover_ns)
    }

    /// Counts and times of all locks of a kind.
    pub(crate) fn stats_of(&self, kind: &str) -> LockStats {
        let of_kind = self.locks.iter().filter(|(name, _)| name.kind() == kind);
        of_kind.fold(LockStats::default(), |sum, (_, lock)| sum.plus(lock.stats()))
    }

    pub(crate) fn interrupt_stats(&self) -> InterruptStats {
        self.interrupts.stats()
    }

    /// Checks invariants: nothing is held by two at once, and nobody is owed time on a CPU on which
    /// nothing runs.
    pub(crate) fn validate(&self) -> Result<(), String> {
        self.locks.iter().try_for_each(|(name, lock)| lock.validate().map_err(|what| format!("{name:?}: {what}")))?;
        self.interrupts.validate()
    }
}
