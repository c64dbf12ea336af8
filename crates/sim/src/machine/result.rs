//! What a run says in the end, and how its numbers are named.

use std::collections::BTreeMap;

use refault_mm::{PsiKind, PsiLine};

use super::record::{LoopResult, counted};
use super::{Ending, Machine, Work};
use crate::device::{DeviceStats, PAGE_BYTES};
use crate::metric::{Latency, Series};

/// What the copies of a task did in the phases that count.
#[derive(Clone, Debug)]
pub struct TaskResult {
    /// Its name.
    pub name: String,
    /// Copies.
    pub count: u32,
    /// Accesses of a page.
    pub accesses: u64,
    /// Of those, without I/O.
    pub hits: u64,
    /// Operations.
    pub ops: u64,
    /// Accesses that failed.
    pub errors: u64,
    /// From the start of the first to the end of the last copy.
    pub seconds: f64,
    /// Time of all copies in reclaim, in seconds.
    pub reclaim_seconds: f64,
    /// Of operations.
    pub latency: Latency,
}

/// A memcg, or the machine.
#[derive(Clone, Debug)]
pub struct MemcgResult {
    /// Its path; `/` for the machine.
    pub path: String,
    /// Counters and sizes under their kernel names.
    pub counters: BTreeMap<String, u64>,
    /// Memory pressure: some and full.
    pub psi: [PsiLine; 2],
    /// Under multi-gen LRU the oldest generation of file pages, and the youngest; of the machine those of its root group.
    pub seqs: (u64, u64),
}

/// A block device.
#[derive(Clone, Debug)]
pub struct DeviceResult {
    /// Its name.
    pub name: String,
    /// What it did.
    pub stats: DeviceStats,
}

/// The memory node.
#[derive(Clone, Debug, Default)]
pub struct NodeResult {
    /// Free at the end.
    pub free_pages: u64,
    /// All of it.
    pub managed_pages: u64,
    /// Slots of swap in use at the end.
    pub swap_used_pages: u64,
}

/// Everything that a run says.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Virtual time.
    pub seconds: f64,
    /// How it ended.
    pub ending: Ending,
    /// Tasks, in the order of the scenario.
    pub tasks: Vec<TaskResult>,
    /// The machine first, then the memcgs.
    pub memcgs: Vec<MemcgResult>,
    /// Devices, in the order of the scenario.
    pub devices: Vec<DeviceResult>,
    /// Memory.
    pub node: NodeResult,
    /// Counters of the sizes of folios, as `mthp.64kB.swpout`.
    pub sizes: BTreeMap<String, u64>,
    /// Loops that were recorded, in the order of their tasks.
    pub loops: Vec<LoopResult>,
    /// Tasks that the out-of-memory killer ended.
    pub oom_kills: u64,
    /// Samples over time.
    pub series: Series,
    /// The generations at the end, as `lru_gen_full` shows them.
    pub lru_gen: String,
    /// Events that were handled.
    pub events: u64,
}

impl TaskResult {
    /// One of its numbers.
    fn metric(&self, name: &str) -> Option<f64> {
        let rate = |n: u64| if self.seconds > 0.0 { n as f64 / self.seconds } else { 0.0 };
        Some(match name {
            "ops" => self.ops as f64,
            "ops_per_s" => rate(self.ops),
            "accesses" => self.accesses as f64,
            "accesses_per_s" => rate(self.accesses),
            "bytes_per_s" => rate(self.accesses * PAGE_BYTES),
            "seconds" => self.seconds,
            "hit_rate" => self.hit_rate(),
            "errors" => self.errors as f64,
            "p50_ns" => self.latency.p50_ns() as f64,
            "p99_ns" => self.latency.p99_ns() as f64,
            _ => return None,
        })
    }

    /// Hits of all accesses.
    pub fn hit_rate(&self) -> f64 {
        if self.accesses > 0 { self.hits as f64 / self.accesses as f64 } else { 0.0 }
    }
}

impl RunResult {
    /// A number by its name, as scenarios name what was published: `task.NAME.ops_per_s`, `total.seconds`,
    /// `vmstat.workingset_refault_file`, `memcg.PATH.COUNTER`, `device.NAME.read_bytes`, `node.free_pages`, `swap.used_pages`,
    /// `psi.some_us`, `iteration.TASK.N.COUNTER`, `iterations.TASK.FROM-TO.FOLD.COUNTER`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let (kind, rest) = name.split_once('.')?;
        match kind {
            "task" => {
                let (task, field) = rest.rsplit_once('.')?;
                self.tasks.iter().find(|t| t.name == task)?.metric(field)
            }
            "total" => self.total(rest),
            "iteration" | "iterations" => {
                let (task, rest) = rest.split_once('.')?;
                let result = self.loops.iter().find(|l| l.task == task)?;
                if kind == "iteration" { result.one(rest) } else { result.several(rest) }
            }
            "vmstat" => self.memcgs[0].counters.get(rest).map(|&n| n as f64),
            "memcg" => {
                let (path, counter) = rest.rsplit_once('.')?;
                let memcg = self.memcgs.iter().find(|m| m.path == path)?;
                memcg.counters.get(counter).map(|&n| n as f64)
            }
            "mthp" => counted(&self.sizes, name),
            "device" => {
                let (device, field) = rest.rsplit_once('.')?;
                let stats = &self.devices.iter().find(|d| d.name == device)?.stats;
                Some(match field {
                    "read_bytes" => stats.read_bytes as f64,
                    "write_bytes" => stats.write_bytes as f64,
                    _ => return None,
                })
            }
            "node" => match rest {
                "free_pages" => Some(self.node.free_pages as f64),
                "managed_pages" => Some(self.node.managed_pages as f64),
                _ => self.memcgs[0].counters.get(rest).map(|&n| n as f64),
            },
            "swap" => (rest == "used_pages").then_some(self.node.swap_used_pages as f64),
            "psi" => match rest {
                "some_us" => Some(self.memcgs[0].psi[0].total_us as f64),
                "full_us" => Some(self.memcgs[0].psi[1].total_us as f64),
                _ => None,
            },
            _ => None,
        }
    }

    fn total(&self, name: &str) -> Option<f64> {
        match name {
            "seconds" => Some(self.seconds),
            "ops_per_s" => Some(self.tasks.iter().filter_map(|t| t.metric("ops_per_s")).sum()),
            _ => None,
        }
    }
}

