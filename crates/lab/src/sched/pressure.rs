//! Pressure stall information (PSI): stalled and productive threads, counted for every group.

use refault_mm::{Psi, PsiKind, PsiLine};

/// State of a thread in pressure accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum PsiState {
    /// Asleep, or waiting for something that is not memory.
    #[default]
    Idle,
    /// Running or waiting for a CPU.
    Productive,
    /// Reclaiming, throttled, or waiting for a page that was in the working set.
    Stalled,
}

/// One group.
#[derive(Debug)]
struct Group {
    psi: Psi,
    /// Threads by state.
    count: [u32; 3],
}

/// The machine (number 0) and the memcgs (their index + 1).
#[derive(Debug)]
pub(crate) struct Pressure {
    groups: Vec<Group>,
}

impl Pressure {
    pub(crate) fn new(cpus: u32, groups: usize) -> Pressure {
        Pressure { groups: (0..groups).map(|_| Group { psi: Psi::new(cpus), count: [0; 3] }).collect() }
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
            g.psi.set(now_ns, g.count[PsiState::Stalled as usize], g.count[PsiState::Productive as usize]);
        }
    }

    pub(crate) fn read(&mut self, group: usize, now_ns: u64, kind: PsiKind) -> PsiLine {
        self.groups[group].psi.read(now_ns, kind)
    }

    /// The highest averages, of 10, 60 and 300 seconds.
    pub(crate) fn peaks(&mut self, group: usize, now_ns: u64, kind: PsiKind) -> [f64; 3] {
        self.groups[group].psi.peaks(now_ns, kind)
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }
}
