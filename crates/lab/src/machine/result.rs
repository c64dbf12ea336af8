//! What a run says in the end, and how its numbers are named.

use std::collections::BTreeMap;

use refault_mm::{MemcgEvents, MemcgId, MemcgLimits, PsiKind, PsiLine, SwapMap, SwapWork};

use super::groups::Group;
use super::record::{LoopResult, counted};
use super::tiers::TiersResult;
use super::{Ending, EventResult, Machine, Work};
use crate::device::{DeviceStats, PAGE_BYTES, Zram, ZramStats};
use crate::metric::{Latency, Quantiles, Series};

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
    /// Copies that the out-of-memory killer ended.
    pub oom_kills: u64,
    /// From the start of the first to the end of the last copy.
    pub seconds: f64,
    /// Time of all copies in reclaim, in seconds.
    pub reclaim_seconds: f64,
    /// CPU time of all copies in the program itself, in seconds.
    pub user_seconds: f64,
    /// CPU time of all copies in the kernel, in seconds; without changes of tasks.
    pub system_seconds: f64,
    /// Of operations.
    pub latency: Latency,
}

/// A memcg, or the machine.
#[derive(Clone, Debug)]
pub struct MemcgResult {
    /// Its path; `/` for the machine.
    pub path: String,
    /// Its limits at the end, or when it was removed.
    pub limits: MemcgLimits,
    /// When it was made; 0: it was there from the start; none: it never was.
    pub made_ns: Option<u64>,
    /// When it was removed; all figures are those of that time.
    pub removed_ns: Option<u64>,
    /// Counters and sizes under their kernel names.
    pub counters: BTreeMap<String, u64>,
    /// Memory pressure: some and full.
    pub psi: [PsiLine; 2],
    /// The highest that the averages of 10, 60 and 300 seconds ever were: of some and full, in percent.
    pub psi_peaks: [[f64; 3]; 2],
    /// `memory.events`, descendants included; empty for the machine.
    pub events: Vec<(&'static str, u64)>,
    /// `memory.swap.events`, the same way.
    pub swap_events: Vec<(&'static str, u64)>,
    /// What the tasks in it did.
    pub tasks: GroupTasks,
    /// Under multi-gen LRU the oldest generation of file pages, and the youngest; of the machine those of its root group.
    pub seqs: (u64, u64),
}

/// What the tasks of a group and of the groups below it did together, in the phases that count.
#[derive(Clone, Debug, Default)]
pub struct GroupTasks {
    /// Operations.
    pub ops: u64,
    /// The sum of the operations a second of every task.
    pub ops_per_s: f64,
    /// Accesses of a page.
    pub accesses: u64,
    /// Of those, without I/O.
    pub hits: u64,
    /// Accesses that failed.
    pub errors: u64,
    /// Copies that the out-of-memory killer ended.
    pub oom_kills: u64,
    /// Time of all copies waiting on memory, in seconds.
    pub reclaim_seconds: f64,
    /// Of operations, of all tasks together.
    pub latency: Quantiles,
}

/// A block device.
#[derive(Clone, Debug)]
pub struct DeviceResult {
    /// Its name.
    pub name: String,
    /// What it did.
    pub stats: DeviceStats,
    /// What it stores, if it is zram with swap on it.
    pub zram: Option<ZramStats>,
}

/// A swap device.
#[derive(Clone, Debug)]
pub struct SwapResult {
    /// The name of the device it is on.
    pub device: String,
    /// Its clusters, and how full it is.
    pub map: SwapMap,
}

impl SwapResult {
    /// The names of its numbers.
    pub const METRICS: [&str; 5] = ["used_pages", "used_percent", "peak_pages", "peak_percent", "higher_used_percent"];

    /// One of them. None, too: there is no such number of this device.
    fn metric(&self, name: &str) -> Option<f64> {
        let d = &self.map.device;
        let percent = |pages: u64| 100.0 * pages as f64 / d.usable_pages.max(1) as f64;
        match name {
            "used_pages" => Some(d.used_pages as f64),
            "used_percent" => Some(percent(d.used_pages)),
            "peak_pages" => Some(d.peak_pages as f64),
            "peak_percent" => Some(percent(d.peak_pages)),
            // Of a device that was never used: 0.
            "higher_used_percent" => Some(d.higher_used_percent.unwrap_or(0.0)),
            _ => None,
        }
    }
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
    /// What the swap allocator did.
    pub swap_work: SwapWork,
    /// Loops that were recorded, in the order of their tasks.
    pub loops: Vec<LoopResult>,
    /// The swap devices when the last task had done its work, before its memory was free, or at the end if the scenario sets it
    /// earlier; in the order of the scenario.
    pub swap: Vec<SwapResult>,
    /// Nodes of memory with latency and bandwidth, if the scenario has them.
    pub tiers: Option<TiersResult>,
    /// Tasks that the out-of-memory killer ended.
    pub oom_kills: u64,
    /// What came of the events of the scenario.
    pub timeline: Vec<EventResult>,
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
            "user_seconds" => self.user_seconds,
            "system_seconds" => self.system_seconds,
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

impl GroupTasks {
    /// Hits of all accesses.
    pub fn hit_rate(&self) -> f64 {
        if self.accesses > 0 { self.hits as f64 / self.accesses as f64 } else { 0.0 }
    }

    fn of<'a>(tasks: impl Iterator<Item = &'a TaskResult>) -> GroupTasks {
        let (mut all, mut latency) = (GroupTasks::default(), Latency::new());
        for task in tasks {
            all.add(task);
            latency.merge(&task.latency);
        }
        all.latency = Quantiles::from(&latency);
        all
    }

    fn add(&mut self, task: &TaskResult) {
        self.ops += task.ops;
        self.ops_per_s += task.metric("ops_per_s").unwrap_or(0.0);
        self.accesses += task.accesses;
        self.hits += task.hits;
        self.errors += task.errors;
        self.oom_kills += task.oom_kills;
        self.reclaim_seconds += task.reclaim_seconds;
    }
}

impl MemcgResult {
    /// How long it was there, in a run of so many seconds.
    pub fn lived_seconds(&self, run_seconds: f64) -> f64 {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let to = self.removed_ns.map_or(run_seconds, seconds);
        self.made_ns.map_or(0.0, |made| (to - seconds(made)).max(0.0))
    }

    /// One of its counters.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// One of its numbers: a counter, `events_max` and others of `memory.events`, `events_swap_fail` and others of `memory.swap.events`, `psi_some_us`, `psi_some_avg10`,
    /// `psi_some_avg10_max` and their like, `task_hit_rate`, `task_p99_ns`, ...
    pub fn metric(&self, name: &str) -> Option<f64> {
        if let Some(event) = name.strip_prefix("events_") {
            let (events, event) = match event.strip_prefix("swap_") {
                Some(event) => (&self.swap_events, event),
                None => (&self.events, event),
            };
            return events.iter().find(|(known, _)| *known == event).map(|&(_, n)| n as f64);
        }
        if let Some(rest) = name.strip_prefix("psi_") {
            return self.pressure(rest);
        }
        Some(match name {
            "task_ops_per_s" => self.tasks.ops_per_s,
            "task_hit_rate" => self.tasks.hit_rate(),
            "task_errors" => self.tasks.errors as f64,
            "task_oom_kills" => self.tasks.oom_kills as f64,
            "task_reclaim_us" => self.tasks.reclaim_seconds * 1e6,
            "task_p50_ns" => self.tasks.latency.p50_ns as f64,
            "task_p99_ns" => self.tasks.latency.p99_ns as f64,
            _ => *self.counters.get(name)? as f64,
        })
    }

    /// `some_us`, `full_avg60`, `some_avg300_max`.
    fn pressure(&self, name: &str) -> Option<f64> {
        let (kind, what) = name.split_once('_')?;
        let kind = ["some", "full"].iter().position(|k| *k == kind)?;
        let (line, peaks) = (&self.psi[kind], &self.psi_peaks[kind]);
        Some(match what {
            "us" => line.total_us as f64,
            "avg10" => line.avg10,
            "avg60" => line.avg60,
            "avg300" => line.avg300,
            "avg10_max" => peaks[0],
            "avg60_max" => peaks[1],
            "avg300_max" => peaks[2],
            _ => return None,
        })
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
            "tier" => self.tiers.as_ref()?.metric(rest),
            "iteration" | "iterations" => {
                let (task, rest) = rest.split_once('.')?;
                let result = self.loops.iter().find(|l| l.task == task)?;
                if kind == "iteration" { result.one(rest) } else { result.several(rest) }
            }
            "vmstat" => self.memcgs[0].counters.get(rest).map(|&n| n as f64),
            "memcg" => {
                let (path, counter) = rest.rsplit_once('.')?;
                self.memcgs.iter().find(|m| m.path == path)?.metric(counter)
            }
            "series" => {
                let (column, fold) = rest.rsplit_once('.')?;
                self.series.fold(column, fold)
            }
            "mthp" => counted(&self.sizes, name),
            "device" => {
                let (device, field) = rest.rsplit_once('.')?;
                let device = self.devices.iter().find(|d| d.name == device)?;
                Some(match field {
                    "read_bytes" => device.stats.read_bytes as f64,
                    "write_bytes" => device.stats.write_bytes as f64,
                    _ => device.zram?.named().into_iter().find(|(name, _)| *name == field)?.1 as f64,
                })
            }
            "node" => match rest {
                "free_pages" => Some(self.node.free_pages as f64),
                "managed_pages" => Some(self.node.managed_pages as f64),
                _ => self.memcgs[0].counters.get(rest).map(|&n| n as f64),
            },
            "swap" => Some(match rest {
                "used_pages" => self.node.swap_used_pages as f64,
                "calls" => self.swap_work.calls as f64,
                "clusters" => self.swap_work.clusters as f64,
                "probes" => self.swap_work.probes as f64,
                "reclaimed" => self.swap_work.reclaimed as f64,
                "steps" => (self.swap_work.clusters + self.swap_work.probes) as f64,
                _ => {
                    let (device, number) = rest.rsplit_once('.')?;
                    return self.swap.iter().find(|s| s.device == device)?.metric(number);
                }
            }),
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
            _ => self.tiers.as_ref()?.total(name),
        }
    }
}

impl Machine {
    pub(super) fn result(&mut self) -> RunResult {
        let tasks = self.task_results();
        RunResult {
            seconds: self.now_ns as f64 / 1e9,
            ending: self.ending.unwrap_or(Ending::Stuck),
            memcgs: (0..self.pressure.len()).map(|g| self.memcg_result(g)).collect(),
            tasks,
            devices: self.device_results(),
            node: NodeResult {
                free_pages: self.engine.free_pages(),
                managed_pages: self.engine.zones().map(|z| z.1).sum(),
                swap_used_pages: self.engine.swap_used_pages(),
            },
            sizes: self.size_counters().into_iter().collect(),
            swap_work: self.engine.swap_work(),
            loops: self.loop_results(),
            swap: self.last_swap.take().unwrap_or_else(|| self.swap_results()),
            tiers: self.tiers_result(),
            oom_kills: self.oom_kills,
            timeline: self.event_results(),
            series: self.series.clone(),
            lru_gen: self.engine.lru_gen_full_text(),
            events: self.events_handled,
        }
    }

