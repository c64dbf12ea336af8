//! Samples of the time series, and the end of a run.

use refault_mm::{Counter, MemcgId, NodeId, PsiKind};

use super::state::Machine;
use crate::groups::Group;
use crate::record::{column_values, gone_values, group_values};
use crate::results::RunResult;
use crate::scenario::group_columns;
use crate::sched::{Event, Resource, Thread, Threads};
use crate::task::{RecentLatency, Task};

/// Latencies of the tasks at the last sample.
#[derive(Debug, Default)]
pub(super) struct SampledLatencies {
    at_ns: u64,
    /// By task specification: the median and the 99th percentile, in nanoseconds.
    of_tasks: Vec<[f64; 2]>,
    /// All copies of one task together; empty between samples.
    of_copies: RecentLatency,
}

impl SampledLatencies {
    pub(super) fn new(tasks: usize) -> SampledLatencies {
        SampledLatencies { of_tasks: vec![[0.0; 2]; tasks], ..SampledLatencies::default() }
    }
}

impl Machine {
    /// A row of the time series, and the next one announced.
    pub(super) fn take_sample(&mut self) -> Result<(), String> {
        let now_ns = self.clock.now_ns();
        let [ops, accesses, hits] = self.totals();
        let engine = &self.kernel.engine;
        let gauges = engine.node_gauges();
        let get = |name: &str| gauges.iter().find(|g| g.name == name).map_or(0.0, |g| g.value as f64);
        let vmstat = engine.vmstat();
        let refaults = vmstat.get(Counter::WorkingsetRefaultFile) + vmstat.get(Counter::WorkingsetRefaultAnon);
        let seqs = engine.lru_gen_seqs(MemcgId::ROOT);
        let psi =
            [PsiKind::Some, PsiKind::Full].map(|k| self.threads.pressure.read(0, now_ns, Resource::Memory, k).avg10);
        let cpu_us = self.reclaim_cpu_us();
        let mut row = vec![
            ops as f64,
            accesses as f64,
            hits as f64,
            engine.free_pages() as f64,
            get("inactive_anon") + get("active_anon"),
            get("inactive_file") + get("active_file"),
            engine.swap_used_pages() as f64,
            refaults as f64,
            vmstat.get(Counter::Pswpout) as f64,
            get("file_dirty"),
            seqs.0 as f64,
            seqs.1 as f64,
            psi[0],
            psi[1],
            cpu_us[0],
            cpu_us[1],
        ];
        row.extend(self.tiering.iter().flat_map(|tiering| tiering.columns(&self.kernel)));
        row.extend(column_values(engine, self.tiering.is_some()));
        self.sample_tasks(now_ns, &mut row);
        for group in 1..self.threads.pressure.len() {
            self.sample_group(group, now_ns, &mut row);
        }
        self.series.push(now_ns, &row);
        self.usage.sample(&self.threads, now_ns, self.spec.sample_ns);
        if self.check {
            self.conserves()?;
        }
        // Samples alone do not keep a machine going in which nothing else happens.
        if self.clock.is_idle() {
            return Ok(());
        }
        self.clock.push(now_ns + self.spec.sample_ns.max(1), Event::Sample);
        Ok(())
    }

    /// Appends the columns of the tasks, all copies of each together. Latencies begin anew, but for
    /// a row that takes the place of one of the same time.
    fn sample_tasks(&mut self, now_ns: u64, row: &mut Vec<f64>) {
        let is_again = std::mem::replace(&mut self.latencies.at_ns, now_ns) == now_ns;
        for n in 0..self.spec.tasks.len() {
            let mut sum = [0; 3];
            for thread in Threads::of_task(&self.spec, n) {
                let Some(task) = self.threads[thread].task_mut() else { continue };
                sum = task.all_done().fold(sum, |sum, d| [sum[0] + d.ops, sum[1] + d.accesses, sum[2] + d.hits]);
                self.latencies.of_copies.take(&mut task.recent);
            }
            let before = &mut self.latencies.of_tasks[n];
            let none = if is_again { *before } else { [0.0; 2] };
            *before = self.latencies.of_copies.take_quantiles_ns([0.5, 0.99]).unwrap_or(none);
            row.extend(sum.map(|n: u64| n as f64));
            row.extend(*before);
        }
    }

    /// Appends the columns of a group; zeros while the group does not exist.
    fn sample_group(&mut self, group: usize, now_ns: u64, row: &mut Vec<f64>) {
        let to = row.len() + group_columns();
        match self.groups.get(group - 1) {
            &Group::There { id, .. } => {
                row.extend(group_values(&self.kernel.engine, id));
                let psi = [PsiKind::Some, PsiKind::Full]
                    .map(|k| self.threads.pressure.read(group, now_ns, Resource::Memory, k).avg10);
                row.extend(psi);
            }
            Group::Removed(last) => row.extend(gone_values(last)),
            Group::Absent => {}
        }
        row.resize(to, 0.0);
    }

    /// CPU time of kswapd, of all nodes, and of direct reclaim: so far, in microseconds.
    fn reclaim_cpu_us(&self) -> [f64; 2] {
        let nodes = (0..self.spec.machine.nodes.len().max(1)).map(|n| NodeId(n as u8));
        let kswapd = nodes.map(|node| self.threads.ran_ns(self.threads.kswapd(node), self.clock.now_ns())).sum();
        [kswapd, self.direct_reclaim_ns].map(|ns: u64| (ns / 1000) as f64)
    }

    /// Operations, accesses and hits of all tasks.
    fn totals(&self) -> [u64; 3] {
        let done = self.threads.iter().filter_map(Thread::task).flat_map(Task::all_done);
        done.fold([0; 3], |sum, d| [sum[0] + d.ops, sum[1] + d.accesses, sum[2] + d.hits])
    }

    /// The end: checks, and the result.
    pub(super) fn finish(mut self) -> Result<RunResult, String> {
        self.threads.end_waits(self.clock.now_ns());
        self.take_sample()?;
        if self.check {
            self.kernel.engine.validate()?;
        }
        Ok(self.result())
    }
}
