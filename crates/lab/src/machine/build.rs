//! From a scenario to a machine at time 0.

use refault_mm::{Config, Engine, NodeConfig, SwapDeviceConfig};

use super::load::{copies, objects, traces};
use super::requests::Requests;
use super::sample::SampledLatencies;
use super::state::Machine;
use super::watch::WatchState;
use crate::contention::{Contention, LockHolds};
use crate::cost::Costs;
use crate::device::{Device, DeviceModel};
use crate::groups::{Groups, groups_of};
use crate::hardware::{Hardware, Hottest, Nodes};
use crate::kernel::LabKernel;
use crate::metric::MetricSeries;
use crate::on_cpu::EventProgress;
use crate::programs::{Programs, programs_of};
use crate::record::Records;
use crate::scenario::{self, PolicySpec, Scenario, SwapSpec, preset_with_overrides};
use crate::sched::{Clock, Event, Thread, ThreadWork, Threads, Usage};
use crate::task::{Script, Task};
use crate::tiers::{Tiering, numa_config};

impl Machine {
    /// Builds the machine of a scenario, with the reclaim of `policy` (the scenario's own, or a
    /// variant).
    pub fn new(spec: &Scenario, policy: &PolicySpec) -> Result<Machine, String> {
        let (config, tiering) = config(spec, policy)?;
        let mut engine = Engine::new(config)?;
        let costs = costs(spec)?;
        let mut hw = hardware(spec, &costs, tiering.as_ref())?;
        let groups = Groups::new(spec, &mut engine, &mut hw)?;
        let (mut instances, first_instance) = objects(spec, &mut engine, &mut hw, &groups)?;
        if !engine.reserve_kernel_pages(spec.machine.kernel_pages) {
            return Err("machine.kernel: is more than the memory".into());
        }
        let traces = traces(spec, &mut engine, &mut hw, &groups, &mut instances)?;
        let (programs, threads_of) = programs_of(spec);
        let contention = contention(spec, policy, &costs, &threads_of);
        if contention.is_some() {
            hw.collect_demand();
        }
        let mut machine = Machine {
            clock: Clock::default(),
            requests: Requests::new(hw.storage.devices.len()),
            kernel: LabKernel::new(engine, hw, costs, contention),
            threads: Threads::new(spec, tasks(spec, &programs, &traces)),
            programs: Programs::new(spec, instances, first_instance),
            groups,
            event_progress: vec![EventProgress::default(); spec.events.len()],
            watching: vec![WatchState::default(); spec.events.len()],
            records: Records::default(),
            series: series(spec, tiering.is_some()),
            latencies: SampledLatencies::new(spec.tasks.len()),
            usage: Usage::default(),
            direct_reclaim_ns: 0,
            tiering,
            ending: None,
            last_swap: None,
            check: false,
            spec: spec.clone(),
        };
        machine.begin();
        Ok(machine)
    }

    /// Announces what happens first.
    fn begin(&mut self) {
        self.schedule_events(None);
        for i in (0..self.spec.tasks.len()).filter(|&i| self.spec.tasks[i].after.is_none()).collect::<Vec<_>>() {
            self.schedule_start(i, self.spec.tasks[i].start_ns);
        }
        if let Some(tiering) = &mut self.tiering {
            tiering.add_programs(&self.spec, &self.programs, &self.kernel);
            if tiering.promotes() {
                let engine = &self.kernel.engine;
                self.kernel.hw.hottest = Hottest::new(engine.registered_pages(), tiering.top_capacity(engine));
            }
        }
        self.clock.push(self.spec.sample_ns, Event::Sample);
        self.schedule_expiry();
    }
}

/// The copies of all tasks.
fn tasks(spec: &Scenario, programs: &[Vec<u32>], traces: &[Option<Script>]) -> Vec<Thread> {
    let mut threads = Vec::new();
    for (i, t) in spec.tasks.iter().enumerate() {
        let groups = groups_of(spec, t.memcg);
        for copy in 0..t.count {
            let mut task = Box::new(Task::new(i, copy, programs[i][copy as usize], spec.seed));
            task.script.clone_from(&traces[i]);
            threads.push(Thread::new(ThreadWork::Task(task), groups.clone()));
        }
    }
    threads
}

