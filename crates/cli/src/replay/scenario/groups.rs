//! The groups of a run, beside each other.

use super::outcome::Outcome;
use crate::replay::groups::limits_text;
use crate::replay::size::human;
use crate::replay::table::Table;
use crate::terminal::{duration, grouped, number, printable};
use refault_sim::machine::MemcgResult;
use refault_sim::scenario::MemcgSpec;

/// The columns that every table of groups has, and the counters behind them.
const HEADS: [&str; 17] = [
    "group",
    "memory\npeak",
    "ops/s",
    "hit\nrate",
    "latency\np99",
    "refaults",
    "pages\nreclaimed",
    "swapped\nin",
    "\nout",
    "stalled\nsome",
    "\nfull",
    "some avg10\nhighest",
    "events\nlow",
    "\nhigh",
    "\nmax",
    "\noom",
    "\noom_kill",
];

/// The groups of the scenario, below the machine as a whole; nothing if there are none.
pub(super) fn table(outcome: &Outcome) -> String {
    let groups = &outcome.result().memcgs;
    if groups.len() < 2 {
        return String::new();
    }
    let mut table = Table::new(HEADS, 1);
    for (n, group) in groups.iter().enumerate() {
        let spec = n.checked_sub(1).and_then(|m| outcome.scenario.memcgs.get(m));
        table.row(row(outcome, group, spec));
    }
    format!("\n{}", table.render())
}

fn row(outcome: &Outcome, group: &MemcgResult, spec: Option<&MemcgSpec>) -> Vec<String> {
    let share = |kind: usize| {
        let seconds = outcome.result().seconds;
        let lost = group.psi[kind].total_us as f64 / 1e6;
        format!("{:.2}%", if seconds > 0.0 { 100.0 * lost / seconds } else { 0.0 })
    };
    let sum = |names: [&str; 2]| grouped(names.iter().map(|name| group.counter(name)).sum());
    // The machine has neither a limit nor events.
    let event = |name: &str| {
        let found = group.events.iter().find(|(known, _)| *known == name);
        found.map_or_else(|| "-".to_owned(), |&(_, n)| grouped(n))
    };
    let peak = spec.map_or_else(|| "-".to_owned(), |_| human(group.counter("memory.peak") * 4096));
    // A group whose tasks never were measured has no rate.
    let tasks = |text: String| if group.tasks.accesses > 0 { text } else { "-".to_owned() };
    let mut cells = vec![
        printable(&group.path),
        peak,
        tasks(number(group.tasks.ops_per_s)),
        tasks(format!("{:.2}%", 100.0 * group.tasks.hit_rate())),
        tasks(duration(group.tasks.latency.p99_ns)),
        sum(["workingset_refault_anon", "workingset_refault_file"]),
        sum(["pgsteal_anon", "pgsteal_file"]),
        grouped(group.counter("pswpin")),
        grouped(group.counter("pswpout")),
        share(0),
        share(1),
        format!("{:.2}%", group.psi_peaks[0][0]),
        event("low"),
        event("high"),
        event("max"),
        event("oom"),
        event("oom_kill"),
    ];
    cells.extend(spec.map(|spec| limits_text(&spec.limits, 4096)).filter(|text| !text.is_empty()));
    cells
}
