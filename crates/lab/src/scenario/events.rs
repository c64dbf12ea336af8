//! What an administrator does while the machine runs: groups are made, limited, asked for memory,
//! removed; tasks move.

use super::objects::{self, limit_changes, memcg};
use super::read::{Field, Result, Section};
use super::types::{EventAction, EventSpec, LimitChanges, MemcgSpec, Scenario, TaskSpec};
use super::units::{MAX_TIME_NS, time_text};
use super::{MAX_PAGES, check};

const MAX_EVENTS: usize = 1024;
/// What can happen; each event is one of them.
const KINDS: [&str; 5] = ["create", "set", "move", "remove", "reclaim"];
const WHEN: [&str; 2] = ["at", "after"];
const RECLAIM_KEYS: [&str; 4] = ["amount", "swappiness", "every", "until"];
const MOVE_KEYS: [&str; 2] = ["to", "charges"];

/// The events as tables, each of one kind.
pub(super) fn sections<'s>(field: &Field<'s>) -> Result<Vec<Section<'s>>> {
    let keys: Vec<_> = [&WHEN[..], &KINDS, &RECLAIM_KEYS, &MOVE_KEYS, &objects::MEMCG_KEYS].concat();
    let sections = field.sections(&keys, MAX_EVENTS)?;
    for s in &sections {
        let kinds: Vec<_> = KINDS.iter().filter(|key| s.has(key)).collect();
        match kinds[..] {
            [kind] => only_its_keys(s, kind)?,
            [] => return Err(s.error("nothing happens; write create, set, move, remove or reclaim = \"...\"")),
            [a, b, ..] => return Err(s.error(format!("an event is one thing; write {a} or {b}, and another event"))),
        }
    }
    Ok(sections)
}

/// Refuses what belongs to other kinds of events.
fn only_its_keys(s: &Section<'_>, kind: &str) -> Result<()> {
    let own: &[&str] = match kind {
        "create" | "set" => &objects::MEMCG_KEYS,
        "move" => &MOVE_KEYS,
        "reclaim" => &RECLAIM_KEYS,
        _ => &[],
    };
    let foreign = |(key, _): &(&str, Field<'_>)| *key != kind && !WHEN.contains(key) && !own.contains(key);
    match s.entries().into_iter().find(foreign) {
        Some((key, field)) => Err(field.error(format!("{key} is not a key of {kind}; leave it out"))),
        None => Ok(()),
    }
}

/// The groups that events make.
pub(super) fn created<'s>(events: &[Section<'s>]) -> Result<Vec<(&'s str, Section<'s>)>> {
    let made = events.iter().filter_map(|s| Some((s.get("create")?, s)));
    made.map(|(field, s)| Ok((field.text()?, s.clone()))).collect()
}

pub(super) fn events(sections: &[Section<'_>], memcgs: &[MemcgSpec], tasks: &[TaskSpec]) -> Result<Vec<EventSpec>> {
    sections.iter().map(|s| event(s, memcgs, tasks)).collect()
}

fn event(s: &Section<'_>, memcgs: &[MemcgSpec], tasks: &[TaskSpec]) -> Result<EventSpec> {
    let after = s.opt("after", |f| f.index("a task", tasks.iter().map(|t| t.name.as_str())))?;
    let at_ns = match after {
        Some(_) => s.or("at", 0, |f| f.time(0..=MAX_TIME_NS))?,
        None => s.need("at", "at = \"30s\"")?.time(0..=MAX_TIME_NS)?,
    };
    Ok(EventSpec { at_ns, after, action: action(s, memcgs, tasks)? })
}

fn action(s: &Section<'_>, memcgs: &[MemcgSpec], tasks: &[TaskSpec]) -> Result<EventAction> {
    // A group below the root.
    let group = |field: &Field<'_>, root: &str| memcg(field, memcgs)?.ok_or_else(|| field.error(root));
    if let Some(field) = s.get("create") {
        return Ok(EventAction::Create(group(&field, "the root is always there")?));
    }
    if let Some(field) = s.get("remove") {
        return Ok(EventAction::Remove(group(&field, "the root cannot be removed")?));
    }
    if let Some(field) = s.get("set") {
        let memcg = group(&field, "the root has no limits")?;
        let limits = limit_changes(s)?;
        return match limits == LimitChanges::default() {
            true => Err(s.error("nothing is set; write max = \"2G\", or another limit")),
            false => Ok(EventAction::Set { memcg, limits }),
        };
    }
    if let Some(field) = s.get("move") {
        let task = field.index("a task", tasks.iter().map(|t| t.name.as_str()))?;
        let to = memcg(&s.need("to", "to = \"/...\", the group that it moves to")?, memcgs)?;
        return Ok(EventAction::Move { task, to, charges: s.or("charges", true, Field::boolean)? });
    }
    reclaim(s, memcgs)
}

fn reclaim(s: &Section<'_>, memcgs: &[MemcgSpec]) -> Result<EventAction> {
    let memcg = memcg(&s.need("reclaim", "reclaim = \"/...\"")?, memcgs)?;
    if let (Some(until), false) = (s.get("until"), s.has("every")) {
        return Err(until.error("it is asked for once; write every = \"10s\", or leave this out"));
    }
    Ok(EventAction::Reclaim {
        memcg,
        pages: s.need("amount", "amount = \"512M\"")?.pages(1..=MAX_PAGES)?,
        swappiness: s.opt("swappiness", |f| f.int(0..=200))?,
        every_ns: s.opt("every", |f| f.time(1_000_000..=MAX_TIME_NS))?,
        until_ns: s.opt("until", |f| f.time(1..=MAX_TIME_NS))?,
    })
}

/// Checks what can be known of the order of events before the machine runs.
pub(super) fn check(scenario: &Scenario, sections: &[Section<'_>], tasks: &[Section<'_>]) -> Result<()> {
    for (event, s) in scenario.events.iter().zip(sections) {
        let at = || s.need("at", "at");
        if let (Some(end), None) = (scenario.end_ns, event.after)
            && event.at_ns >= end
        {
            return Err(at()?.bad("is not before the end of the scenario"));
        }
        if let (Some(task), Some(field)) = (event.after, s.get("after"))
            && check::endless(&scenario.tasks[task])
        {
            return Err(field.bad("never ends by itself; give its last phase passes, accesses or duration"));
        }
        if let EventAction::Reclaim { every_ns: Some(_), until_ns, .. } = event.action {
            if until_ns.or(scenario.end_ns).is_none() {
                return Err(s.need("every", "every")?.error("it never ends; write until, or end of the scenario"));
            }
            if until_ns.is_some_and(|until| until <= event.at_ns && event.after.is_none()) {
                return Err(s.need("until", "until")?.bad("is not after at"));
            }
        }
    }
    GroupLifetimes::of(scenario).check(sections, tasks)
}

/// When each group is there, as far as times are given.
struct GroupLifetimes<'a> {
    scenario: &'a Scenario,
    /// By group: when it is made and removed; not known of those for which an event waits for a
    /// task.
    known: Vec<Option<(u64, u64)>>,
}