/// The configuration of the engine, and what a machine with nodes has beside it.
pub(crate) fn config(spec: &Scenario, policy: &PolicySpec) -> Result<(Config, Option<Tiering>), String> {
    let m = &spec.machine;
    let mut cfg = policy.config();
    cfg.cpus = m.cpus as usize;
    cfg.swappiness = m.swappiness;
    cfg.readahead.page_cluster = m.page_cluster;
    cfg.readahead.file_pages = m.read_ahead_pages;
    cfg.readahead.history = m.read_ahead_history;
    cfg.dirty.background_ratio = m.dirty_background_ratio;
    cfg.dirty.ratio = m.dirty_ratio;
    cfg.dirty.cgroup_writeback = m.cgroup_writeback;
    cfg.dirty.waits_for_flusher = policy.kernel.waits_for_flusher(cfg.lru.kind);
    cfg.dirty.writeback_ns = m.dirty_writeback_ns;
    if m.dirty_expire_ns > 0 {
        cfg.dirty.expire_ns = m.dirty_expire_ns;
    }
    cfg.readahead.file_order = m.file_order;
    cfg.readahead.order_growth = policy.kernel.order_growth();
    cfg.readahead.mmap_hits = policy.kernel.mmap_hits();
    cfg.lru.min_ttl_ns = m.min_ttl_ns;
    cfg.thp = m.thp.clone();
    if !m.given.contains("thp.swap_in") {
        cfg.thp.swap_in = policy.kernel.has_large_swap_in();
    }
    cfg.memcg.recursive_protection = m.recursive_protection;
    let exact = policy.kernel.has_exact_stats() && !m.given.contains("stat_flush_interval");
    cfg.lru.stat_flush_interval_ns = if exact { 0 } else { m.stat_flush_interval_ns };
    cfg.total_pages = m.memory_pages;
    // The scale is 1 except on machines with nodes, whose sizes stand for sizes `scale` times as
    // large.
    cfg.lru.gib_pages = (cfg.lru.gib_pages / m.scale).max(1);
    cfg.seed = spec.seed;
    cfg.zswap.clone_from(&spec.zswap);
    if let Some(zswap) = &mut cfg.zswap {
        zswap.same_filled |= policy.kernel.has_same_filled_pages();
    }
    cfg.node = Some(NodeConfig {
        pages: m.memory_pages,
        min_free_kbytes: m.min_free_kbytes,
        khugepaged: m.thp.runs_khugepaged(),
        watermark_scale_factor: m.watermark_scale_factor,
        low_zones: [m.dma_pages, m.dma32_pages],
        init_pages: m.init_pages,
        per_cpu_lists: m.per_cpu_lists,
        page_blocks: m.page_blocks,
        watermark_boost_factor: m.watermark_boost_factor,
        buffer_heads: m.buffer_heads,
    });
    cfg.swap.pages = 0;
    cfg.swap.devices =
        spec.swap.iter().filter(|s| s.enabled).map(|s| swap_device(spec, s)).collect::<Result<_, _>>()?;
    let tiering = match numa_config(spec, policy)? {
        None => None,
        Some((numa, tiers)) => {
            cfg.node = None;
            cfg.numa = Some(numa);
            Some(Tiering::new(policy.tiering.config(m.scale)?, &tiers))
        }
    };
    cfg.check()?;
    Ok((cfg, tiering))
}

pub(super) fn swap_device(spec: &Scenario, s: &SwapSpec) -> Result<SwapDeviceConfig, String> {
    Ok(SwapDeviceConfig {
        pages: s.pages,
        priority: s.priority,
        synchronous: device_spec(&spec.devices[s.device])?.synchronous.is_some(),
        rotational: s.rotational,
        discard: s.discard,
        block_device: !s.file,
        bad_pages: s.bad_pages.clone(),
    })
}

/// Values of the time series at most: with many groups there are fewer rows.
const MOST_VALUES: usize = 1 << 24;

/// An empty time series of the machine and its groups.
fn series(spec: &Scenario, has_nodes: bool) -> MetricSeries {
    let tasks = spec.tasks.iter().map(|t| &*t.name);
    let columns = scenario::series_columns(has_nodes, tasks, spec.memcgs.iter().map(|m| &*m.path));
    let rows = MetricSeries::LIMIT.min(MOST_VALUES / columns.len());
    MetricSeries::with_limit(columns, rows)
}

fn costs(spec: &Scenario) -> Result<Costs, String> {
    let mut costs = Costs::default();
    for (name, &ns) in &spec.machine.costs {
        costs.set(name, ns).map_err(|e| format!("machine.costs.{name}: {e}"))?;
    }
    costs.check()?;
    Ok(costs)
}

