//! Events of an administrator while the machine runs: groups are made, limited, asked for memory,
//! removed; tasks move.

use super::conditions::{self, KILL_KEYS, WATCH_KEYS};
use super::objects::{self, limit_changes, memcg};
use super::read::{Field, Result, Section};
use super::types::{EventAction, EventSpec, LimitChanges, MemcgSpec, Scenario, SysctlChanges};
use super::units::{MAX_TIME_NS, time_text};
use super::{MAX_PAGES, check};

const MAX_EVENTS: usize = 1024;
/// Kinds of events; each event is one of them.
const KINDS: [&str; 11] =
    ["create", "set", "move", "remove", "reclaim", "sysctl", "swapon", "swapoff", "add_memory", "kill", "daemon"];
const WHEN: [&str; 3] = ["at", "after", "when"];
const SYSCTL_KEYS: [&str; 4] = ["swappiness", "min_free_kbytes", "watermark_scale_factor", "drop_caches"];
const RECLAIM_KEYS: [&str; 4] = ["amount", "swappiness", "every", "until"];
const MOVE_KEYS: [&str; 2] = ["to", "charges"];

/// The events as tables, each of one kind.
pub(super) fn sections<'s>(field: &Field<'s>) -> Result<Vec<Section<'s>>> {
    let keys: Vec<_> =
        [&WHEN[..], &KINDS, &RECLAIM_KEYS, &MOVE_KEYS, &WATCH_KEYS, &KILL_KEYS, &["within"], &objects::MEMCG_KEYS]
            .concat();
    let sections = field.sections(&keys, MAX_EVENTS)?;
    for s in &sections {
        let kinds: Vec<_> = KINDS.iter().filter(|key| s.has(key)).collect();
        match kinds[..] {
            [kind] => only_its_keys(s, kind)?,
            [] => return Err(s.error(format!("nothing happens; write one of {}", KINDS.join(", ")))),
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
        "kill" => &KILL_KEYS,
        "daemon" => &["within", "victim"],
        _ => &[],
    };
    let watches = s.has("when") || kind == "daemon";
    let foreign = |(key, _): &(&str, Field<'_>)| {
        let is_when = WHEN.contains(key) || (watches && WATCH_KEYS.contains(key));
        *key != kind && !is_when && !own.contains(key)
    };
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

pub(super) fn events(sections: &[Section<'_>], scenario: &Scenario) -> Result<Vec<EventSpec>> {
    sections.iter().map(|s| event(s, scenario)).collect()
}

fn event(s: &Section<'_>, scenario: &Scenario) -> Result<EventSpec> {
    let after = s.opt("after", |f| f.index("a task", scenario.tasks.iter().map(|t| t.name.as_str())))?;
    let at_ns = match after.is_some() || s.has("when") || s.has("daemon") {
        true => s.or("at", 0, |f| f.time(0..=MAX_TIME_NS))?,
        false => s.need("at", "at = \"30s\"")?.time(0..=MAX_TIME_NS)?,
    };
    if s.has("daemon") {
        let (watch, action) = conditions::daemon(s, &scenario.memcgs)?;
        return Ok(EventSpec { at_ns, after, watch: Some(watch), action });
    }
    let watch = s.get("when").map(|_| conditions::watch(s, &scenario.memcgs, None)).transpose()?;
    Ok(EventSpec { at_ns, after, watch, action: action(s, scenario)? })
}

/// Actions on the machine as a whole.
fn machine_action(s: &Section<'_>, scenario: &Scenario) -> Result<Option<EventAction>> {
    let swap = |f: &Field<'_>| {
        let devices = scenario.swap.iter().map(|swap| scenario.devices[swap.device].name.as_str());
        f.index("a swap device", devices)
    };
    Ok(if let Some(field) = s.get("sysctl") {
        Some(EventAction::Sysctl(sysctl(&field)?))
    } else if let Some(field) = s.get("swapon") {
        Some(EventAction::Swapon(swap(&field)?))
    } else if let Some(field) = s.get("swapoff") {
        Some(EventAction::Swapoff(swap(&field)?))
    } else if let Some(field) = s.get("add_memory") {
        if !scenario.machine.nodes.is_empty() {
            return Err(field.error("only a machine of one node gets more memory; leave out [node.NAME]"));
        }
        Some(EventAction::AddMemory(field.pages(1..=MAX_PAGES)?))
    } else if s.has("kill") {
        Some(conditions::kill(s, &scenario.memcgs)?)
    } else {
        None
    })
}

fn sysctl(field: &Field<'_>) -> Result<SysctlChanges> {
    let s = field.section(&SYSCTL_KEYS)?;
    let drop_caches: Option<u32> = s.opt("drop_caches", |f| f.int(1..=3))?;
    if let (Some(2), Some(field)) = (drop_caches, s.get("drop_caches")) {
        return Err(field.error("is for slabs, which the lab has none of; write 1, pages of files"));
    }
    let changes = SysctlChanges {
        swappiness: s.opt("swappiness", |f| f.int(0..=200))?,
        min_free_kbytes: s.opt("min_free_kbytes", |f| f.int(1..=1 << 30))?,
        watermark_scale_factor: s.opt("watermark_scale_factor", |f| f.int(1..=3000))?,
        drop_caches: drop_caches.is_some(),
    };
    match changes == SysctlChanges::default() {
        true => Err(s.error("nothing is set; write swappiness = 100, or another setting")),
        false => Ok(changes),
    }
}

fn action(s: &Section<'_>, scenario: &Scenario) -> Result<EventAction> {
    if let Some(action) = machine_action(s, scenario)? {
        return Ok(action);
    }
    let (memcgs, tasks) = (&scenario.memcgs[..], &scenario.tasks[..]);
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
    /// By group: when it is made and removed, in nanoseconds; none if one of these events waits for
    /// a task.
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
                _ if event.watch.is_some() => known[m] = None,
                (None, EventAction::Create(_)) => life.0 = event.at_ns,
                // The first of several counts; the others find nothing.
                (None, _) => life.1 = life.1.min(event.at_ns),
            }
        }
        GroupLifetimes { scenario, known }
    }

    fn check(&self, sections: &[Section<'_>], tasks: &[Section<'_>]) -> Result<()> {
        let mut removed = vec![false; self.known.len()];
        for (event, s) in self
            .scenario
            .events
            .iter()
            .zip(sections)
            .filter(|(event, _)| event.after.is_none() && event.watch.is_none())
        {
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
                // A daemon finds its victims and settings when it looks.
                EventAction::Kill { .. }
                | EventAction::Sysctl(_)
                | EventAction::Swapon(_)
                | EventAction::Swapoff(_)
                | EventAction::AddMemory(_) => continue,
            };
            let Some(memcg) = memcg else { continue };
            if let Some(why) = self.absent(memcg, event.at_ns) {
                return Err(s.need(key, key)?.error(why));
            }
        }
        for (task, s) in self.scenario.tasks.iter().zip(tasks).filter(|(task, _)| task.after.is_none()) {
            let moved = |e: &EventSpec| matches!(e.action, EventAction::Move { task: t, .. } if self.scenario.tasks[t].name == task.name);
            let Some(memcg) = task.memcg.filter(|_| !self.scenario.events.iter().any(moved)) else { continue };
            // An event at that time has happened before it starts.
            let gone = self.known[memcg].is_some_and(|life| life.1 == task.start_ns);
            let why = self.absent(memcg, task.start_ns + u64::from(gone));
            if let Some(why) = why {
                let start = time_text(task.start_ns);
                return Err(s.need("memcg", "memcg")?.error(format!("when it starts, at {start}, {why}")));
            }
        }
        Ok(())
    }

    /// Refuses to remove a group that still has another one below it.
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
