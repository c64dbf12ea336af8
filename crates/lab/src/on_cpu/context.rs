//! State that a thread with a CPU may change.

use crate::groups::Groups;
use crate::kernel::{CallCost, LabKernel};
use crate::programs::Programs;
use crate::record::Records;
use crate::results::Ending;
use crate::scenario::Scenario;
use crate::sched::{Clock, Stop, Threads};
use crate::task::Task;
use crate::tiers::Tiering;

/// Parts of the machine that a running thread may use: not the assignment of CPUs, devices or
/// samples.
pub(crate) struct OnCpu<'a> {
    pub(crate) spec: &'a Scenario,
    pub(crate) clock: &'a mut Clock,
    pub(crate) kernel: &'a mut LabKernel,
    pub(crate) threads: &'a mut Threads,
    pub(crate) programs: &'a mut Programs,
    pub(crate) groups: &'a Groups,
    /// Where there are nodes with latency and bandwidth.
    pub(crate) tiering: Option<&'a mut Tiering>,
    pub(crate) records: &'a mut Records,
    /// How the run ends; none: not known yet.
    pub(crate) ending: &'a mut Option<Ending>,
}

/// How an access goes on.
pub(super) enum AccessEnd {
    /// The access is done after these nanoseconds.
    Go(u64),
    /// The thread stops after these nanoseconds.
    Stop(u64, Stop),
}

impl OnCpu<'_> {
    /// Carries out what an engine call asked for, and says what it costs.
    pub(super) fn settle(&mut self, at_ns: u64) -> CallCost {
        self.kernel.settle(at_ns, self.clock, self.threads)
    }

    /// A change of the hottest pages: a task leaves (-1) or enters its phase.
    pub(super) fn count_hottest(&mut self, task: &Task, sign: f64) {
        let phase = &self.spec.tasks[task.spec].phases[task.phase];
        self.kernel.hw.hottest.count(sign, |add| task.weigh(phase, add));
    }
}
