//! A run for programs; the schema is in docs/reference/replay-scenario.md.

use super::run::{ScenarioRun, bytes, per_second};
use crate::replay::groups::limits_json;
use crate::replay::swap_map;
use crate::runner::{Overrides, ending_name, overrides};
use refault_lab::machine::{
    ContentionResult, CpuResult, DeviceResult, EventResult, GroupTasks, KthreadResult, LockResult, LoopResult,
    MemcgResult, NodeResult, OomVictim, TaskResult, TierResult, TiersResult, ZoneResult,
};
use refault_lab::metric::{MetricSeries, Quantiles};
use refault_lab::scenario::{COLUMNS, Scenario, TIER_COLUMNS};
use refault_mm::{Lru, PsiLine, Watermarks};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Run<'a> {
    scenario: &'a str,
    policy: &'static str,
    overrides: Overrides,
    settings: serde_json::Map<String, serde_json::Value>,
    scale: f64,
    seed: u64,
    virtual_seconds: f64,
    real_seconds: f64,
    events: u64,
    ending: &'static str,
    oom_kills: u64,
    tasks: Vec<Task<'a>>,
    cpu: serde_json::Value,
    groups: Vec<Group<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    oom_victims: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    timeline: Vec<Happened<'a>>,
    devices: Vec<BTreeMap<&'static str, serde_json::Value>>,
    node: Node,
    swap: Vec<serde_json::Value>,
    swap_slots: serde_json::Value,
    /// By size, as `64kB.swpout`.
    mthp: BTreeMap<&'a str, u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    iterations: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tiers: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contention: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lru_gen: Option<&'a str>,
    series: BTreeMap<&'a str, Vec<serde_json::Value>>,
}

#[derive(Serialize)]
struct Task<'a> {
    name: &'a str,
    count: u32,
    seconds: f64,
    ops: u64,
    ops_per_s: f64,
    bytes_per_s: f64,
    accesses: u64,
    hits: u64,
    hit_rate: f64,
    errors: u64,
    oom_kills: u64,
    killed: u64,
    user_seconds: f64,
    system_seconds: f64,
    reclaim_seconds: f64,
    run_delay_seconds: f64,
    iowait_seconds: f64,
    throttled_seconds: f64,
    latency_ns: Latencies,
}

#[derive(Serialize)]
struct Latencies {
    mean: f64,
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

/// Outcome of an event of the scenario.
#[derive(Serialize)]
struct Happened<'a> {
    event: &'a str,
    /// Null: the run was over before, or its conditions did not hold.
    at_seconds: Option<f64>,
    last_at_seconds: Option<f64>,
    times: u64,
    /// The first thousand times.
    happened_at_seconds: Vec<f64>,
    asked_bytes: u64,
    reclaimed_bytes: u64,
    short: u64,
    killed: u64,
    victims: &'a [String],
    failed: Option<&'a str>,
}

#[derive(Serialize)]
struct Group<'a> {
    path: &'a str,
    /// Null: it never was.
    made_at_seconds: Option<f64>,
    removed_at_seconds: Option<f64>,
    limits: serde_json::Value,
    tasks: GroupTasksOut,
    refaults: u64,
    reclaimed_pages: u64,
    /// In bytes; of the machine null.
    #[serde(rename = "memory.peak")]
    peak_bytes: Option<u64>,
    #[serde(rename = "memory.events")]
    events: BTreeMap<&'static str, u64>,
    #[serde(rename = "memory.swap.events")]
    swap_events: BTreeMap<&'static str, u64>,
    counters: &'a BTreeMap<String, u64>,
    #[serde(rename = "memory.pressure")]
    pressure: Pressure,
}

/// Work of the tasks of a group together.
#[derive(Serialize)]
struct GroupTasksOut {
    ops: u64,
    ops_per_s: f64,
    accesses: u64,
    hits: u64,
    hit_rate: f64,
    errors: u64,
    oom_kills: u64,
    killed: u64,
    reclaim_seconds: f64,
    latency_ns: Latencies,
}

#[derive(Serialize)]
struct Pressure {
    some: Line,
    full: Line,
}

#[derive(Serialize)]
struct Line {
    avg10: f64,
    avg60: f64,
    avg300: f64,
    total_us: u64,
    highest: PsiPeaks,
}

