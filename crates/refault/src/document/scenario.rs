//! Output of `refault replay SCENARIO --json`.

use super::{MOST_POINTS, chosen};
use crate::names::shown;
use crate::runner::ending_name;
use crate::scenario::{ScenarioRun, bytes, group_column, per_second, points, task_column};
use crate::units::counted;
use refault_lab::machine::{EventResult, MemcgResult, OomVictim, TaskResult};
use refault_lab::metric::Quantiles;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// All runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScenarioDocument {
    /// The version of refault.
    pub refault: String,
    /// A run for each scenario and policy.
    pub runs: Vec<Run>,
    /// Remarks on the traces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Run {
    pub scenario: String,
    pub policy: String,
    pub scale: f64,
    pub seed: u64,
    pub virtual_seconds: f64,
    pub ending: String,
    pub oom_kills: u64,
    pub tasks: Vec<Task>,
    pub groups: Vec<Group>,
    pub swap: Vec<Swap>,
    /// Outcomes of the events of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<EventFacts>,
    /// Whom the out-of-memory killer took, in the order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub oom_victims: Vec<VictimFacts>,
    /// The columns of the time series, by name; JSON of older versions has none.
    pub series: BTreeMap<String, Vec<f64>>,
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Task {
    pub name: String,
    pub count: u64,
    pub ops_per_s: f64,
    pub bytes_per_s: f64,
    pub accesses: u64,
    pub hit_rate: Option<f64>,
    pub errors: u64,
    pub oom_kills: u64,
    pub killed: u64,
    pub latency_ns: LatencyFacts,
}

/// A task that the out-of-memory killer took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct VictimFacts {
    pub at_seconds: f64,
    pub task: String,
    pub group: String,
    pub within: String,
}

/// Outcome of an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct EventFacts {
    pub event: String,
    pub at_seconds: Option<f64>,
    pub last_at_seconds: Option<f64>,
    pub times: u64,
    pub killed: u64,
    pub victims: Vec<String>,
    pub failed: Option<String>,
}

/// Latencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct LatencyFacts {
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

/// A memory cgroup, or the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Group {
    pub path: String,
    pub refaults: u64,
    pub reclaimed_pages: u64,
    #[serde(rename = "memory.peak")]
    pub peak_bytes: Option<u64>,
    pub counters: BTreeMap<String, u64>,
    #[serde(rename = "memory.pressure")]
    pub pressure: Pressure,
}

/// Pressure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Pressure {
    pub some: PressureLine,
    pub full: PressureLine,
}

/// Pressure of one kind, some or full.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct PressureLine {
    pub total_us: u64,
}

/// A swap device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the reference page")]
pub struct Swap {
    pub device: String,
    pub usable_pages: u64,
    pub used_pages: u64,
    pub peak_pages: u64,
    /// Number of clusters by share of slots in use: empty ones first, then by eighths.
    pub clusters_by_usage: Vec<u64>,
}

/// Runs, tasks and groups of one document at most.
const MOST: usize = 60;
/// Columns of a time series at most: more than there are counters.
const MOST_COLUMNS: usize = 600;

/// Counters of a group that pages show.
const SHOWN: [&str; 12] = [
    "pgsteal_anon",
    "pgsteal_file",
    "pgscan_anon",
    "pgscan_file",
    "pswpin",
    "pswpout",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "pgpromote_success",
    "pgdemote_kswapd",
];

pub(super) fn read(value: Value) -> Result<ScenarioDocument, serde_json::Error> {
    let mut all: ScenarioDocument = serde_json::from_value(value)?;
    all.cut();
    Ok(all)
}

impl Run {
    /// How it ended, in words.
    pub fn end(&self) -> &str {
        match self.ending.as_str() {
            "tasks-done" => "ended when all tasks were done",
            "time" => "ended at the time that the scenario sets",
            "stuck" => "ended because nothing could go on",
            other => other,
        }
    }

    /// The group that waits longest for memory; without groups the machine.
    pub fn most_stalled_group(&self) -> Option<&Group> {
        let below = self.groups.iter().filter(|g| g.path != "/").max_by_key(|g| g.pressure.some.total_us);
        below.or(self.groups.first())
    }

    /// The task with the longest p99; none: no task had an operation.
    pub fn slowest_task(&self) -> Option<&Task> {
        self.tasks.iter().filter(|t| t.latency_ns.p99 > 0).max_by_key(|t| t.latency_ns.p99)
    }

    /// Share of the run that so many microseconds are, in percent.
    pub fn percent_of_time(&self, us: u64) -> f64 {
        100.0 * us as f64 / 1e6 / self.virtual_seconds.max(1e-9)
    }

    /// The task that the out-of-memory killer took first.
    pub fn killed_first(&self) -> Option<&VictimFacts> {
        self.oom_victims.first()
    }
}

