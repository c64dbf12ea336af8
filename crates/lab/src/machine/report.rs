//! Results of a run in the end, read from the parts of the machine.

use std::collections::BTreeMap;

use refault_mm::{MemcgEvents, MemcgId, MemcgLimits, PsiKind, PsiLine};

use super::state::Machine;
use crate::contention::{Contention, LOCK_KINDS};
use crate::device::{Device, Zram};
use crate::groups::Group;
use crate::metric::Latency;
use crate::on_cpu::event_results;
use crate::record::size_counters;
use crate::results::{
    ContentionResult, CpuResult, DeviceResult, Ending, GroupTasks, KthreadResult, LockResult, MemcgResult, NodeResult,
    RunResult, SwapResult, TaskResult, ZoneResult,
};
use crate::sched::{Resource, Thread, Threads, Wait};

impl Machine {
    pub(super) fn result(&mut self) -> RunResult {
        let tasks = self.task_results();
        let now_ns = self.clock.now_ns();
        let memcgs = (0..self.threads.pressure.len()).map(|g| self.memcg_result(g)).collect();
        let swap = self.last_swap.take().unwrap_or_else(|| self.swap_results());
        let engine = &self.kernel.engine;
        RunResult {
            seconds: now_ns as f64 / 1e9,
            ending: self.ending.unwrap_or(Ending::Stuck),
            memcgs,
            tasks,
            cpu: self.cpu_result(),
            devices: self.device_results(),
            node: NodeResult {
                free_pages: engine.free_pages(),
                managed_pages: engine.zones().map(|z| z.1).sum(),
                swap_used_pages: engine.swap_used_pages(),
                min_free_kbytes: engine.min_free_kbytes(),
                zones: engine
                    .zones()
                    .map(|(name, managed, free, marks)| ZoneResult { name, managed, free, marks })
                    .collect(),
            },
            sizes: size_counters(engine).into_iter().collect(),
            swap_work: engine.swap_work(),
            loops: self.records.results(&self.spec),
            swap,
            tiers: self.tiering.as_ref().and_then(|t| t.result(&self.spec, &self.kernel, now_ns)),
            contention: self.kernel.contention.as_ref().map(contention_result),
            oom_kills: self.programs.oom_kills,
            oom_victims: self.programs.oom_victims.clone(),
            timeline: event_results(&self.spec, &self.event_progress),
            series: self.series.clone(),
            lru_gen: engine.lru_gen_full_text(),
            events: self.clock.handled(),
        }
    }

    pub(super) fn swap_results(&self) -> Vec<SwapResult> {
        let areas = &self.kernel.hw.storage.swap;
        let name = |number: u8| self.spec.devices[areas[usize::from(number)].device].name.clone();
        let maps = self.kernel.engine.swap_maps().into_iter();
        maps.map(|map| SwapResult { device: name(map.device.number), map }).collect()
    }

    /// CPU time: of the threads of the kernel by name, of tasks together.
    fn cpu_result(&self) -> CpuResult {
        let (now_ns, threads) = (self.clock.now_ns(), &self.threads);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let percent = |share: f64| 100.0 * share;
        let kthread = |((name, t), &highest): ((String, usize), &f64)| KthreadResult {
            name,
            seconds: seconds(threads.ran_ns(t, now_ns)),
            percent: percent(threads.ran_ns(t, now_ns) as f64 / now_ns.max(1) as f64),
            highest_percent: percent(highest),
        };
        let all = (0..threads.iter().len()).map(|t| (t, threads.ran_ns(t, now_ns)));
        let of = |is: fn(&Thread) -> bool| all.clone().filter(|&(t, _)| is(&threads[t])).map(|(_, ns)| ns).sum();
        CpuResult {
            cpus: self.spec.machine.cpus,
            kthreads: threads.of_kernel().zip(self.usage.highest()).map(kthread).collect(),
            tasks_seconds: seconds(of(|thread| !thread.is_of_kernel)),
            direct_reclaim_seconds: seconds(self.direct_reclaim_ns),
            busy_seconds: seconds(of(|_| true)),
        }
    }

    fn device_results(&self) -> Vec<DeviceResult> {
        let zram =
            |device| self.kernel.hw.storage.swap.iter().find(|s| s.device == device)?.zram.as_ref().map(Zram::stats);
        let result =
            |(i, d): (usize, &Device)| DeviceResult { name: d.spec().name.clone(), stats: *d.stats(), zram: zram(i) };
        self.kernel.hw.storage.devices.iter().enumerate().map(result).collect()
    }

    /// By task: the results of all its copies.
    fn task_results(&self) -> Vec<TaskResult> {
        (0..self.spec.tasks.len()).map(|n| self.task_result(n, |_| true)).collect()
    }

