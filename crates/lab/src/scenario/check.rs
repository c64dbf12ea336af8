//! Checks that need the whole scenario: which group is charged, how many pages there are, and that
//! it ends.

use super::MAX_PAGES;
use super::objects::DeclaredObject;
use super::read::{Result, Section};
use super::types::{PhaseLimit, Scenario, TaskSpec};
use refault_mm::{AccessAdvice, TIERING};
use refault_trace::Via;

pub(super) fn check(
    scenario: &mut Scenario,
    root: &Section<'_>,
    objects: &[DeclaredObject<'_>],
    tasks: &[(TaskSpec, Section<'_>)],
) -> Result<()> {
    let mut pages = 0;
    for (index, object) in objects.iter().enumerate() {
        let users: Vec<&TaskSpec> = scenario.tasks.iter().filter(|task| uses(task, index)).collect();
        let spec = &mut scenario.objects[index];
        if !object.section.has("memcg")
            && let Some(first) = users.first()
        {
            if users.iter().any(|task| task.memcg != first.memcg) {
                let what = "tasks of different memcgs use it; say who is charged: memcg = \"/...\", or \"/\"";
                return Err(object.section.error(what));
            }
            spec.memcg = first.memcg;
        }
        if spec.private && users.len() > 1 {
            let names = format!("{} and {}", users[0].name, users[1].name);
            return Err(object.section.error(format!("is private, but {names} use it; a private object has one task")));
        }
        one_advice(&scenario.tasks, index).map_err(|what| object.section.error(what))?;
        let copies = if spec.private { users.first().map_or(1, |task| u64::from(task.count)) } else { 1 };
        pages += spec.pages * copies;
        if pages >= MAX_PAGES {
            let what =
                format!("with this the objects have {pages} pages, private copies counted; write less than 2^29");
            return Err(object.section.error(what));
        }
    }
    if let (true, false, Some(policy)) =
        (scenario.machine.nodes.is_empty(), scenario.policy.tiering.is_default(), root.get("policy"))
    {
        let of_tiers = |key: &&str| TIERING.iter().any(|setting| setting.name == *key);
        let field = policy.any_section()?.entries().into_iter().find(|(key, _)| of_tiers(key)).map(|(_, field)| field);
        let what = "there are no tiers to promote or demote between; write [node.dram] and another node";
        return Err(field.unwrap_or(policy).error(what));
    }
    ends(scenario, root, tasks)
}

/// An object that is mapped has one advice at a time: accessed bits of it count or do not.
fn one_advice(tasks: &[TaskSpec], object: usize) -> std::result::Result<(), String> {
    let of_task = |(t, task): (usize, &TaskSpec)| {
        let phases = task.phases.iter().enumerate();
        let streams = phases.flat_map(|(p, phase)| phase.streams.iter().map(move |s| (p, s)));
        let mapped = streams.filter(|(_, s)| s.object == object && s.via == Via::Map);
        mapped.map(|(p, s)| (t, p, s.advice)).collect::<Vec<_>>()
    };
    let all: Vec<_> = tasks.iter().enumerate().flat_map(of_task).collect();
    let at_once = |a: &(usize, usize, AccessAdvice), b: &(usize, usize, AccessAdvice)| a.0 != b.0 || a.1 == b.1;
    let other = |a| all.iter().find(|b| at_once(a, b) && a.2 != b.2).map(|b| (a.2.name(), b.2.name()));
    match all.iter().find_map(other) {
        Some((a, b)) => Err(format!("is mapped with advice = \"{a}\" and \"{b}\" at once; give all its streams one")),
        None => Ok(()),
    }
}

fn uses(task: &TaskSpec, object: usize) -> bool {
    task.phases.iter().flat_map(|phase| &phase.streams).any(|stream| stream.object == object)
}

/// Whether the last phase of a task has no end of its own.
pub(super) fn endless(task: &TaskSpec) -> bool {
    task.trace.is_none() && task.phases.last().is_some_and(|phase| phase.until == PhaseLimit::End)
}

/// Checks that every phase is reached and the scenario ends.
fn ends(scenario: &Scenario, root: &Section<'_>, tasks: &[(TaskSpec, Section<'_>)]) -> Result<()> {
    for (index, (task, s)) in tasks.iter().enumerate() {
        let before_last = &task.phases[..task.phases.len().saturating_sub(1)];
        if let Some(n) = before_last.iter().position(|phase| phase.until == PhaseLimit::End) {
            return Err(s.error(format!("phase {} has no end, so that no other comes after it; write duration", n + 1)));
        }
        if scenario.end_ns.is_none() && endless(task) && !task.background {
            let what = "the last phase has no end, nor has the scenario; write passes, accesses or duration, or end";
            return Err(s.error(what));
        }
        if scenario.end_ns.is_some_and(|end| task.start_ns >= end) {
            let field = s.need("start", "start")?;
            return Err(field.bad("is not before the end of the scenario"));
        }
        after(index, tasks)?;
    }
    if scenario.end_ns.is_none() && tasks.iter().all(|(task, _)| task.background) {
        return Err(root.error("every task is in the background, so that nothing ends the scenario; write end"));
    }
    Ok(())
}

/// Checks that what a task waits for ends.
fn after(index: usize, tasks: &[(TaskSpec, Section<'_>)]) -> Result<()> {
    let (task, s) = &tasks[index];
    let Some(other) = task.after else {
        return Ok(());
    };
    let field = s.need("after", "after")?;
    if endless(&tasks[other].0) {
        return Err(field.bad("never ends by itself; give its last phase passes, accesses or duration"));
    }
    let mut next = Some(other);
    // A chain longer than all tasks goes in a circle.
    for _ in 0..tasks.len() {
        next = next.and_then(|n| tasks[n].0.after);
    }
    if next.is_some() { Err(field.bad("waits, in the end, for itself")) } else { Ok(()) }
}