/// Locks and interrupts between CPUs by the rules of the kernel, if the scenario has them.
fn contention(spec: &Scenario, policy: &PolicySpec, costs: &Costs, threads_of: &[u32]) -> Option<Contention> {
    let constants = spec.machine.contention?;
    let rules = policy.kernel.locking();
    let holds = LockHolds {
        lru_page_ns: costs.scan_page_ns,
        lru_batch: u64::from(rules.lru_batch),
        swap_device_lock: rules.swap_device_lock,
        slot_cache: policy.config().swap.policy.slot_cache,
        slot_ns: costs.swap_call_ns,
        zsmalloc_pool_lock: rules.zsmalloc_pool_lock,
        zsmalloc_ns: constants.zsmalloc_ns,
        lock_per_area: rules.lock_per_area,
    };
    let is_threaded = threads_of.iter().map(|&n| n > 1).collect();
    Some(Contention::new(constants, holds, spec.machine.cpus as usize, is_threaded))
}

/// A device of a scenario, if it is possible.
fn device_spec(s: &scenario::DeviceSpec) -> Result<DeviceModel, String> {
    let device = preset_with_overrides(s)?;
    device.check().map_err(|what| format!("device {:?}: {what}", s.name))?;
    Ok(device)
}

/// Pages of files on a device; swap comes after them.
pub(super) fn pages_of_files(spec: &Scenario, device: usize) -> u64 {
    let on_it = spec.objects.iter().enumerate().filter(|(_, o)| o.device == Some(device));
    on_it.map(|(i, o)| o.pages * u64::from(copies(spec, i))).sum()
}

/// Devices with nothing on them yet; swap comes after the files.
fn hardware(spec: &Scenario, costs: &Costs, tiering: Option<&Tiering>) -> Result<Hardware, String> {
    let specs: Result<Vec<_>, _> = spec.devices.iter().map(device_spec).collect();
    let seeds = (0..).map(|i: u64| spec.seed.wrapping_mul(31).wrapping_add(i));
    let devices = specs?.into_iter().zip(seeds).map(|(d, seed)| Device::new(d, seed)).collect();
    let top = tiering.map_or(Vec::new(), |t| t.top.clone());
    let perf = spec.machine.nodes.iter().map(|n| n.perf);
    let nodes = Nodes::new(perf, top, costs.migrate_page_ns, spec.machine.quantum_ns);
    Ok(Hardware::new(
        devices,
        spec.swap.iter().filter(|s| s.enabled).map(|s| (s.device, pages_of_files(spec, s.device))).collect(),
        nodes,
        costs.clone(),
        spec.seed,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_mm::{Kernel, Policy, Setting, Value};

    const ZRAM: &str = "\
name = \"zram\"
[machine]
memory = \"64M\"
[machine.thp]
64K = \"always\"
[device.zram]
preset = \"zram\"
[swap]
device = \"zram\"
size = \"16M\"
[object.heap]
kind = \"anon\"
size = \"1M\"
[[task]]
name = \"a\"
phase = [{ write = \"heap\", passes = 1 }]
";

    /// Large swap-in and caches of slots, of a scenario under a kernel.
    fn of(text: &str, kernel: Kernel, slot_cache: Option<bool>) -> (bool, bool) {
        let spec = Scenario::parse("s.toml", text).unwrap_or_else(|e| panic!("{e}"));
        let mut policy = PolicySpec { kernel, ..PolicySpec::new(Policy::Mglru) };
        let setting = Setting::find("swap_slot_cache").expect("a setting");
        slot_cache.into_iter().for_each(|on| assert!(policy.settings.choose(setting, Value::Flag(on))));
        let (cfg, _) = config(&spec, &policy).expect("a configuration");
        (cfg.thp.swap_in, cfg.swap.policy.slot_cache)
    }

    #[test]
    fn a_kernel_says_what_a_scenario_does_not_say_of_swap() {
        let all = [(Kernel::V6_6, (false, true)), (Kernel::V6_12, (true, true)), (Kernel::V6_18, (true, false))];
        for (kernel, want) in all {
            assert_eq!(of(ZRAM, kernel, None), want, "{kernel}");
            for on in [false, true] {
                let text = ZRAM.replace("64K = \"always\"", &format!("64K = \"always\"\nswap_in = {on}"));
                assert_eq!(of(&text, kernel, Some(!on)), (on, !on), "{kernel}");
            }
        }
    }
}