    pub(super) fn swap_results(&self) -> Vec<SwapResult> {
        let names = self.spec.swap.iter().map(|s| self.spec.devices[s.device].name.clone());
        names.zip(self.engine.swap_maps()).map(|(device, map)| SwapResult { device, map }).collect()
    }

    fn device_results(&self) -> Vec<DeviceResult> {
        let zram = |device| self.hw.swap.iter().find(|s| s.device == device)?.zram.as_ref().map(Zram::stats);
        let result = |(i, d): (usize, &crate::device::Device)| DeviceResult {
            name: d.spec().name.clone(),
            stats: *d.stats(),
            zram: zram(i),
        };
        self.hw.devices.iter().enumerate().map(result).collect()
    }

    /// By task: what all its copies did.
    fn task_results(&self) -> Vec<TaskResult> {
        (0..self.spec.tasks.len()).map(|n| self.task_result(n, |_| true)).collect()
    }

    /// What the copies of a task did while they were in a group of which that holds.
    fn task_result(&self, n: usize, inside: impl Fn(Option<usize>) -> bool) -> TaskResult {
        let spec = &self.spec.tasks[n];
        let mut r = TaskResult {
            name: spec.name.clone(),
            count: spec.count,
            accesses: 0,
            hits: 0,
            ops: 0,
            errors: 0,
            oom_kills: 0,
            seconds: 0.0,
            reclaim_seconds: 0.0,
            user_seconds: 0.0,
            system_seconds: 0.0,
            latency: Latency::new(),
        };
        let (mut first, mut last) = (u64::MAX, 0);
        let now = self.groups.of_task(n);
        for thread in &self.threads[self.threads_of(n)] {
            r.oom_kills += u64::from(thread.killed && inside(now));
            let Some(Work::Task(task)) = &thread.work else { continue };
            let parts = task.past.iter().map(|(group, done)| (*group, done)).chain([(now, &task.done)]);
            for (_, done) in parts.filter(|(group, _)| inside(*group)) {
                r.accesses += done.accesses;
                r.hits += done.hits;
                r.ops += done.ops;
                r.errors += done.errors;
                r.reclaim_seconds += done.stalled_ns as f64 / 1e9;
                r.user_seconds += done.user_ns as f64 / 1e9;
                r.system_seconds += done.system_ns as f64 / 1e9;
                r.latency.merge(&done.latency);
                first = first.min(done.first_ns.unwrap_or(u64::MAX));
                last = last.max(done.last_ns);
            }
        }
        r.seconds = last.saturating_sub(first) as f64 / 1e9;
        r
    }

