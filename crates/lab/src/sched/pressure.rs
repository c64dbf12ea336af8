//! Pressure stall information (PSI): stalled and productive threads, counted for every group.
//!
//! Mechanism: `docs/mechanisms.md#pressure-stall-information`.

use refault_mm::{Psi, PsiKind, PsiLine};

/// State of a thread in pressure accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum PsiState {
    /// Asleep, or waiting for something that is neither memory nor a device.
    #[default]
    Idle,
    /// Running or waiting for a CPU.
    Productive,
    /// Reclaiming, or reading a page of the working set, with a CPU.
    Reclaiming,
    /// In a stall, and waiting for a CPU: to reclaim, or to see that its page is there.
    Queued,
    /// Asleep: throttled.
    Stalled,
    /// Asleep until a device has answered.
    Io,
    /// The same, for a page that was in the working set.
    Refault,
}

/// States that there are.
const STATES: usize = PsiState::Refault as usize + 1;

impl PsiState {
    /// The state of a thread that sleeps so, for a device or not.
    pub(super) fn asleep(self, for_device: bool) -> PsiState {
        match (self, for_device) {
            (PsiState::Idle, true) => PsiState::Io,
            (PsiState::Stalled, true) => PsiState::Refault,
            (state, _) => state,
        }
    }
}

/// The resource that threads lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Memory,
    Io,
}

/// One group.
#[derive(Debug)]
struct Group {
    memory: Psi,
    io: Psi,
    /// Threads by state.
    count: [u32; STATES],
}

impl Group {
    fn new(cpus: u32) -> Group {
        Group { memory: Psi::new(cpus), io: Psi::new(cpus), count: [0; STATES] }
    }

    fn of(&mut self, resource: Resource) -> &mut Psi {
        match resource {
            Resource::Memory => &mut self.memory,
            Resource::Io => &mut self.io,
        }
    }

    /// Threads were counted anew. A CPU on which one reclaims is lost to memory, whoever waits for
    /// it; to a device nothing is lost while anybody may run.
    fn update(&mut self, now_ns: u64, cpus: u32) {
        let of = |state: PsiState| self.count[state as usize];
        let reclaiming = of(PsiState::Reclaiming);
        let productive = of(PsiState::Productive);
        let (queued, refaults) = (of(PsiState::Queued), of(PsiState::Refault));
        let stalled = reclaiming + queued + of(PsiState::Stalled) + refaults;
        let waiting = of(PsiState::Io) + refaults;
        self.memory.set(now_ns, stalled, productive.min(cpus.saturating_sub(reclaiming)));
        self.io.set(now_ns, waiting, productive + reclaiming + queued);
    }
}

/// The machine (number 0) and the memcgs (their index + 1).
#[derive(Debug)]
pub(crate) struct Pressure {
    cpus: u32,
    groups: Vec<Group>,
}

impl Pressure {
    pub(crate) fn new(cpus: u32, groups: usize) -> Pressure {
        Pressure { cpus: cpus.max(1), groups: (0..groups).map(|_| Group::new(cpus)).collect() }
    }

    /// A thread of these groups changes its state.
    pub(crate) fn change(&mut self, now_ns: u64, groups: &[usize], from: PsiState, to: PsiState) {
        if from == to {
            return;
        }
        for &g in groups {
            let g = &mut self.groups[g];
            // A thread that is new comes from nowhere: idle ones need not be known.
            if from != PsiState::Idle {
                g.count[from as usize] -= 1;
            }
            if to != PsiState::Idle {
                g.count[to as usize] += 1;
            }
            g.update(now_ns, self.cpus);
        }
    }

    pub(crate) fn read(&mut self, group: usize, now_ns: u64, resource: Resource, kind: PsiKind) -> PsiLine {
        self.groups[group].of(resource).read(now_ns, kind)
    }

    /// The highest averages of memory, of 10, 60 and 300 seconds.
    pub(crate) fn peaks(&mut self, group: usize, now_ns: u64, kind: PsiKind) -> [f64; 3] {
        self.groups[group].memory.peaks(now_ns, kind)
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(p: &mut Pressure, at_ns: u64, resource: Resource) -> [u64; 2] {
        [PsiKind::Some, PsiKind::Full].map(|kind| p.read(0, at_ns, resource, kind).total_us)
    }

    #[test]
    fn regression_a_cpu_that_reclaims_is_lost_to_memory_whoever_waits_for_it() {
        let mut p = Pressure::new(1, 1);
        p.change(0, &[0], PsiState::Idle, PsiState::Reclaiming);
        p.change(0, &[0], PsiState::Idle, PsiState::Productive);
        assert_eq!(total(&mut p, 1_000_000, Resource::Memory), [1000, 1000]);
        assert_eq!(total(&mut p, 1_000_000, Resource::Io), [0, 0]);
        // The thread sleeps, and the other one has the CPU.
        p.change(1_000_000, &[0], PsiState::Reclaiming, PsiState::Stalled);
        assert_eq!(total(&mut p, 2_000_000, Resource::Memory), [2000, 1000]);
    }

    #[test]
    fn a_wait_for_a_page_of_the_working_set_is_both_and_any_other_is_io() {
        let mut p = Pressure::new(1, 1);
        p.change(0, &[0], PsiState::Idle, PsiState::Idle.asleep(true));
        assert_eq!(
            (total(&mut p, 1_000_000, Resource::Io), total(&mut p, 1_000_000, Resource::Memory)),
            ([1000; 2], [0; 2])
        );
        p.change(1_000_000, &[0], PsiState::Io, PsiState::Stalled.asleep(true));
        assert_eq!(
            (total(&mut p, 2_000_000, Resource::Io), total(&mut p, 2_000_000, Resource::Memory)),
            ([2000; 2], [1000; 2])
        );
        // Somebody else runs: some waits, and not all.
        p.change(2_000_000, &[0], PsiState::Idle, PsiState::Productive);
        assert_eq!(
            (total(&mut p, 3_000_000, Resource::Io), total(&mut p, 3_000_000, Resource::Memory)),
            ([3000, 2000], [2000, 1000])
        );
    }
}