impl Run {
    fn of(run: &ScenarioRun) -> Run {
        let result = run.result();
        let swap = run.swap().map(|(device, map)| Swap {
            device: device.to_owned(),
            usable_pages: map.device.usable_pages,
            used_pages: map.device.used_pages,
            peak_pages: map.device.peak_pages,
            clusters_by_usage: map.usage_histogram().to_vec(),
        });
        Run {
            scenario: run.scenario.name.clone(),
            policy: run.policy.policy.name().to_owned(),
            scale: run.scale,
            seed: run.scenario.seed,
            virtual_seconds: result.seconds,
            ending: ending_name(result.ending).to_owned(),
            oom_kills: result.oom_kills,
            tasks: result.tasks.iter().map(Task::of).collect(),
            groups: result.memcgs.iter().enumerate().map(|(n, group)| Group::of(group, n == 0)).collect(),
            swap: swap.collect(),
            timeline: result.timeline.iter().map(EventFacts::of).collect(),
            oom_victims: result.oom_victims.iter().map(VictimFacts::of).collect(),
            series: points(&result.series).into_iter().map(|(name, column)| (name.to_owned(), column)).collect(),
        }
    }
}

impl Task {
    fn of(task: &TaskResult) -> Task {
        Task {
            name: task.name.clone(),
            count: task.count.into(),
            ops_per_s: per_second(task, task.ops as f64),
            bytes_per_s: per_second(task, bytes(task)),
            accesses: task.accesses,
            hit_rate: Some(task.hit_rate()),
            errors: task.errors,
            oom_kills: task.oom_kills,
            killed: task.killed,
            latency_ns: Quantiles::from(&task.latency).into(),
        }
    }
}

impl VictimFacts {
    fn of(victim: &OomVictim) -> VictimFacts {
        VictimFacts {
            at_seconds: victim.at_ns as f64 / 1e9,
            task: victim.task.clone(),
            group: victim.group.clone(),
            within: victim.within.clone(),
        }
    }
}

impl EventFacts {
    fn of(event: &EventResult) -> EventFacts {
        let seconds = |ns: u64| ns as f64 / 1e9;
        EventFacts {
            event: event.what.clone(),
            at_seconds: event.at_ns.map(seconds),
            last_at_seconds: event.last_ns.map(seconds),
            times: event.times,
            killed: event.killed,
            victims: event.victims.clone(),
            failed: event.failed.clone(),
        }
    }
}

impl From<Quantiles> for LatencyFacts {
    fn from(of: Quantiles) -> LatencyFacts {
        LatencyFacts { p50: of.p50_ns, p99: of.p99_ns, max: of.max_ns }
    }
}

fn sum(group: &MemcgResult, names: [&str; 2]) -> u64 {
    names.iter().map(|name| group.counter(name)).sum()
}

impl Group {
    fn of(group: &MemcgResult, is_machine: bool) -> Group {
        let line = |kind: usize| PressureLine { total_us: group.psi[kind].total_us };
        Group {
            path: group.path.clone(),
            refaults: sum(group, ["workingset_refault_anon", "workingset_refault_file"]),
            reclaimed_pages: sum(group, ["pgsteal_anon", "pgsteal_file"]),
            peak_bytes: (!is_machine).then(|| group.counter("memory.peak") * 4096),
            counters: group.counters.clone(),
            pressure: Pressure { some: line(0), full: line(1) },
        }
    }
}

impl ScenarioDocument {
    /// Makes it of runs; `notes` are remarks on their traces.
    pub fn of(runs: &[ScenarioRun], notes: Vec<String>) -> ScenarioDocument {
        let runs = runs.iter().take(MOST).map(Run::of).collect();
        let mut all = ScenarioDocument { refault: env!("CARGO_PKG_VERSION").to_owned(), runs, notes };
        all.cut();
        all
    }

    /// Cuts lists and names to what a page can hold.
    pub fn cut(&mut self) {
        self.runs.truncate(MOST);
        for run in &mut self.runs {
            run.scenario = shown(&run.scenario);
            run.tasks.truncate(MOST);
            run.groups.truncate(MOST);
            run.timeline.truncate(MOST);
            run.oom_victims.truncate(MOST);
            for victim in &mut run.oom_victims {
                for name in [&mut victim.task, &mut victim.group, &mut victim.within] {
                    *name = shown(name);
                }
            }
            for event in &mut run.timeline {
                event.event = shown(&event.event);
                event.failed = event.failed.as_deref().map(shown);
                event.victims.truncate(MOST);
                event.victims.iter_mut().for_each(|name| *name = shown(name));
            }
            run.swap.iter_mut().for_each(|swap| swap.device = shown(&swap.device));
            // Columns of the machine before those of its tasks and groups.
            let mut series: Vec<_> = std::mem::take(&mut run.series).into_iter().collect();
            series.sort_by_key(|(name, _)| (group_column(name).is_some(), task_column(name).is_some()));
            run.series = series.into_iter().take(MOST_COLUMNS).collect();
            run.series.values_mut().for_each(|column| *column = chosen(column, MOST_POINTS));
            run.tasks.iter_mut().for_each(|task| task.name = shown(&task.name));
            for group in &mut run.groups {
                group.path = shown(&group.path);
                group.counters.retain(|name, n| *n > 0 && SHOWN.contains(&name.as_str()));
            }
        }
    }

    /// Summary in a line.
    pub fn facts(&self) -> String {
        let Some(run) = self.runs.first() else { return format!("no run, refault {}", self.refault) };
        format!(
            "{} of {} in virtual time, scale {}, seed {}, refault {}",
            counted(self.runs.len() as u64, "run"),
            run.scenario,
            run.scale,
            run.seed,
            self.refault
        )
    }
}