    /// What tasks did together while they were in a group or below it.
    fn tasks_of(&self, group: usize) -> GroupTasks {
        let inside = |memcg: Option<usize>| {
            group == 0 || std::iter::successors(memcg, |&m| self.spec.memcgs[m].parent).any(|m| m + 1 == group)
        };
        let all: Vec<_> = (0..self.spec.tasks.len()).map(|n| self.task_result(n, inside)).collect();
        GroupTasks::of(all.iter())
    }

    /// The machine (number 0), or a group: as it is, or as it was when it was removed.
    pub(super) fn memcg_result(&mut self, group: usize) -> MemcgResult {
        let Some(n) = group.checked_sub(1) else { return self.result_of(group, MemcgId::ROOT, Some(0)) };
        match self.groups.get(n) {
            Group::Removed(last) => (**last).clone(),
            &Group::There { id, made_ns } => self.result_of(group, id, Some(made_ns)),
            Group::Absent => self.absent_result(n),
        }
    }

    /// A group that was never made.
    fn absent_result(&self, n: usize) -> MemcgResult {
        MemcgResult {
            path: self.spec.memcgs[n].path.clone(),
            limits: self.spec.memcgs[n].limits,
            made_ns: None,
            removed_ns: None,
            counters: BTreeMap::new(),
            psi: [PsiLine { avg10: 0.0, avg60: 0.0, avg300: 0.0, total_us: 0 }; 2],
            psi_peaks: [[0.0; 3]; 2],
            events: MemcgEvents::default().iter().collect(),
            swap_events: MemcgEvents::default().swap_iter().collect(),
            tasks: GroupTasks::default(),
            seqs: (0, 0),
        }
    }

