//! What each time through a loop changed in the counters of the machine.

use std::collections::BTreeMap;

use refault_mm::{SizeCounter, ThpConfig};

use super::Machine;
use super::task::Task;
use crate::scenario::TaskSpec;

/// The loop of a task that is recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// The counters when the current iteration began.
    since: BTreeMap<String, u64>,
    /// What each that is over changed in them.
    pub(super) iterations: Vec<BTreeMap<String, u64>>,
}

/// What each time through a loop of a task changed.
#[derive(Clone, Debug)]
pub struct LoopResult {
    /// The task.
    pub task: String,
    /// For each time the counters of the machine, as far as they count up, less what they were before.
    pub iterations: Vec<BTreeMap<String, u64>>,
}

impl LoopResult {
    /// A number of one time, `N.COUNTER`, counted from 1.
    pub(super) fn one(&self, name: &str) -> Option<f64> {
        let (n, counter) = name.split_once('.')?;
        let at = n.parse::<usize>().ok()?.checked_sub(1)?;
        counted(self.iterations.get(at)?, counter)
    }

    /// A number of several times, `FROM-TO.FOLD.COUNTER`: of those that there were.
    pub(super) fn several(&self, name: &str) -> Option<f64> {
        let (range, rest) = name.split_once('.')?;
        let (fold, counter) = rest.split_once('.')?;
        let (from, to) = range.split_once('-')?;
        let [from, to] = [from, to].map(|n| n.parse::<usize>().ok());
        let times = self.iterations.iter().take(to?).skip(from?.checked_sub(1)?);
        let all: Vec<f64> = times.map(|counters| counted(counters, counter)).collect::<Option<_>>()?;
        let of = |fold: fn(f64, f64) -> f64| all.iter().copied().reduce(fold).unwrap_or(0.0);
        Some(match fold {
            "mean" => all.iter().sum::<f64>() / all.len().max(1) as f64,
            "min" => of(f64::min),
            "max" => of(f64::max),
            "nonzero" => all.iter().filter(|&&n| n != 0.0).count() as f64,
            _ => return None,
        })
    }
}

/// A counter, or what follows from several: of a size of folios `fallback_percent`, those that were split instead of
/// swapped out whole, of both.
pub(super) fn counted(counters: &BTreeMap<String, u64>, name: &str) -> Option<f64> {
    if let Some(size) = name.strip_suffix(".fallback_percent") {
        let of = |what: &str| counters.get(&format!("{size}.{what}")).map(|&n| n as f64);
        let (whole, split) = (of("swpout")?, of("swpout_fallback")?);
        return Some(if whole + split > 0.0 { 100.0 * split / (whole + split) } else { 0.0 });
    }
    counters.get(name).map(|&n| n as f64)
}

impl Machine {
    /// A task enters a phase: if a recorded loop begins with it, what counts from here on.
    pub(super) fn start_recording(&mut self, spec: &TaskSpec, task: &Task) {
        if task.iteration() == 0 && spec.loops.iter().any(|l| l.record && l.phases.start == task.phase) {
            let since = self.counters();
            self.records.entry(task.spec).or_default().since = since;
        }
    }

    /// A task has gone through a loop.
    pub(super) fn record_iteration(&mut self, task: usize, l: usize) {
        if !self.spec.tasks[task].loops[l].record {
            return;
        }
        let now = self.counters();
        let Some(record) = self.records.get_mut(&task) else { return };
        let since = std::mem::replace(&mut record.since, now);
        // Counters do not go back.
        let change = record
            .since
            .iter()
            .map(|(name, n)| (name.clone(), n.saturating_sub(since.get(name).copied().unwrap_or(0))));
        record.iterations.push(change.collect());
    }

    /// Everything that counts up, by name.
    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let vmstat = self.engine.vmstat();
        let vmstat = vmstat.iter().map(|(name, n)| (name.to_owned(), n));
        vmstat.chain(self.size_counters()).collect()
    }

    /// The counters of each size of folios, as `mthp.64kB.swpout`.
    pub(super) fn size_counters(&self) -> Vec<(String, u64)> {
        let sizes = self.engine.size_stats();
        let orders = ThpConfig::MIN_ORDER..=ThpConfig::MAX_ORDER;
        let all = |order: u8| SizeCounter::ALL.iter().map(move |&c| (order, c));
        orders.flat_map(all).map(|(o, c)| (format!("mthp.{}kB.{}", 4u32 << o, c.name()), sizes.get(o, c))).collect()
    }

    /// What was recorded, by task.
    pub(super) fn loop_results(&self) -> Vec<LoopResult> {
        let result = |(&task, record): (&usize, &Record)| LoopResult {
            task: self.spec.tasks[task].name.clone(),
            iterations: record.iterations.clone(),
        };
        self.records.iter().map(result).collect()
    }
}
