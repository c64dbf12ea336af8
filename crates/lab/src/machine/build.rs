//! From a scenario to a machine at time 0.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use refault_mm::{Config, Engine, MappingKind, NodeConfig, NodeId, SwapDeviceConfig, SwapWork};
use refault_trace::{LoadOptions, ObjectKind, Trace};

use super::admin::Doing;
use super::event::{Event, Events};
use super::groups::{Groups, Owner};
use super::hardware::Hardware;
use super::hottest::Hottest;
use super::memory::Memory;
use super::pressure::{Mood, Pressure};
use super::task::{Script, Task};
use super::tiers::{Tiering, numa_config};
use super::{Cpu, Instance, Machine, State, Stop, Thread, Work};
use crate::cost::Costs;
use crate::device::{Device, DeviceSpec};
use crate::metric::Series;
use crate::scenario::{self, COLUMNS, PolicySpec, Scenario, SwapSpec, TIER_COLUMNS, TraceSpec};

pub(super) fn build(spec: &Scenario, policy: &PolicySpec) -> Result<Machine, String> {
    let (config, tiering) = config(spec, policy)?;
    let mut engine = Engine::new(config)?;
    let costs = costs(spec)?;
    let mut hw = hardware(spec)?;
    hw.memory = Memory::new(spec.machine.nodes.iter().map(|n| n.perf), spec.machine.quantum_ns);
    hw.migrate_page_ns = costs.migrate_page_ns;
    hw.top = tiering.as_ref().map_or(Vec::new(), |t| t.top.clone());
    hw.seed = spec.seed;
    let groups = Groups::new(spec, &mut engine, &mut hw)?;
    let (mut instances, first_instance) = objects(spec, &mut engine, &mut hw, &groups)?;
    if !engine.set_external_pages(spec.machine.kernel_pages) {
        return Err("machine.kernel: is more than the memory".into());
    }
    let traces = traces(spec, &mut engine, &mut hw, &groups, &mut instances)?;
    let nodes = spec.machine.nodes.len().max(1);
    let tasks: usize = spec.tasks.iter().map(|t| t.count as usize).sum();
    let mut machine = Machine {
        pressure: Pressure::new(spec.machine.cpus, spec.memcgs.len() + 1),
        costs,
        engine,
        announced: vec![None; hw.devices.len()],
        hw,
        events: Events::default(),
        now_ns: 0,
        threads: Vec::new(),
        kswapd: tasks,
        flusher: tasks + nodes,
        zswap: tasks + nodes + 1,
        admin: tasks + nodes + 2,
        cpus: vec![Cpu::default(); spec.machine.cpus as usize],
        queue: VecDeque::new(),
        positions: HashMap::new(),
        records: BTreeMap::new(),
        queued: VecDeque::new(),
        waiters: HashMap::new(),
        in_flight: HashMap::new(),
        completions: Vec::new(),
        instances,
        first_instance,
        groups,
        doing: vec![Doing::default(); spec.events.len()],
        series: Series::new(COLUMNS.iter().chain(TIER_COLUMNS.iter().filter(|_| tiering.is_some())).copied()),
        tiering,
        alive: spec.tasks.iter().filter(|t| !t.background).map(|t| t.count as usize).sum(),
        copies_left: spec.tasks.iter().map(|t| t.count).collect(),
        oom_kills: 0,
        swap_paid: SwapWork::default(),
        events_handled: 0,
        completed: 0,
        ending: None,
        last_swap: None,
        check: false,
        spec: Rc::new(spec.clone()),
    };
    machine.schedule_events();
    machine.add_threads(traces)?;
    if machine.tiering.as_ref().is_some_and(|t| t.cfg.promotes()) {
        machine.hw.hottest = Hottest::new(machine.engine.registered_pages(), machine.top_capacity());
    }
    machine.events.push(spec.sample_ns, Event::Sample);
    Ok(machine)
}