/// The highest averages of the run.
#[derive(Serialize)]
struct PsiPeaks {
    avg10: f64,
    avg60: f64,
    avg300: f64,
}

#[derive(Serialize)]
struct Node {
    free_pages: u64,
    managed_pages: u64,
    swap_used_pages: u64,
    min_free_kbytes: u64,
    zones: Vec<serde_json::Value>,
}

/// The column of times.
const SECONDS: &str = "seconds";

/// Rows of the time series at most, and the last one.
const ROWS: usize = 480;

impl Serialize for ScenarioRun {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        run(self).serialize(to)
    }
}

fn run(outcome: &ScenarioRun) -> Run<'_> {
    let result = outcome.result();
    let lru_gen = outcome.lru_gen && outcome.policy.config().lru.kind == Lru::MultiGen;
    Run {
        scenario: &outcome.scenario.name,
        policy: outcome.policy.policy.name(),
        overrides: overrides(&outcome.policy),
        settings: settings(&outcome.scenario),
        scale: outcome.scale,
        seed: outcome.scenario.seed,
        virtual_seconds: result.seconds,
        real_seconds: outcome.done.real_seconds,
        events: result.events,
        ending: ending_name(result.ending),
        oom_kills: result.oom_kills,
        oom_victims: result.oom_victims.iter().map(victim).collect(),
        tasks: result.tasks.iter().map(task).collect(),
        cpu: cpu(&result.cpu),
        groups: result.memcgs.iter().enumerate().map(|(n, g)| group(n, g)).collect(),
        timeline: result.timeline.iter().map(happened).collect(),
        devices: result.devices.iter().map(device).collect(),
        node: node(&result.node),
        swap: outcome.swap().map(|(name, map)| swap_map::json(map, Some(name), outcome.swap_map)).collect(),
        swap_slots: serde_json::json!({
            "calls": result.swap_work.calls,
            "clusters": result.swap_work.clusters,
            "probes": result.swap_work.probes,
            "reclaimed": result.swap_work.reclaimed,
        }),
        mthp: result.sizes.iter().map(|(name, &n)| (name.trim_start_matches("mthp."), n)).collect(),
        iterations: result.loops.iter().map(iterations).collect(),
        tiers: result.tiers.as_ref().map(tiers),
        contention: result.contention.as_ref().map(contention),
        lru_gen: lru_gen.then_some(&*result.lru_gen),
        series: series(&result.series),
    }
}

/// Settings of the machine in the file: numbers and truth values as such, all else as text.
fn settings(scenario: &Scenario) -> serde_json::Map<String, serde_json::Value> {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| text.into());
    scenario.settings.iter().map(|(key, text)| (key.clone(), value(text))).collect()
}

/// CPU time of the threads of the kernel, and of tasks.
fn cpu(of: &CpuResult) -> serde_json::Value {
    let thread = |thread: &KthreadResult| {
        serde_json::json!({
            "name": thread.name,
            "seconds": thread.seconds,
            "percent": thread.percent,
            "highest_percent": thread.highest_percent,
        })
    };
    serde_json::json!({
        "kthreads": of.kthreads.iter().map(thread).collect::<Vec<_>>(),
        "tasks_seconds": of.tasks_seconds,
        "direct_reclaim_seconds": of.direct_reclaim_seconds,
        "busy_seconds": of.busy_seconds,
    })
}

/// Changes by each time through a recorded loop; counters that it left alone are left out.
fn iterations(of: &LoopResult) -> serde_json::Value {
    let changed = |all: &BTreeMap<String, u64>| {
        let some = all.iter().filter(|(_, n)| **n > 0).map(|(name, &n)| (name.clone(), n.into()));
        serde_json::Value::Object(some.collect())
    };
    serde_json::json!({ "task": of.task, "counters": of.iterations.iter().map(changed).collect::<Vec<_>>() })
}