    /// Results of the copies of a task while they were in a group for which `inside` holds.
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
            killed: 0,
            seconds: 0.0,
            user_seconds: 0.0,
            system_seconds: 0.0,
            reclaim_seconds: 0.0,
            run_delay_seconds: 0.0,
            iowait_seconds: 0.0,
            throttled_seconds: 0.0,
            latency: Latency::new(),
        };
        let (mut first, mut last) = (u64::MAX, 0);
        let now = self.groups.of_task(n);
        for thread in Threads::of_task(&self.spec, n).map(|t| &self.threads[t]) {
            r.oom_kills += u64::from(thread.killed && !thread.killed_by_program && inside(now));
            r.killed += u64::from(thread.killed_by_program && inside(now));
            let Some(task) = thread.task() else { continue };
            let parts = task.past.iter().map(|(group, done)| (*group, done)).chain([(now, &task.done)]);
            for (_, done) in parts.filter(|(group, _)| inside(*group)) {
                r.accesses += done.accesses;
                r.hits += done.hits;
                r.ops += done.ops;
                r.errors += done.errors;
                let seconds = |ns: u64| ns as f64 / 1e9;
                let waited = |wait: Wait| seconds(done.waited_ns[wait as usize]);
                r.user_seconds += seconds(done.user_ns);
                r.system_seconds += seconds(done.system_ns);
                r.reclaim_seconds += seconds(done.reclaim_ns);
                r.run_delay_seconds += waited(Wait::Cpu);
                r.iowait_seconds += waited(Wait::Io);
                r.throttled_seconds += waited(Wait::Reclaim);
                done.latency.add_to(&mut r.latency);
                first = first.min(done.first_ns.unwrap_or(u64::MAX));
                last = last.max(done.last_ns);
            }
        }
        r.seconds = last.saturating_sub(first) as f64 / 1e9;
        r
    }

    /// Results of tasks together while they were in a group or below it.
    fn tasks_of(&self, group: usize) -> GroupTasks {
        let inside = |memcg: Option<usize>| {
            group == 0 || std::iter::successors(memcg, |&m| self.spec.memcgs[m].parent).any(|m| m + 1 == group)
        };
        let all: Vec<_> = (0..self.spec.tasks.len()).map(|n| self.task_result(n, inside)).collect();
        GroupTasks::of(all.iter())
    }

    /// Results of the machine (number 0) or of a group: as of now, or of its removal.
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
            io_psi: [PsiLine { avg10: 0.0, avg60: 0.0, avg300: 0.0, total_us: 0 }; 2],
            psi_peaks: [[0.0; 3]; 2],
            events: MemcgEvents::default().iter().collect(),
            swap_events: MemcgEvents::default().swap_iter().collect(),
            tasks: GroupTasks::default(),
            seqs: (0, 0),
        }
    }

    fn result_of(&mut self, group: usize, id: MemcgId, made_ns: Option<u64>) -> MemcgResult {
        let (engine, now_ns) = (&self.kernel.engine, self.clock.now_ns());
        let (path, stats, limits) = match group.checked_sub(1) {
            None => ("/".to_owned(), engine.vmstat(), MemcgLimits::default()),
            Some(n) => (self.spec.memcgs[n].path.clone(), engine.memcg_tree_stats(id), engine.memcg_limits(id)),
        };
        let events = (group > 0).then(|| engine.memcg_events(id));
        let mut counters: BTreeMap<String, u64> = stats.iter().map(|(n, v)| (n.to_owned(), v)).collect();
        let gauges = if group == 0 { engine.node_gauges() } else { engine.memcg_tree_gauges(id) };
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
            psi: kinds.map(|k| self.threads.pressure.read(group, now_ns, Resource::Memory, k)),
            io_psi: kinds.map(|k| self.threads.pressure.read(group, now_ns, Resource::Io, k)),
            psi_peaks: kinds.map(|k| self.threads.pressure.peaks(group, now_ns, k)),
            events: events.map_or_else(Vec::new, |e| e.iter().collect()),
            swap_events: events.map_or_else(Vec::new, |e| e.swap_iter().collect()),
            tasks,
            seqs: engine.lru_gen_seqs(id),
        }
    }
}

fn contention_result(contention: &Contention) -> ContentionResult {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let of_kind = |name: &'static str| {
        let stats = contention.stats_of(name);
        LockResult {
            name,
            acquisitions: stats.acquisitions,
            contended: stats.contended,
            hold_seconds: seconds(stats.hold_ns),
            wait_seconds: seconds(stats.wait_ns),
        }
    };
    let interrupts = contention.interrupt_stats();
    ContentionResult {
        locks: LOCK_KINDS.map(of_kind).to_vec(),
        flushes: interrupts.flushes,
        interrupts: interrupts.interrupts,
        flush_seconds: seconds(interrupts.wait_ns),
        interrupted_seconds: seconds(interrupts.lost_ns),
    }
}
