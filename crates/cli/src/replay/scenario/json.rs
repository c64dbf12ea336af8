//! The result for programs; the schema is in docs/lab.md.

use super::outcome::{Outcome, bytes, per_second};
use super::text::device_numbers;
use crate::Failure;
use crate::lab::{ending_name, overrides};
use refault_mm::{Lru, PsiLine};
use refault_sim::machine::{DeviceResult, MemcgResult, TaskResult};
use serde_json::{Map, Value, json};

/// One object; a line a run, so that tools for lines work too.
pub(super) fn json(outcomes: &[Outcome], lru_gen: bool) -> Result<String, Failure> {
    let lines: Vec<_> = outcomes.iter().map(|o| serde_json::to_string(&run(o, lru_gen))).collect::<Result<_, _>>()?;
    Ok(format!("{{\"refault\":\"{}\",\"runs\":[\n{}\n]}}\n", env!("CARGO_PKG_VERSION"), lines.join(",\n")))
}

fn run(outcome: &Outcome, lru_gen: bool) -> Value {
    let result = outcome.result();
    let mut run = json!({
        "scenario": outcome.scenario.name,
        "policy": outcome.policy.policy.name(),
        "overrides": object(overrides(&outcome.policy)),
        "scale": outcome.scale,
        "seed": outcome.scenario.seed,
        "virtual_seconds": result.seconds,
        "real_seconds": outcome.done.real_seconds,
        "events": result.events,
        "ending": ending_name(result.ending),
        "oom_kills": result.oom_kills,
        "tasks": result.tasks.iter().map(task).collect::<Vec<_>>(),
        "groups": result.memcgs.iter().map(group).collect::<Vec<_>>(),
        "devices": result.devices.iter().map(device).collect::<Vec<_>>(),
        "node": {
            "free_pages": result.node.free_pages,
            "managed_pages": result.node.managed_pages,
            "swap_used_pages": result.node.swap_used_pages,
        },
    });
    if lru_gen && outcome.policy.config().lru == Lru::MultiGen {
        run["lru_gen"] = result.lru_gen.clone().into();
    }
    run
}

fn task(task: &TaskResult) -> Value {
    let latency = &task.latency;
    json!({
        "name": task.name,
        "count": task.count,
        "seconds": task.seconds,
        "ops": task.ops,
        "ops_per_s": per_second(task, task.ops as f64),
        "bytes_per_s": per_second(task, bytes(task)),
        "accesses": task.accesses,
        "hits": task.hits,
        "hit_rate": task.hit_rate(),
        "errors": task.errors,
        "reclaim_seconds": task.reclaim_seconds,
        "latency_ns": {
            "mean": latency.mean_ns(),
            "p50": latency.p50_ns(),
            "p90": latency.p90_ns(),
            "p99": latency.p99_ns(),
            "p999": latency.p999_ns(),
            "max": latency.max_ns(),
        },
    })
}

fn group(group: &MemcgResult) -> Value {
    let [some, full] = group.psi.each_ref().map(pressure);
    json!({ "path": group.path, "counters": group.counters, "pressure": { "some": some, "full": full } })
}

fn pressure(line: &PsiLine) -> Value {
    json!({ "avg10": line.avg10, "avg60": line.avg60, "avg300": line.avg300, "total_us": line.total_us })
}

fn device(device: &DeviceResult) -> Value {
    let mut all = object([("name", device.name.clone().into())]);
    all.extend(object(device_numbers(&device.stats).map(|(name, n)| (name, n.into()))));
    all.into()
}

fn object(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Map<String, Value> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