impl GroupLifetimes<'_> {
    fn of(scenario: &Scenario) -> GroupLifetimes<'_> {
        let mut known: Vec<_> = (scenario.memcgs.iter())
            .map(|m| Some(if m.made_by_event { (u64::MAX, u64::MAX) } else { (0, u64::MAX) }))
            .collect();
        for event in &scenario.events {
            let (EventAction::Create(m) | EventAction::Remove(m)) = event.action else { continue };
            let Some(life) = &mut known[m] else { continue };
            match (event.after, &event.action) {
                (Some(_), _) => known[m] = None,
                (None, EventAction::Create(_)) => life.0 = event.at_ns,
                // Of several the first; the others find nothing.
                (None, _) => life.1 = life.1.min(event.at_ns),
            }
        }
        GroupLifetimes { scenario, known }
    }

    fn check(&self, sections: &[Section<'_>], tasks: &[Section<'_>]) -> Result<()> {
        let mut removed = vec![false; self.known.len()];
        for (event, s) in self.scenario.events.iter().zip(sections).filter(|(event, _)| event.after.is_none()) {
            let (key, memcg) = match event.action {
                EventAction::Create(m) => ("create", self.scenario.memcgs[m].parent),
                EventAction::Remove(m) => {
                    if std::mem::replace(&mut removed[m], true) {
                        return Err(s.need("remove", "remove")?.bad("is removed twice"));
                    }
                    self.has_no_children(m, event.at_ns, s)?;
                    // Its own removal ends its life; only its beginning counts.
                    ("remove", self.known[m].filter(|life| event.at_ns < life.0).map(|_| m))
                }
                EventAction::Set { memcg, .. } => ("set", Some(memcg)),
                EventAction::Move { to, .. } => ("to", to),
                EventAction::Reclaim { memcg, .. } => ("reclaim", memcg),
            };
            let Some(memcg) = memcg else { continue };
            if let Some(why) = self.absent(memcg, event.at_ns) {
                return Err(s.need(key, key)?.error(why));
            }
        }
        for (task, s) in self.scenario.tasks.iter().zip(tasks).filter(|(task, _)| task.after.is_none()) {
            let moved = |e: &EventSpec| matches!(e.action, EventAction::Move { task: t, .. } if self.scenario.tasks[t].name == task.name);
            let Some(memcg) = task.memcg.filter(|_| !self.scenario.events.iter().any(moved)) else { continue };
            // What happens at that time has happened before it starts.
            let gone = self.known[memcg].is_some_and(|life| life.1 == task.start_ns);
            let why = self.absent(memcg, task.start_ns + u64::from(gone));
            if let Some(why) = why {
                let start = time_text(task.start_ns);
                return Err(s.need("memcg", "memcg")?.error(format!("when it starts, at {start}, {why}")));
            }
        }
        Ok(())
    }

    /// What a group below another one is doing there when that is removed.
    fn has_no_children(&self, memcg: usize, at_ns: u64, s: &Section<'_>) -> Result<()> {
        let below = |&(n, m): &(usize, &MemcgSpec)| {
            m.parent == Some(memcg) && self.known[n].is_some_and(|life| life.0 <= at_ns && at_ns < life.1)
        };
        match self.scenario.memcgs.iter().enumerate().find(below) {
            Some((_, m)) => {
                Err(s.need("remove", "remove")?.bad(&format!("has {} below it; remove that first", m.path)))
            }
            None => Ok(()),
        }
    }

    /// Why a group is not there at a time. At the same time events happen in the order of the file.
    fn absent(&self, memcg: usize, at_ns: u64) -> Option<String> {
        let (made, removed) = self.known[memcg]?;
        let path = &self.scenario.memcgs[memcg].path;
        match at_ns {
            _ if at_ns < made => Some(format!("{path} is not there before {}", time_text(made))),
            _ if at_ns > removed => Some(format!("{path} is removed at {}", time_text(removed))),
            _ => None,
        }
    }
}
