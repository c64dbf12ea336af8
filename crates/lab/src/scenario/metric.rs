//! The names of results that a scenario can have.

use super::types::Scenario;
use super::{COLUMNS, TIER_COLUMNS, series_columns};
use crate::contention::LOCK_KINDS;
use crate::device::ZramStats;
use crate::results::{ContentionResult, CpuResult, SwapResult};
use refault_mm::ThpConfig;

/// Ways to make one number of several times through a loop.
const FOLDS: [&str; 7] = ["mean", "min", "lower-quartile", "median", "upper-quartile", "max", "nonzero"];
/// Ways to make one number of a column of the time series.
const SERIES_FOLDS: [&str; 3] = ["mean", "min", "max"];
/// Figures of a node in the phases that count.
pub(super) const TIER_METRICS: [&str; 6] =
    ["accesses", "share", "mean_access_ns", "promoted_bytes_per_s", "demoted_bytes_per_s", "utilization"];
const TASK_METRICS: [&str; 14] = [
    "ops_per_s",
    "bytes_per_s",
    "accesses_per_s",
    "seconds",
    "user_seconds",
    "system_seconds",
    "reclaim_seconds",
    "run_delay_seconds",
    "iowait_seconds",
    "throttled_seconds",
    "ops",
    "p50_ns",
    "p99_ns",
    "hit_rate",
];
const SWAP_METRICS: [&str; 6] = ["used_pages", "calls", "clusters", "probes", "reclaimed", "steps"];

