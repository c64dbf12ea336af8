//! A machine on its way through a scenario: the parts, and who looks at them.

use refault_mm::Engine;

use super::requests::Requests;
use super::sample::SampledLatencies;
use super::watch::WatchState;
use crate::groups::Groups;
use crate::kernel::{CallCost, LabKernel};
use crate::metric::MetricSeries;
use crate::on_cpu::{EventProgress, OnCpu};
use crate::programs::Programs;
use crate::record::Records;
use crate::results::{Ending, SwapResult};
use crate::scenario::Scenario;
use crate::sched::{Clock, Threads, Usage};
use crate::tiers::Tiering;

/// A machine on its way through a scenario.
pub struct Machine {
    pub(super) spec: Scenario,
    pub(super) clock: Clock,
    pub(super) kernel: LabKernel,
    pub(super) threads: Threads,
    pub(super) programs: Programs,
    pub(super) groups: Groups,
    /// By event of the scenario: its progress.
    pub(super) event_progress: Vec<EventProgress>,
    /// By event of the scenario: the state of its watch.
    pub(super) watching: Vec<WatchState>,
    pub(super) requests: Requests,
    pub(super) records: Records,
    pub(super) series: MetricSeries,
    pub(super) latencies: SampledLatencies,
    /// CPU time of the threads of the kernel.
    pub(super) usage: Usage,
    /// CPU time of reclaim that tasks did themselves, in all phases.
    pub(super) direct_reclaim_ns: u64,
    /// Where there are nodes with latency and bandwidth.
    pub(super) tiering: Option<Tiering>,
    pub(super) ending: Option<Ending>,
    /// The swap devices when the last task that counts had done its work, before its memory was
    /// free.
    pub(super) last_swap: Option<Vec<SwapResult>>,
    pub(super) check: bool,
}

impl Machine {
    /// Checks what must hold at every sample and at the end.
    #[must_use]
    pub fn checked(mut self) -> Machine {
        self.check = true;
        self
    }

    /// An effect of the engine is not carried out from now on.
    #[cfg(test)]
    pub(crate) fn set_deaf_to(&mut self, effect: Option<&'static str>) {
        self.kernel.hw.deaf_to = effect;
    }

    /// The virtual time.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Events that were handled.
    pub fn events(&self) -> u64 {
        self.clock.handled()
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine {
        &self.kernel.engine
    }

    /// The state that a thread with a CPU may change, and the progress of events.
    pub(super) fn on_cpu(&mut self) -> (OnCpu<'_>, &mut [EventProgress]) {
        let on_cpu = OnCpu {
            spec: &self.spec,
            clock: &mut self.clock,
            kernel: &mut self.kernel,
            threads: &mut self.threads,
            programs: &mut self.programs,
            groups: &self.groups,
            tiering: self.tiering.as_mut(),
            records: &mut self.records,
            ending: &mut self.ending,
        };
        (on_cpu, &mut self.event_progress)
    }

    /// Carries out what an engine call asked for for which nobody's CPU time is charged; what it
    /// would cost.
    pub(super) fn settle(&mut self) -> CallCost {
        self.kernel.settle(self.clock.now_ns(), &mut self.clock, &mut self.threads)
    }
}
