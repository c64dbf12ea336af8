//! Rules of limits, whether a group's or the machine's memory is short, and what to do next.

use super::rules::{file_refaults, finding, scanned, waited};
use super::view::{Scope, View};
use super::{Cause, Explanation, Finding};
use crate::memory_size::human;
use crate::words::{counted, grouped, times};

/// Pages that were looked at, from which reclaim is more than chance.
const FEW: u64 = 256;

/// Beginnings of questions that a recording answers otherwise.
const FILES_UNKNOWN: &str = "which files come back:";
const SWAP_UNKNOWN: &str = "swap:";

/// The group is at its limit, or was killed for it.
pub(super) fn limit(view: &View<'_>) -> Option<Finding> {
    let (max, kills) = (view.grew("events.max").unwrap_or(0), view.grew("events.oom_kill").unwrap_or(0));
    let (current, limit) = (view.now("memory.current"), view.now("memory.max").filter(|&limit| limit != u64::MAX));
    // 64 pages a CPU are charged ahead.
    let is_full = current.zip(limit).is_some_and(|(current, limit)| current / 97 >= limit / 100);
    if max == 0 && kills == 0 && !is_full || view.scope == Scope::Machine {
        return None;
    }
    let of = limit.map_or(String::new(), |limit| format!(" of {}", human(limit)));
    let sentence = match (kills, max) {
        (0, 0) => format!("the group fills its memory.max{of}"),
        (0, max) => format!("the group met its memory.max{of} {}", times(max)),
        (kills, _) => format!(
            "the kernel killed {} of the group, which met its memory.max{of}",
            counted(kills, "process", "processes")
        ),
    };
    let current = current.map_or(String::new(), |current| format!("memory.current {}", human(current)));
    let event = |name: &str| {
        view.grew(name).map_or(String::new(), |n| format!("memory.{} +{}", name.replacen('.', " ", 1), grouped(n)))
    };
    Some(finding(view, Cause::Limit, sentence, vec![event("events.max"), event("events.oom_kill"), current]))
}

/// The group is beyond `memory.high`.
pub(super) fn high(view: &View<'_>) -> Option<Finding> {
    let high = view.grew("events.high").filter(|&high| high > 0)?;
    let sentence =
        format!("tasks of the group reclaimed, and slept, for it was beyond its memory.high {}", times(high));
    Some(finding(view, Cause::Limit, sentence, vec![format!("memory.events high +{}", grouped(high))]))
}

/// Swap has no room.
pub(super) fn swap_full(view: &View<'_>) -> Option<Finding> {
    let failed = view.grew("swap.events.fail").or_else(|| view.grew("swap.events.max")).unwrap_or(0);
    let (total, free) = (view.now("SwapTotal"), view.now("SwapFree"));
    let is_full = total.zip(free).is_some_and(|(total, free)| total > 0 && free < total / 20);
    if failed == 0 && !is_full {
        return None;
    }
    let sentence = match failed {
        0 => "swap is full, so that anonymous memory stays".to_owned(),
        failed => format!("swap had no room for the group {}", times(failed)),
    };
    let size = |name: &str| view.now(name).map_or(String::new(), |bytes| format!("{name} {}", human(bytes)));
    let because =
        vec![view.growth("swap.events.fail"), view.growth("swap.events.max"), size("SwapFree"), size("SwapTotal")];
    Some(finding(view, Cause::SwapFull, sentence, because))
}