/// Locks by kind, and interrupts between CPUs.
fn contention(of: &ContentionResult) -> serde_json::Value {
    let lock = |lock: &LockResult| {
        serde_json::json!({
            "name": lock.name,
            "acquisitions": lock.acquisitions,
            "contended": lock.contended,
            "hold_seconds": lock.hold_seconds,
            "wait_seconds": lock.wait_seconds,
        })
    };
    serde_json::json!({
        "locks": of.locks.iter().map(lock).collect::<Vec<_>>(),
        "flushes": of.flushes,
        "interrupts": of.interrupts,
        "flush_seconds": of.flush_seconds,
        "interrupted_seconds": of.interrupted_seconds,
    })
}

/// The columns of the time series, of many rows evenly chosen ones and the last. Counters that
/// stayed 0 are left out.
pub fn points(all: &MetricSeries) -> BTreeMap<&str, Vec<f64>> {
    let step = all.len().div_ceil(ROWS).max(1);
    let rows: Vec<_> =
        all.rows().enumerate().filter(|(n, _)| n % step == 0 || n + 1 == all.len()).map(|(_, row)| row).collect();
    let column = |at: usize| rows.iter().map(|row| row.1[at]).collect();
    let is_own = |name: &str| COLUMNS.contains(&name) || TIER_COLUMNS.contains(&name);
    let moved = |at: usize| rows.iter().any(|row| row.1[at] != 0.0);
    let columns = all.columns().iter().enumerate().filter(|(at, name)| is_own(name) || moved(*at));
    let columns = columns.map(|(at, name)| (&**name, column(at)));
    columns.chain([(SECONDS, rows.iter().map(|row| seconds(row.0)).collect())]).collect()
}

fn series(all: &MetricSeries) -> BTreeMap<&str, Vec<serde_json::Value>> {
    // Counts are written as whole numbers.
    let count = |n: f64| if n.fract() == 0.0 && n.abs() < 1e15 { (n as i64).into() } else { n.into() };
    let column = |(name, values): (_, Vec<f64>)| match name {
        SECONDS => (name, values.into_iter().map(Into::into).collect()),
        _ => (name, values.into_iter().map(count).collect()),
    };
    points(all).into_iter().map(column).collect()
}

fn victim(of: &OomVictim) -> serde_json::Value {
    serde_json::json!({
        "at_seconds": seconds(of.at_ns), "task": of.task, "group": of.group, "within": of.within,
    })
}

fn task(task: &TaskResult) -> Task<'_> {
    Task {
        name: &task.name,
        count: task.count,
        seconds: task.seconds,
        ops: task.ops,
        ops_per_s: per_second(task, task.ops as f64),
        bytes_per_s: per_second(task, bytes(task)),
        accesses: task.accesses,
        hits: task.hits,
        hit_rate: task.hit_rate(),
        errors: task.errors,
        oom_kills: task.oom_kills,
        killed: task.killed,
        user_seconds: task.user_seconds,
        system_seconds: task.system_seconds,
        reclaim_seconds: task.reclaim_seconds,
        run_delay_seconds: task.run_delay_seconds,
        iowait_seconds: task.iowait_seconds,
        throttled_seconds: task.throttled_seconds,
        latency_ns: latencies(&Quantiles::from(&task.latency)),
    }
}

fn latencies(of: &Quantiles) -> Latencies {
    Latencies { mean: of.mean_ns, p50: of.p50_ns, p90: of.p90_ns, p99: of.p99_ns, p999: of.p999_ns, max: of.max_ns }
}

fn happened(event: &EventResult) -> Happened<'_> {
    Happened {
        event: &event.what,
        at_seconds: event.at_ns.map(seconds),
        last_at_seconds: event.last_ns.map(seconds),
        times: event.times,
        happened_at_seconds: event.happened_ns.iter().map(|&ns| seconds(ns)).collect(),
        asked_bytes: event.asked_pages * 4096,
        reclaimed_bytes: event.reclaimed_pages * 4096,
        short: event.short,
        killed: event.killed,
        victims: &event.victims,
        failed: event.failed.as_deref(),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn group(number: usize, group: &MemcgResult) -> Group<'_> {
    let sum = |names: [&str; 2]| names.iter().map(|name| group.counter(name)).sum();
    Group {
        path: &group.path,
        made_at_seconds: group.made_ns.map(seconds),
        removed_at_seconds: group.removed_ns.map(seconds),
        limits: limits_json(&group.limits),
        tasks: group_tasks(&group.tasks),
        refaults: sum(["workingset_refault_anon", "workingset_refault_file"]),
        reclaimed_pages: sum(["pgsteal_anon", "pgsteal_file"]),
        peak_bytes: (number > 0).then(|| group.counter("memory.peak") * 4096),
        events: group.events.iter().copied().collect(),
        swap_events: group.swap_events.iter().copied().collect(),
        counters: &group.counters,
        pressure: Pressure { some: line(group, 0), full: line(group, 1) },
    }
}