/// Checks a name of a result of a recorded loop: its iterations, their fold and their counter.
fn iterations(one: bool, rest: &str, times: u64) -> std::result::Result<(), String> {
    let (which, rest) = rest.split_once('.').unwrap_or((rest, ""));
    let number = |n: &str| n.parse::<u64>().ok().filter(|n| (1..=times).contains(n));
    let (fold, counter, good) = match one {
        true => ("mean", rest, number(which).is_some()),
        false => {
            let (fold, counter) = rest.split_once('.').unwrap_or((rest, ""));
            let ends = which.split_once('-').and_then(|(from, to)| number(from).zip(number(to)));
            (fold, counter, ends.is_some_and(|(from, to)| from <= to))
        }
    };
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    match () {
        _ if !good && one => Err(format!("is of no time through the loop; write 1 to {times}")),
        _ if !good => Err(format!("is of no times through the loop; write 1-{times}, or a part of it")),
        _ if !FOLDS.contains(&fold) => Err(format!("is not a result; after the times comes {}", FOLDS.join(", "))),
        _ if counter.is_empty() || !counter.chars().all(name) => {
            Err("does not end in the name of a counter".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks that a metric can be a result of the scenario, or both metrics of a quotient `A / B`. The
/// error says what is wrong.
pub(super) fn check(metric: &str, scenario: &Scenario) -> std::result::Result<(), String> {
    metric.splitn(2, " / ").try_for_each(|one| check_one(one, scenario))
}

/// Checks that a name is known under a prefix.
fn one_of(prefix: &str, known: &[&str], name: &str) -> std::result::Result<(), String> {
    match known.contains(&name) {
        true => Ok(()),
        false => Err(format!("is not a result; after {prefix}. comes {}", known.join(", "))),
    }
}

/// A column of the time series, and what becomes of it.
fn series(name: &str, last: &str, scenario: &Scenario) -> std::result::Result<(), String> {
    let has_nodes = !scenario.machine.nodes.is_empty();
    let groups = scenario.memcgs.iter().map(|m| &*m.path);
    let tasks = scenario.tasks.iter().map(|t| &*t.name);
    if !series_columns(has_nodes, tasks, groups).iter().any(|column| column == name) {
        let known: Vec<_> = COLUMNS.iter().chain(TIER_COLUMNS.iter().filter(|_| has_nodes)).copied().collect();
        return one_of("series", &known, name).map_err(|e| {
            e + ", or a counter or size, of the machine or of memcg.PATH, or task.NAME.p99_ns and its like"
        });
    }
    one_of("series", &SERIES_FOLDS, last)
        .map_err(|_| format!("is not a result; after the column comes {}", SERIES_FOLDS.join(", ")))
}

/// CPU time, in all or of a thread of the kernel.
fn cpu(name: &str, last: &str, scenario: &Scenario) -> std::result::Result<(), String> {
    if name.is_empty() {
        return one_of("cpu", &CpuResult::METRICS, last).map_err(|e| e + ", or kswapd0 and its like");
    }
    let kswapd: Vec<_> = (0..scenario.machine.nodes.len().max(1)).map(|n| format!("kswapd{n}")).collect();
    let threads: Vec<_> = kswapd.iter().map(|k| &**k).chain(["flush", "zswap-shrink"]).collect();
    one_of("cpu", &threads, name)?;
    one_of("cpu", &CpuResult::THREAD_METRICS, last)
}

/// Results of a device: its bytes, and, for zram that is swapped to, figures of its pool.
fn device_metrics(name: &str, scenario: &Scenario) -> Vec<&'static str> {
    let is_swap = |i: &usize| scenario.swap.iter().any(|s| s.device == *i);
    let device = scenario.devices.iter().position(|d| d.name == name).filter(is_swap);
    let zram = device.is_some_and(|i| scenario.devices[i].preset == "zram");
    let figures = ZramStats::default().named().map(|(figure, _)| figure);
    ["read_bytes", "write_bytes"].into_iter().chain(figures.into_iter().filter(|_| zram)).collect()
}

/// Times through the loop that a task records.
fn recorded_times(task: &str, scenario: &Scenario) -> std::result::Result<u64, String> {
    let spec = scenario.tasks.iter().find(|t| t.name == task);
    let recorded = spec.and_then(|t| t.loops.iter().find(|l| l.record));
    let none = || format!("is about a loop, and {task} records none; write record = true");
    recorded.map(|l| l.times).ok_or_else(none)
}

fn check_one(metric: &str, scenario: &Scenario) -> std::result::Result<(), String> {
    let (prefix, rest) = metric.split_once('.').unwrap_or((metric, ""));
    let counter = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let (name, last) = rest.rsplit_once('.').unwrap_or(("", rest));
    let one_of = |known: &[&str], name: &str| one_of(prefix, known, name);
    let declared = |found: bool| match found {
        true => Ok(()),
        false => Err(format!("is about the {prefix} {name:?}, which is not declared")),
    };
    match prefix {
        "task" => {
            declared(scenario.tasks.iter().any(|t| t.name == name))?;
            one_of(&TASK_METRICS, last).map_err(|_| format!("is not a result; known are {}", TASK_METRICS.join(", ")))
        }
        "device" => {
            declared(scenario.devices.iter().any(|d| d.name == name))?;
            one_of(&device_metrics(name, scenario), last)
        }
        "memcg" => {
            declared(scenario.memcgs.iter().any(|m| m.path == name))?;
            if counter(last) { Ok(()) } else { Err("does not end in the name of a counter".to_owned()) }
        }
        "mthp" => {
            let sizes = (ThpConfig::MIN_ORDER..=ThpConfig::MAX_ORDER).map(|order| format!("{}kB", 4u32 << order));
            let sizes: Vec<_> = sizes.collect();
            one_of(&sizes.iter().map(String::as_str).collect::<Vec<_>>(), name)?;
            if counter(last) { Ok(()) } else { Err("does not end in the name of a counter".to_owned()) }
        }
        "tier" => {
            declared(scenario.machine.nodes.iter().any(|n| n.name == name))?;
            one_of(&TIER_METRICS, last)
        }
        "series" => series(name, last, scenario),
        "cpu" => cpu(name, last, scenario),
        "total" if !scenario.machine.nodes.is_empty() => {
            one_of(&["seconds", "ops_per_s", "promoted_bytes_per_s", "demoted_bytes_per_s", "mean_access_ns"], rest)
        }
        "total" => one_of(&["seconds", "ops_per_s"], rest),
        "swap" if name.is_empty() => one_of(&SWAP_METRICS, rest).map_err(|e| e + ", or a device"),
        "swap" => {
            declared(scenario.swap.iter().any(|s| scenario.devices[s.device].name == name))?;
            let known = SwapResult::METRICS.join(", ");
            one_of(&SwapResult::METRICS, last).map_err(|_| format!("is not a result; after the device comes {known}"))
        }
        "contention" if scenario.machine.contention.is_none() => {
            Err("is not a result: CPUs do not wait for each other; write [machine.contention]".to_owned())
        }
        "contention" if name.is_empty() => one_of(&ContentionResult::METRICS, last).map_err(|e| e + ", or a lock"),
        "contention" => {
            one_of(&LOCK_KINDS, name)?;
            one_of(&ContentionResult::LOCK_METRICS, last)
        }
        "psi" => one_of(&["some_us", "full_us"], rest),
        "iteration" | "iterations" => {
            let (task, rest) = rest.split_once('.').unwrap_or((rest, ""));
            declared(scenario.tasks.iter().any(|t| t.name == task))?;
            iterations(prefix == "iteration", rest, recorded_times(task, scenario)?)
        }
        "vmstat" | "node" if counter(rest) => Ok(()),
        "vmstat" | "node" => Err("does not end in the name of a counter".to_owned()),
        _ => Err("is not a result; write task.NAME., total., cpu., tier.NODE., vmstat., mthp.SIZE., memcg.PATH., device.NAME., node., swap., contention., psi., series.COLUMN., \
                  iteration.TASK.N. or iterations.TASK.FROM-TO.FOLD. and what of it"
            .to_owned()),
    }
}