    fn result_of(&mut self, group: usize, id: MemcgId, made_ns: Option<u64>) -> MemcgResult {
        let (path, stats, limits) = match group.checked_sub(1) {
            None => ("/".to_owned(), self.engine.vmstat(), MemcgLimits::default()),
            Some(n) => {
                (self.spec.memcgs[n].path.clone(), self.engine.memcg_tree_stats(id), self.engine.memcg_limits(id))
            }
        };
        let events = (group > 0).then(|| self.engine.memcg_events(id));
        let mut counters: BTreeMap<String, u64> = stats.iter().map(|(n, v)| (n.to_owned(), v)).collect();
        let gauges = if group == 0 { self.engine.node_gauges() } else { self.engine.memcg_tree_gauges(id) };
        counters.extend(gauges.into_iter().map(|g| (g.name.to_owned(), g.value)));
        let tasks = self.tasks_of(group);
        counters.extend(
            [
                ("task_ops", tasks.ops),
                ("task_accesses", tasks.accesses),
                ("task_hits", tasks.hits),
                ("task_ops_per_s", tasks.ops_per_s.round() as u64),
            ]
            .map(|(n, v)| (n.to_owned(), v)),
        );
        let kinds = [PsiKind::Some, PsiKind::Full];
        MemcgResult {
            path,
            limits,
            made_ns,
            removed_ns: None,
            counters,
            psi: kinds.map(|k| self.pressure.read(group, self.now_ns, k)),
            psi_peaks: kinds.map(|k| self.pressure.peaks(group, self.now_ns, k)),
            events: events.map_or_else(Vec::new, |e| e.iter().collect()),
            swap_events: events.map_or_else(Vec::new, |e| e.swap_iter().collect()),
            tasks,
            seqs: self.engine.lru_gen_seqs(id),
        }
    }
}