fn group_tasks(of: &GroupTasks) -> GroupTasksOut {
    GroupTasksOut {
        ops: of.ops,
        ops_per_s: of.ops_per_s,
        accesses: of.accesses,
        hits: of.hits,
        hit_rate: of.hit_rate(),
        errors: of.errors,
        oom_kills: of.oom_kills,
        killed: of.killed,
        reclaim_seconds: of.reclaim_seconds,
        latency_ns: latencies(&of.latency),
    }
}

fn line(group: &MemcgResult, kind: usize) -> Line {
    let PsiLine { avg10, avg60, avg300, total_us } = group.psi[kind];
    let [h10, h60, h300] = group.psi_peaks[kind];
    Line { avg10, avg60, avg300, total_us, highest: PsiPeaks { avg10: h10, avg60: h60, avg300: h300 } }
}

fn device(device: &DeviceResult) -> BTreeMap<&'static str, serde_json::Value> {
    let name = ("name", device.name.clone().into());
    std::iter::once(name).chain(device_numbers(device).map(|(what, n)| (what, n.into()))).collect()
}

fn node(node: &NodeResult) -> Node {
    let zone = |z: &ZoneResult| {
        let Watermarks { min, low, high, promo } = z.marks;
        serde_json::json!({
            "name": z.name,
            "managed_pages": z.managed,
            "free_pages": z.free,
            "min": min,
            "low": low,
            "high": high,
            "promo": promo,
        })
    };
    Node {
        free_pages: node.free_pages,
        managed_pages: node.managed_pages,
        swap_used_pages: node.swap_used_pages,
        min_free_kbytes: node.min_free_kbytes,
        zones: node.zones.iter().map(zone).collect(),
    }
}

/// Tiers of memory in the phases that count.
fn tiers(tiers: &TiersResult) -> serde_json::Value {
    let node = |n: &TierResult| {
        serde_json::json!({
            "name": n.name, "tier": n.tier, "abstract_distance": n.abstract_distance, "top": n.top, "pages": n.pages,
            "free_pages": n.free_pages, "reads": n.accesses[0], "writes": n.accesses[1], "share": n.share,
            "mean_access_ns": n.mean_access_ns, "pages_in": n.pages_in, "pages_out": n.pages_out,
            "utilization": n.utilization,
        })
    };
    serde_json::json!({
        "seconds": tiers.seconds,
        "nodes": tiers.nodes.iter().map(node).collect::<Vec<_>>(),
        "mean_access_ns": tiers.mean_access_ns(),
        "promoted_pages": tiers.promoted,
        "demoted_pages": tiers.demoted,
        "promoted_bytes_per_s": tiers.promoted_bytes_per_s(),
        "demoted_bytes_per_s": tiers.demoted_bytes_per_s(),
        "hot_threshold_ms": tiers.hot_threshold_ms,
        "best_share": tiers.best_share,
        "scanned_ptes": tiers.scanned_ptes,
        "marked_pages": tiers.marked_pages,
    })
}

/// Counters of a device, by name.
pub fn device_numbers(device: &DeviceResult) -> impl Iterator<Item = (&'static str, u64)> {
    let stats = &device.stats;
    let done = [
        ("submitted", stats.submitted),
        ("reads", stats.reads),
        ("writes", stats.writes),
        ("read_bytes", stats.read_bytes),
        ("write_bytes", stats.write_bytes),
        ("read_errors", stats.read_errors),
        ("write_errors", stats.write_errors),
        ("spikes", stats.spikes),
        ("read_ns", stats.read_ns),
        ("write_ns", stats.write_ns),
        ("busy_ns", stats.busy_ns),
        ("max_depth", stats.max_depth),
    ];
    done.into_iter().chain(device.zram.iter().flat_map(|zram| zram.named()))
}