impl Machine {
    pub(super) fn result(&mut self) -> RunResult {
        let tasks = self.task_results();
        RunResult {
            seconds: self.now_ns as f64 / 1e9,
            ending: self.ending.unwrap_or(Ending::Stuck),
            memcgs: (0..self.pressure.len()).map(|g| self.memcg_result(g, &tasks)).collect(),
            tasks,
            devices: self.device_results(),
            node: NodeResult {
                free_pages: self.engine.free_pages(),
                managed_pages: self.engine.zones().map(|z| z.1).sum(),
                swap_used_pages: self.engine.swap_used_pages(),
            },
            sizes: self.size_counters().into_iter().collect(),
            loops: self.loop_results(),
            oom_kills: self.oom_kills,
            series: self.series.clone(),
            lru_gen: self.engine.lru_gen_full_text(),
            events: self.events_handled,
        }
    }

    fn device_results(&self) -> Vec<DeviceResult> {
        let result = |d: &crate::device::Device| DeviceResult { name: d.spec().name.clone(), stats: *d.stats() };
        self.hw.devices.iter().map(result).collect()
    }

    fn task_results(&self) -> Vec<TaskResult> {
        let mut at = 0;
        let mut all = Vec::new();
        for spec in &self.spec.tasks {
            let copies = &self.threads[at..at + spec.count as usize];
            at += spec.count as usize;
            let mut r = TaskResult {
                name: spec.name.clone(),
                count: spec.count,
                accesses: 0,
                hits: 0,
                ops: 0,
                errors: 0,
                seconds: 0.0,
                reclaim_seconds: 0.0,
                latency: Latency::new(),
            };
            let (mut first, mut last) = (u64::MAX, 0);
            for thread in copies {
                let Some(Work::Task(task)) = &thread.work else { continue };
                let done = &task.done;
                r.accesses += done.accesses;
                r.hits += done.hits;
                r.ops += done.ops;
                r.errors += done.errors;
                r.reclaim_seconds += done.stalled_ns as f64 / 1e9;
                r.latency.merge(&done.latency);
                first = first.min(done.first_ns.unwrap_or(u64::MAX));
                last = last.max(done.last_ns);
            }
            r.seconds = last.saturating_sub(first) as f64 / 1e9;
            all.push(r);
        }
        all
    }

    /// What the tasks of a group and of those below it did together, and their operations a second.
    fn throughput(&self, group: usize, tasks: &[TaskResult]) -> [(&'static str, u64); 4] {
        let inside = |memcg: Option<usize>| {
            group == 0 || std::iter::successors(memcg, |&m| self.spec.memcgs[m].parent).any(|m| m + 1 == group)
        };
        let all = || self.spec.tasks.iter().zip(tasks).filter(|(spec, _)| inside(spec.memcg)).map(|(_, t)| t);
        let rate: f64 = all().filter_map(|t| t.metric("ops_per_s")).sum();
        [
            ("task_ops", all().map(|t| t.ops).sum()),
            ("task_accesses", all().map(|t| t.accesses).sum()),
            ("task_hits", all().map(|t| t.hits).sum()),
            ("task_ops_per_s", rate.round() as u64),
        ]
    }

    fn memcg_result(&mut self, group: usize, tasks: &[TaskResult]) -> MemcgResult {
        let (path, stats, id) = match group.checked_sub(1) {
            None => ("/".to_owned(), self.engine.vmstat(), refault_mm::MemcgId::ROOT),
            Some(m) => {
                let id = self.memcgs[m];
                (self.spec.memcgs[m].path.clone(), self.engine.memcg_tree_stats(id), id)
            }
        };
        let mut counters: BTreeMap<String, u64> = stats.iter().map(|(n, v)| (n.to_owned(), v)).collect();
        let gauges = if group == 0 { self.engine.node_gauges() } else { self.engine.memcg_tree_gauges(id) };
        counters.extend(gauges.into_iter().map(|g| (g.name.to_owned(), g.value)));
        counters.extend(self.throughput(group, tasks).map(|(n, v)| (n.to_owned(), v)));
        let psi = [PsiKind::Some, PsiKind::Full].map(|k| self.pressure.read(group, self.now_ns, k));
        MemcgResult { path, counters, psi, seqs: self.engine.lru_gen_seqs(id) }
    }
}
