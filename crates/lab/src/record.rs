//! Changes in the counters of the machine by each time through a loop, recorded while it runs.
//!
//! `on_cpu` begins and ends iterations, `machine` reads what was recorded. It calls the engine for
//! its counters.

use std::collections::BTreeMap;

use refault_mm::{Counter, Engine, Gauge, MemcgId};

use crate::results::{LoopResult, MemcgResult};
use crate::scenario::{Scenario, TaskSpec, series_counters, size_counter_kinds, size_counter_name};
use crate::task::Task;

/// The loop of a task that is recorded.
#[derive(Clone, Debug, Default)]
struct Record {
    /// The counters when the current iteration began.
    since: BTreeMap<String, u64>,
    /// Changes by each time through that is over.
    iterations: Vec<BTreeMap<String, u64>>,
}

/// By task specification: the record of its recorded loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(BTreeMap<usize, Record>);

impl Records {
    /// A task enters a phase: if a recorded loop begins with it, what counts from here on.
    pub(crate) fn start(&mut self, spec: &TaskSpec, task: &Task, engine: &Engine) {
        if task.iteration() == 0 && spec.loops.iter().any(|l| l.record && l.phases.start == task.phase) {
            self.0.entry(task.spec).or_default().since = counters(engine);
        }
    }

    /// A task has gone through a loop.
    pub(crate) fn end_iteration(&mut self, spec: &Scenario, task: usize, l: usize, engine: &Engine) {
        if !spec.tasks[task].loops[l].record {
            return;
        }
        let Some(record) = self.0.get_mut(&task) else { return };
        let since = std::mem::replace(&mut record.since, counters(engine));
        // Counters do not go back.
        let change = record
            .since
            .iter()
            .map(|(name, n)| (name.clone(), n.saturating_sub(since.get(name).copied().unwrap_or(0))));
        record.iterations.push(change.collect());
    }

    /// Changes that were recorded, by task.
    pub(crate) fn results(&self, spec: &Scenario) -> Vec<LoopResult> {
        let result = |(&task, record): (&usize, &Record)| LoopResult {
            task: spec.tasks[task].name.clone(),
            iterations: record.iterations.clone(),
        };
        self.0.iter().map(result).collect()
    }
}

/// Everything that counts up, by name.
fn counters(engine: &Engine) -> BTreeMap<String, u64> {
    let vmstat = engine.vmstat();
    let vmstat = vmstat.iter().map(|(name, n)| (name.to_owned(), n));
    vmstat.chain(size_counters(engine)).collect()
}

/// Values of the counters and sizes that are columns of a time series beside its own.
pub(crate) fn column_values(engine: &Engine, has_nodes: bool) -> impl Iterator<Item = f64> {
    let (vmstat, sizes) = (engine.vmstat(), engine.size_stats().clone());
    let sizes_now = engine.node_gauges().into_iter().map(|g| g.value as f64);
    let counters = series_counters(has_nodes).map(move |c| vmstat.get(c) as f64);
    sizes_now.chain(counters).chain(size_counter_kinds().map(move |(o, c)| sizes.get(o, c) as f64))
}

/// Values of the counters and sizes of a group that are columns of a time series.
pub(crate) fn group_values(engine: &Engine, id: MemcgId) -> impl Iterator<Item = f64> {
    let stats = engine.memcg_tree_stats(id);
    let sizes = engine.memcg_tree_gauges(id).into_iter().map(|g| g.value as f64);
    Counter::ALL.iter().map(move |&c| stats.get(c) as f64).chain(sizes)
}

/// Values of the same columns for a group that is gone: its last counters, and sizes of 0.
pub(crate) fn gone_values(last: &MemcgResult) -> impl Iterator<Item = f64> {
    Counter::ALL.iter().map(|c| last.counter(c.name()) as f64).chain([0.0; Gauge::OF_MEMCG.len()])
}

/// The counters of each size of folios, as `mthp.64kB.swpout`.
pub(crate) fn size_counters(engine: &Engine) -> Vec<(String, u64)> {
    let stats = engine.size_stats();
    size_counter_kinds().map(|(o, c)| (size_counter_name(o, c), stats.get(o, c))).collect()
}
