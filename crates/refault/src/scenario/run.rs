//! A run of a scenario, and the numbers that every form of the output has.

use crate::runner::FinishedRun;
use refault_lab::machine::{RunResult, TaskResult};
use refault_lab::scenario::{PolicySpec, Scenario};
use refault_mm::SwapMap;

/// A run that is over.
#[derive(Clone, Debug)]
pub struct ScenarioRun {
    /// Scenario that ran, scaled.
    pub scenario: Scenario,
    /// Divisor of sizes, amounts of work and times.
    pub scale: f64,
    /// Under which policy.
    pub policy: PolicySpec,
    /// Tasks, groups, events, devices and the time series.
    pub done: FinishedRun,
    /// Write the generations at the end.
    pub lru_gen: bool,
    /// Write the clusters of the swap devices at the end.
    pub swap_map: bool,
}

/// Bytes of a page.
const PAGE_BYTES: f64 = 4096.0;

impl ScenarioRun {
    /// Tasks, groups, events, devices and the time series.
    pub fn result(&self) -> &RunResult {
        &self.done.result
    }

    /// The swap devices when the last task had done its work, with the names of the devices they
    /// are on.
    pub fn swap(&self) -> impl Iterator<Item = (&str, &SwapMap)> {
        self.result().swap.iter().map(|s| (s.device.as_str(), &s.map))
    }

    /// Whether an event of the scenario killed a task of that name.
    pub fn is_victim(&self, task: &str) -> bool {
        self.result().timeline.iter().any(|event| event.victims.iter().any(|victim| victim == task))
    }

    /// The sum of some counters of the machine.
    pub fn count(&self, names: &[&str]) -> u64 {
        let counters = self.result().memcgs.first().map(|machine| &machine.counters);
        names.iter().filter_map(|name| counters?.get(*name)).sum()
    }

    /// The numbers of the machine that tables and CSV have, by their names there.
    pub fn machine(&self) -> [(&'static str, u64); 7] {
        let total_us = |kind: usize| self.result().memcgs.first().map_or(0, |machine| machine.psi[kind].total_us);
        [
            ("refaults", self.count(&["workingset_refault_anon", "workingset_refault_file"])),
            ("swap_ins", self.count(&["pswpin"])),
            ("swap_outs", self.count(&["pswpout"])),
            ("free_pages", self.result().node.free_pages),
            ("psi_some_us", total_us(0)),
            ("psi_full_us", total_us(1)),
            ("oom_kills", self.result().oom_kills),
        ]
    }
}

/// Amount per second of the time over which the task was measured.
pub fn per_second(task: &TaskResult, amount: f64) -> f64 {
    if task.seconds > 0.0 { amount / task.seconds } else { 0.0 }
}

/// Bytes that were accessed, pages in full.
pub fn bytes(task: &TaskResult) -> f64 {
    task.accesses as f64 * PAGE_BYTES
}