fn config(spec: &Scenario, policy: &PolicySpec) -> Result<(Config, Option<Tiering>), String> {
    let m = &spec.machine;
    let mut cfg = policy.config();
    cfg.cpus = m.cpus as usize;
    cfg.swappiness = m.swappiness;
    cfg.page_cluster = m.page_cluster;
    cfg.read_ahead_pages = m.read_ahead_pages;
    cfg.dirty_background_ratio = m.dirty_background_ratio;
    cfg.dirty_ratio = m.dirty_ratio;
    cfg.min_ttl_ns = m.min_ttl_ns;
    cfg.thp = m.thp.clone();
    cfg.recursive_protection = m.recursive_protection;
    cfg.stat_flush_interval_ns = m.stat_flush_interval_ns;
    cfg.total_pages = m.memory_pages;
    // The scale is 1 but on machines with nodes, whose sizes stand for so much larger ones.
    cfg.gib_pages = (cfg.gib_pages / m.scale).max(1);
    cfg.seed = spec.seed;
    cfg.zswap.clone_from(&spec.zswap);
    cfg.node = Some(NodeConfig {
        pages: m.memory_pages,
        min_free_kbytes: m.min_free_kbytes,
        watermark_scale_factor: m.watermark_scale_factor,
        low_zones: [m.dma_pages, m.dma32_pages],
    });
    cfg.swap_pages = 0;
    cfg.swap_devices = spec.swap.iter().map(|s| swap_device(spec, s)).collect::<Result<_, _>>()?;
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

fn swap_device(spec: &Scenario, s: &SwapSpec) -> Result<SwapDeviceConfig, String> {
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

fn costs(spec: &Scenario) -> Result<Costs, String> {
    let mut costs = Costs::default();
    for (name, &ns) in &spec.machine.costs {
        costs.set(name, ns).map_err(|e| format!("machine.costs.{name}: {e}"))?;
    }
    costs.check()?;
    Ok(costs)
}

/// A device of a scenario, if it is possible.
fn device_spec(s: &scenario::DeviceSpec) -> Result<DeviceSpec, String> {
    let device = preset_with_overrides(s)?;
    device.check().map_err(|what| format!("device {:?}: {what}", s.name))?;
    Ok(device)
}

/// A preset with what the scenario says differs, possible or not.
pub(crate) fn preset_with_overrides(s: &scenario::DeviceSpec) -> Result<DeviceSpec, String> {
    fn set<T: Copy>(place: &mut T, value: Option<T>) {
        *place = value.unwrap_or(*place);
    }
    let mut d = DeviceSpec::preset(&s.name, s.preset.parse()?);
    let o = &s.overrides;
    set(&mut d.channels, o.channels);
    set(&mut d.queue, o.queue);
    set(&mut d.read.latency_ns, o.read_latency_ns);
    set(&mut d.read.bytes_per_s, o.read_bytes_per_s);
    set(&mut d.write.latency_ns, o.write_latency_ns);
    set(&mut d.write.bytes_per_s, o.write_bytes_per_s);
    if let Some(seek) = &mut d.seek {
        set(&mut seek.average_ns, o.seek_average_ns);
        set(&mut seek.track_to_track_ns, o.seek_track_ns);
        set(&mut seek.rpm, o.rpm);
    }
    set(&mut d.max_request_pages, o.max_request_pages);
    set(&mut d.compression_ratio, o.compression_ratio);
    d.mem_limit_pages = o.mem_limit_pages.or(d.mem_limit_pages);
    if let Some(codec) = &mut d.synchronous {
        set(&mut codec.write_page_ns, o.compress_ns);
        set(&mut codec.read_page_ns, o.decompress_ns);
    }
    set(&mut d.faults.read_error_per_million, o.read_error_per_million);
    set(&mut d.faults.write_error_per_million, o.write_error_per_million);
    set(&mut d.faults.spike_per_million, o.spike_per_million);
    set(&mut d.faults.spike_ns, o.spike_ns);
    set(&mut d.faults.stuck_for_ns, o.stuck_for_ns);
    d.faults.stuck_at_ns = o.stuck_at_ns.or(d.faults.stuck_at_ns);
    Ok(d)
}

/// Devices with nothing on them yet; swap comes after the files.
fn hardware(spec: &Scenario) -> Result<Hardware, String> {
    let specs: Result<Vec<_>, _> = spec.devices.iter().map(device_spec).collect();
    let seeds = (0..).map(|i: u64| spec.seed.wrapping_mul(31).wrapping_add(i));
    let devices = specs?.into_iter().zip(seeds).map(|(d, seed)| Device::new(d, seed)).collect();
    let files = |device: usize| -> u64 {
        let on_it = spec.objects.iter().enumerate().filter(|(_, o)| o.device == Some(device));
        on_it.map(|(i, o)| o.pages * u64::from(copies(spec, i))).sum()
    };
    Ok(Hardware::new(devices, spec.swap.iter().map(|s| (s.device, files(s.device))).collect()))
}

/// Instances of an object.
fn copies(spec: &Scenario, object: usize) -> u32 {
    if !spec.objects[object].private {
        return 1;
    }
    let uses = |t: &&scenario::TaskSpec| t.phases.iter().flat_map(|p| &p.streams).any(|s| s.object == object);
    spec.tasks.iter().find(uses).map_or(1, |t| t.count)
}

fn objects(
    spec: &Scenario,
    engine: &mut Engine,
    hw: &mut Hardware,
    groups: &Groups,
) -> Result<(Vec<Instance>, Vec<usize>), String> {
    let (mut instances, mut first) = (Vec::new(), Vec::new());
    let mut base = vec![0u64; spec.devices.len()];
    for (i, o) in spec.objects.iter().enumerate() {
        first.push(instances.len());
        let anon = o.kind == ObjectKind::Anon;
        let kind = if anon { MappingKind::Anon } else { MappingKind::File };
        let memcg = groups.nearest(spec, o.memcg);
        for _ in 0..copies(spec, i) {
            let (mapping, page) = engine.add_mapping(kind, memcg, indices(o))?;
            engine.advise_huge(mapping, o.huge);
            hw.add_extent(page, o.pages as u32, o.device, o.device.map_or(0, |d| base[d]));
            if let Some(extent) = hw.extents.last_mut() {
                extent.content = o.content;
            }
            if let Some(d) = o.device {
                base[d] += o.pages;
            }
            if anon {
                // The threads of a program share its page table.
                hw.add_space(instances.len());
            }
            instances.push(Instance { mapping, anon, of: Owner::Object(i), memcg: o.memcg });
        }
    }
    Ok((instances, first))
}

/// The places of the pages of an object in its address space: a hole behind each area.
fn indices(object: &scenario::ObjectSpec) -> impl Iterator<Item = u64> + '_ {
    let mut areas = object.areas.iter().copied().cycle();
    let mut left = areas.next().unwrap_or(u64::MAX);
    let mut holes = 0;
    (0..object.pages).map(move |page| {
        if left == 0 {
            left = areas.next().unwrap_or(u64::MAX);
            holes += 1;
        }
        left -= 1;
        page + holes
    })
}

/// Loads the traces and registers what they access, after the objects of the scenario.
fn traces(
    spec: &Scenario,
    engine: &mut Engine,
    hw: &mut Hardware,
    groups: &Groups,
    instances: &mut Vec<Instance>,
) -> Result<Vec<Option<Script>>, String> {
    let mut scripts = Vec::new();
    for (n, t) in spec.tasks.iter().enumerate() {
        let Some(source) = &t.trace else {
            scripts.push(None);
            continue;
        };
        let trace = load_trace(source)?;
        let memcg = groups.nearest(spec, t.memcg);
        let (first_extent, mut first, mut objects) = (instances.len(), None, Vec::new());
        for o in trace.objects.iter().filter(|o| !o.indices.is_empty()) {
            let anon = o.kind == ObjectKind::Anon;
            if !anon && source.device.is_none() {
                let what = "has files; say where they are: trace = { file = \"...\", device = \"...\" }";
                return Err(format!("task {}: {} {what}", t.name, source.path.display()));
            }
            let kind = if anon { MappingKind::Anon } else { MappingKind::File };
            let (mapping, page) = engine.add_mapping(kind, memcg, o.indices.iter().copied())?;
            first.get_or_insert(page);
            objects.push(o.first_page);
            // Places on the device are those in the file, one file after the other far apart.
            let base = (instances.len() as u64) << 32;
            hw.add_extent(page, o.indices.len() as u32, source.device.filter(|_| !anon), base);
            if anon {
                hw.add_space(instances.len());
            }
            instances.push(Instance { mapping, anon, of: Owner::Trace(n), memcg: t.memcg });
        }
        let (trace, first) = (Rc::new(trace), first.unwrap_or(refault_mm::PageId(0)));
        let objects = objects.into();
        scripts.push(Some(Script { trace, first, first_extent, objects, at: 0, timed: source.timed, start_ns: 0 }));
    }
    Ok(scripts)
}

fn load_trace(source: &TraceSpec) -> Result<Trace, String> {
    if source.path.as_os_str() == "-" {
        return Err("trace: a scenario cannot read a trace from standard input".into());
    }
    let mut records =
        refault_trace::open(&source.path, &refault_trace::OpenOptions::default()).map_err(|e| e.to_string())?;
    let options = LoadOptions { keep_time: source.timed, ..LoadOptions::default() };
    let trace = Trace::load(&mut *records, &options).map_err(|e| e.to_string())?;
    if source.timed && trace.time_ns.as_ref().is_none_or(|t| t.iter().all(|&at| at == 0)) {
        return Err(format!("trace: {} has no times; leave timed out", source.path.display()));
    }
    Ok(trace)
}

impl Machine {
    fn add_threads(&mut self, traces: Vec<Option<Script>>) -> Result<(), String> {
        let spec = self.spec.clone();
        for (i, t) in spec.tasks.iter().enumerate() {
            let groups = self.groups_of(t.memcg);
            for copy in 0..t.count {
                let mut task = Box::new(Task::new(i, copy, spec.seed));
                task.script.clone_from(&traces[i]);
                self.threads.push(thread(Work::Task(task), groups.clone()));
            }
            if t.after.is_none() {
                self.schedule_start(i, t.start_ns);
            }
        }
        for node in 0..spec.machine.nodes.len().max(1) {
            self.threads.push(thread(Work::Kswapd(NodeId(node as u8)), vec![0]));
        }
        self.threads.push(thread(Work::Flusher, vec![0]));
        self.threads.push(thread(Work::Zswap, vec![0]));
        for i in 0..spec.events.len() {
            self.threads.push(thread(Work::Admin(i), vec![0]));
        }
        for t in self.kswapd..self.threads.len() {
            self.threads[t].state = State::Blocked;
        }
        self.add_programs();
        Ok(())
    }

    /// All copies of a task begin then.
    pub(super) fn schedule_start(&mut self, spec: usize, at_ns: u64) {
        let stagger_ns = self.spec.tasks[spec].stagger_ns;
        if !self.spec.events.is_empty() {
            self.events.push(at_ns.max(self.now_ns), Event::Enter(spec));
        }
        for (t, copy) in self.threads_of(spec).zip(0..) {
            self.threads[t].state = State::Blocked;
            let start = at_ns.max(self.now_ns) + copy * stagger_ns;
            self.events.push(start, Event::Wake(t, self.threads[t].wait));
        }
    }
}

fn thread(work: Work, groups: Vec<usize>) -> Thread {
    Thread {
        work: Some(work),
        state: State::Off,
        mood: Mood::Idle,
        groups,
        wait: 0,
        woken: false,
        killed: false,
        read_failed: false,
        throttled: None,
        debt_ns: 0,
        stop: Stop::Preempted,
    }
}