/// Whether the group's limit or the memory of the machine is short, where both were read.
pub(super) fn group_or_machine(views: &[View<'_>]) -> Option<Finding> {
    let [group, machine] = views else { return None };
    let (of_group, of_machine) = (scanned(group)?, scanned(machine)?);
    let all = |of: (u64, u64)| of.0 + of.1;
    let is_group = all(of_group) >= FEW;
    let is_machine = all(of_machine) >= FEW;
    let (view, cause, sentence) = match (is_group, is_machine) {
        (true, false) => (group, Cause::Limit, "the limit of the group is short, not the memory of the machine"),
        (true, true) => (machine, Cause::Machine, "the memory of the machine is short, too, and not only the group's"),
        (false, true) => (machine, Cause::Machine, "the memory of the machine is short, and the group is spared"),
        (false, false) => return None,
    };
    let because = vec![
        format!("the group's pages looked at {}", grouped(all(of_group))),
        format!("the machine's {}", grouped(all(of_machine))),
    ];
    Some(finding(view, cause, sentence.to_owned(), because))
}

/// Takes what the machine has because the group has it for the group's alone.
pub(super) fn of_group_alone(views: &[View<'_>], findings: &mut Vec<Finding>) {
    let [group, machine] = views else { return };
    let Some((own, all)) = file_refaults(group).zip(file_refaults(machine)) else { return };
    // Nine of ten.
    if own * 10 < all * 9 {
        return;
    }
    findings.retain(|finding| (finding.cause, finding.scope) != (Cause::Files, Scope::Machine));
    let sentence = "nearly all that came back to the machine came back to the group: its limit is short".to_owned();
    let because = vec![
        format!("the group's workingset_refault_file +{}", grouped(own)),
        format!("the machine's +{}", grouped(all)),
    ];
    findings.push(finding(group, Cause::Limit, sentence, because));
}

/// Questions that stay open, or that nothing happened.
pub(super) fn unknown(views: &[View<'_>], findings: &[Finding]) -> Vec<String> {
    let mut all = Vec::new();
    let has = |causes: &[Cause]| findings.iter().any(|finding| causes.contains(&finding.cause));
    let is_silent = |view: &&View<'_>| {
        !view.says_what_was_reclaimed() && !findings.iter().any(|finding| finding.scope == view.scope)
    };
    let scopes: Vec<_> = views.iter().filter(is_silent).collect();
    if findings.is_empty() && scopes.is_empty() {
        all.push(
            "a cause: nothing was reclaimed and nothing came back beyond a few pages, so that memory was not short"
                .to_owned(),
        );
    }
    for view in scopes {
        let file = match view.scope {
            Scope::Group => "memory.stat of the second version of cgroups has them",
            Scope::Machine => "/proc/vmstat has them",
        };
        all.push(format!(
            "whether the memory of {} was short: pgscan and workingset_refault are not both in both readings; {file}",
            view.scope.words()
        ));
    }
    for (view, missing) in views.iter().map(|view| (view, view.missing())).filter(|(_, missing)| !missing.is_empty()) {
        let (n, words) = (missing.len(), view.scope.words());
        all.push(format!(
            "{} of {words} in the first reading, which the second lacks, such as {}: was it cut?",
            counted(n as u64, "counter", "counters"),
            missing[0]
        ));
    }
    if !findings.is_empty() && findings.iter().all(|finding| finding.cause == Cause::Pressure) {
        all.push(
            "why tasks waited: no counter here moved; a group below, or above, may be at its limit: read its files"
                .to_owned(),
        );
    }
    let lacks = |name: &str| views.iter().all(|view| view.now(name).is_none());
    if lacks("memory.some_us") {
        all.push("whether anybody waited: there is no memory.pressure among these files".to_owned());
    } else if views.iter().all(|view| waited(view, "memory", "some").is_none()) {
        all.push("which part of the time tasks waited: say how far apart the readings are (--for)".to_owned());
    }
    if lacks("pswpout") {
        all.push(format!("{SWAP_UNKNOWN} neither file has pswpin and pswpout, which /proc/vmstat has"));
    }
    if has(&[Cause::Files]) {
        all.push(format!("{FILES_UNKNOWN} counters do not say; a recording does"));
    }
    all
}

/// Error about a time in which tasks waited longer than it lasted, 1 % of clocks apart.
pub(super) fn waited_too_long(view: &View<'_>) -> Option<String> {
    let of = |resource: &str| {
        let share = waited(view, resource, "some").filter(|share| *share > 101.0)?;
        let (seconds, waited) = (view.seconds?, share / 100.0 * view.seconds?);
        Some(format!(
            "tasks of {} waited {waited:.1} s for {resource} in {seconds:.1} s: the readings are further apart \
             than --for says",
            view.scope.words()
        ))
    };
    ["memory", "io"].into_iter().find_map(of)
}

/// The same of a recording: what a recording would tell is at hand.
pub(super) fn in_hand(mut explained: Explanation, name: &str) -> Explanation {
    for unknown in explained.unknown.iter_mut().filter(|unknown| unknown.starts_with(FILES_UNKNOWN)) {
        *unknown = format!("{FILES_UNKNOWN} counters do not say; refault report {name} does");
    }
    for unknown in explained.unknown.iter_mut().filter(|unknown| unknown.starts_with(SWAP_UNKNOWN)) {
        *unknown = format!("{SWAP_UNKNOWN} the recording has no pswpin and pswpout");
    }
    explained.next.retain(|next| !next.starts_with("refault record "));
    explained.next.iter_mut().for_each(|next| *next = next.replace("web.parquet", name));
    explained
}

/// Commands that tell more of what was found.
pub(super) fn next(findings: &[Finding]) -> Vec<String> {
    let has = |causes: &[Cause]| findings.iter().any(|finding| causes.contains(&finding.cause));
    let mut all = Vec::new();
    if has(&[Cause::Files, Cause::Limit, Cause::DirectReclaim, Cause::Machine, Cause::Generations]) {
        all.push("refault record --cgroup GROUP --for 1m -o web.parquet: which files miss, and how often".to_owned());
        all.push("refault size web.parquet: what more memory would save, and what can be cut".to_owned());
        all.push(
            "refault whatif web.parquet: whether another kernel, or the other kind of lists, would help".to_owned(),
        );
    }
    if has(&[Cause::Anon, Cause::IdleAnon, Cause::SwappedOut, Cause::SwapFull]) {
        all.push(
            "refault whatif MACHINE.toml: other swap and swappiness, of a scenario \
             (docs/how-to/choose-where-swap-goes.md)"
                .to_owned(),
        );
    }
    if has(&[Cause::Writeback, Cause::Pressure]) {
        all.push("refault replay MACHINE.toml: who waits, and for what (docs/how-to/explain-pressure.md)".to_owned());
    }
    all
}
