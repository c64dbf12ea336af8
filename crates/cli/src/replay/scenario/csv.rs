//! The result for spreadsheets: a line a task.

use super::text::more_counters;
use crate::given::GivenSettings;
use crate::replay::text::quoted;
use refault::runner::ending_name;
use refault::scenario::{ScenarioRun, bytes, per_second};
use refault::words::printable;
use refault_lab::machine::{RunResult, TaskResult};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Comma-separated values with a heading; `all` adds a column for every counter and size of the
/// machine, of folios by size, of swap slots, and CPU time. No name has a comma in it: scenarios
/// refuse such.
pub(super) fn csv(outcomes: &[ScenarioRun], settings: &GivenSettings, all: bool) -> String {
    let mut text = String::from(
        "scenario,policy,scale,seed,task,copies,seconds,ops,ops_per_s,bytes_per_s,accesses,hits,hit_rate,p50_ns,p99_ns,\
         errors,user_seconds,system_seconds,reclaim_seconds,run_delay_seconds,iowait_seconds,throttled_seconds,\
         virtual_seconds",
    );
    let Some(first) = outcomes.first() else { return text };
    first.machine().iter().for_each(|(name, _)| text.extend([",", name]));
    text.push_str(",kswapd_seconds,direct_reclaim_seconds,ending,real_seconds,kernel,settings");
    let counters = |outcome: &ScenarioRun| if all { counters(outcome.result()) } else { BTreeMap::new() };
    let names: Vec<_> = counters(first).into_keys().collect();
    names.iter().for_each(|name| text.extend([",", name]));
    text.push('\n');
    for outcome in outcomes {
        let counters = counters(outcome);
        for task in &outcome.result().tasks {
            line(&mut text, outcome, task);
            let _ = write!(text, ",{},{}", outcome.policy.kernel.name(), quoted(&all_settings(outcome, settings)));
            for name in &names {
                let _ = write!(text, ",{}", counters.get(name).copied().unwrap_or(0.0));
            }
            text.push('\n');
        }
    }
    text
}

/// Flags that were given, and the settings of machine and policy in the file.
fn all_settings(outcome: &ScenarioRun, given: &GivenSettings) -> String {
    let of_machine = outcome.scenario.settings.iter().map(|(key, value)| format!("{key}={}", plain(value)));
    let chosen = &outcome.policy.settings;
    let of_policy = chosen.settings().filter_map(|s| Some(format!("policy.{}={}", s.name, chosen.get(s.name)?)));
    let flags = Some(given.to_string()).filter(|flags| !flags.is_empty());
    flags.into_iter().chain(of_policy).chain(of_machine).collect::<Vec<_>>().join(" ")
}

/// A value of a scenario on one line, without its quotes.
fn plain(value: &str) -> String {
    printable(&value.replace('"', "").split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Everything that the machine counts, by name.
fn counters(result: &RunResult) -> BTreeMap<String, f64> {
    let machine = result.memcgs.first().into_iter().flat_map(|machine| &machine.counters);
    machine.map(|(name, &n)| (name.clone(), n as f64)).chain(more_counters(result)).collect()
}

fn line(text: &mut String, outcome: &ScenarioRun, task: &TaskResult) {
    let result = outcome.result();
    let _ = write!(
        text,
        "{},{},{},{},{},{},{},{},{},{},{},{},{:.6},{},{},{},{},{},{},{},{},{},{}",
        outcome.scenario.name,
        outcome.policy.policy,
        outcome.scale,
        outcome.scenario.seed,
        task.name,
        task.count,
        task.seconds,
        task.ops,
        per_second(task, task.ops as f64),
        per_second(task, bytes(task)),
        task.accesses,
        task.hits,
        task.hit_rate(),
        task.latency.p50_ns(),
        task.latency.p99_ns(),
        task.errors,
        task.user_seconds,
        task.system_seconds,
        task.reclaim_seconds,
        task.run_delay_seconds,
        task.iowait_seconds,
        task.throttled_seconds,
        result.seconds,
    );
    for (_, number) in outcome.machine() {
        let _ = write!(text, ",{number}");
    }
    let _ = write!(text, ",{},{}", result.cpu.kswapd_seconds(), result.cpu.direct_reclaim_seconds);
    let _ = write!(text, ",{},{:.3}", ending_name(result.ending), outcome.done.real_seconds);
}
