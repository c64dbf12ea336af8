//! The processor that serves the faults of a memory: the one on which they are made.
//!
//! A thread that faults sleeps until another thread has served the fault, so its processor is free
//! for the serving thread. On another processor, both wakes are interrupts, and interrupt what runs
//! there. The same processor pays where nearly all faults are one thread's. For a server of several
//! threads that run here and there, the scheduler chooses.
//!
//! Linux has nothing like it: a wake that tells the scheduler that the waker is about to sleep
//! (`WF_SYNC`) is the nearest, and userfaultfd makes none.

/// Faults in a window; each window ends with a decision.
const WINDOW: u32 = 64;
/// Faults of a window that one thread must have made, to count as the only one.
const MOST: u32 = 56;
/// Windows at most between two looks at where the thread runs: it may have moved.
const PATIENCE: u32 = 4;

/// Step to take at the end of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServingCpuStep {
    /// Where does this thread run? It is told by [`ServingCpu::runs_on`].
    Look(u32),
    /// Several threads fault: serve them anywhere.
    Anywhere,
}

/// The processor that serves the faults of a memory.
#[derive(Clone, Debug, Default)]
pub struct ServingCpu {
    /// Thread with the most faults, by the majority vote of Boyer and Moore.
    candidate: u32,
    score: u32,
    seen: u32,
    /// Consecutive windows of one thread.
    windows: u32,
    cpu: Option<usize>,
}

impl ServingCpu {
    /// A fault of a thread.
    pub fn fault_of(&mut self, thread: u32) -> Option<ServingCpuStep> {
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
            return self.cpu.take().map(|_| ServingCpuStep::Anywhere);
        }
        self.windows += 1;
        let due = self.cpu.is_none() || self.windows.is_multiple_of(PATIENCE);
        due.then_some(ServingCpuStep::Look(self.candidate))
    }

    /// Where the thread runs that was asked about. Whether that is another processor than before.
    pub fn runs_on(&mut self, cpu: usize) -> bool {
        self.cpu.replace(cpu) != Some(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a window of faults and returns the step that it leads to.
    fn window(rule: &mut ServingCpu, thread: fn(u32) -> u32) -> Option<ServingCpuStep> {
        (0..WINDOW).filter_map(|i| rule.fault_of(thread(i))).last()
    }

    #[test]
    fn one_thread_is_told_from_several() {
        let mut rule = ServingCpu::default();
        assert_eq!(window(&mut rule, |_| 7), Some(ServingCpuStep::Look(7)));
        assert_eq!(window(&mut rule, |i| if i % 16 == 5 { 9 } else { 7 }), Some(ServingCpuStep::Look(7)));
        assert_eq!(window(&mut rule, |i| i % 2), None, "they are served anywhere as it is");
        assert_eq!(window(&mut rule, |_| 7), Some(ServingCpuStep::Look(7)));
        assert!(rule.runs_on(1));
        assert_eq!(window(&mut rule, |i| if i % 4 == 0 { 9 } else { 7 }), Some(ServingCpuStep::Anywhere));
        assert_eq!(window(&mut rule, |i| i % 2), None);
    }

    #[test]
    fn a_thread_is_looked_for_now_and_then() {
        let mut rule = ServingCpu::default();
        assert!(rule.runs_on(0));
        let asked = (0..8).filter(|_| window(&mut rule, |_| 7).is_some()).count();
        assert_eq!(asked, 2);
        assert!(!rule.runs_on(0) && rule.runs_on(1), "it is told when it moved");
    }
}
