//! The groups of a run, beside each other.

use crate::flags::size::human;
use crate::replay::groups::{EVENT_HEADS, EVENTS};
use crate::table::Table;
use refault::replay::groups::limits_text;
use refault::scenario::ScenarioRun;
use refault::words::{duration, grouped, number, printable, times};
use refault_lab::machine::{EventResult, MemcgResult};

/// The columns before those of `memory.events`.
const HEADS: [&str; 12] = [
    "group",
    "memory\npeak",
    "sum of\nops/s",
    "hit\nrate",
    "latency\np99",
    "refaults",
    "pages\nreclaimed",
    "swapped\nin",
    "\nout",
    "stalled\nsome",
    "\nfull",
    "some avg10\nhighest",
];

/// The groups of the scenario, below the machine as a whole; nothing if there are none.
pub(super) fn table(outcome: &ScenarioRun) -> String {
    let groups = &outcome.result().memcgs;
    if groups.len() < 2 {
        return String::new();
    }
    let mut table = Table::new(HEADS.into_iter().chain(EVENT_HEADS), 1).sparse(6..9).sparse(12..17).folded(1);
    for (n, group) in groups.iter().enumerate() {
        table.row(row(outcome, group, n == 0));
    }
    format!("\n{}", table.render())
}

fn row(outcome: &ScenarioRun, group: &MemcgResult, is_machine: bool) -> Vec<String> {
    let share = |kind: usize| {
        let seconds = group.lived_seconds(outcome.result().seconds);
        let lost = group.psi[kind].total_us as f64 / 1e6;
        format!("{:.2}%", if seconds > 0.0 { 100.0 * lost / seconds } else { 0.0 })
    };
    let sum = |names: [&str; 2]| grouped(names.iter().map(|name| group.counter(name)).sum());
    // The machine has neither a limit nor events.
    let event = |name: &str| {
        let found = group.events.iter().find(|(known, _)| *known == name);
        found.map_or_else(|| "-".to_owned(), |&(_, n)| grouped(n))
    };
    let peak = if is_machine { "-".to_owned() } else { human(group.counter("memory.peak") * 4096) };
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
    ];
    cells.extend(EVENTS.map(event));
    let notes = [
        if group.made_ns.is_none() { "never made".to_owned() } else { String::new() },
        group.made_ns.filter(|&at| at > 0).map_or_else(String::new, |at| format!("made at {}", at_text(at))),
        group.removed_ns.map_or_else(String::new, |at| format!("removed at {}", at_text(at))),
        limits_text(&group.limits, 4096),
    ];
    let notes: Vec<_> = notes.into_iter().filter(|note| !note.is_empty()).collect();
    cells.extend((!notes.is_empty()).then(|| notes.join(", ")));
    cells
}

/// A time of the scenario.
fn at_text(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// Outcomes of the events of the scenario, a line each; nothing if it has none.
pub(super) fn timeline(outcome: &ScenarioRun) -> String {
    outcome.result().timeline.iter().map(|event| format!("{}\n", line(event))).collect()
}

fn line(event: &EventResult) -> String {
    let mut text = match event.at_ns {
        Some(at) => format!("at {} {}", at_text(at), printable(&event.what)),
        None if event.has_conditions => {
            return format!("never {}: its conditions did not hold", printable(&event.what));
        }
        None => return format!("never {}: the run was over before", printable(&event.what)),
    };
    if event.times > 1 {
        let last = event.last_ns.map_or_else(String::new, |ns| format!(", the last at {}", at_text(ns)));
        text += &format!(", {}{last}", times(event.times));
    }
    let mut came = Vec::new();
    if event.asked_pages > 0 {
        let (got, asked) = (human(event.reclaimed_pages * 4096), human(event.asked_pages * 4096));
        let short = if event.short > 0 { format!(", {} short (EAGAIN)", times(event.short)) } else { String::new() };
        came.push(format!("{got} of {asked} reclaimed{short}"));
    }
    if event.killed > 0 {
        came.push(format!("{} killed ({})", grouped(event.killed), printable(&event.victims.join(", "))));
    }
    if let Some(why) = &event.failed {
        let which = if event.times > 1 { "the last failure" } else { "it failed" };
        came.push(format!("{which}: {}", printable(why)));
    }
    if !came.is_empty() {
        text += &format!(": {}", came.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each thing that can come of an event, alone and with all others, in a plain sentence.
    #[test]
    fn regression_outcomes_of_events_are_sentences() {
        let at = EventResult { what: "kill /a".into(), at_ns: Some(1_000_000_000), times: 1, ..EventResult::default() };
        let again = EventResult { times: 39, last_ns: Some(3_000_000_000), ..at.clone() };
        let killed = |event: &EventResult| EventResult { killed: 2, victims: vec!["hog".into()], ..event.clone() };
        let failed = |event: &EventResult| EventResult { failed: Some("nobody is there".into()), ..event.clone() };
        let asked = EventResult { asked_pages: 512, reclaimed_pages: 256, ..at.clone() };
        let short = EventResult { short: 1, ..asked.clone() };
        for (event, want) in [
            (at.clone(), ""),
            (again.clone(), ", 39 times, the last at 3.000 s"),
            (killed(&at), ": 2 killed (hog)"),
            (failed(&at), ": it failed: nobody is there"),
            (
                killed(&failed(&again)),
                ", 39 times, the last at 3.000 s: 2 killed (hog); the last failure: nobody is there",
            ),
            (asked, ": 1.0M of 2.0M reclaimed"),
            (short.clone(), ": 1.0M of 2.0M reclaimed, once short (EAGAIN)"),
            (failed(&short), ": 1.0M of 2.0M reclaimed, once short (EAGAIN); it failed: nobody is there"),
        ] {
            assert_eq!(line(&event), format!("at 1.000 s kill /a{want}"));
        }
    }
}
