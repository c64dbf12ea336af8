//! Events that happen when conditions hold, and daemons that kill then.

use super::objects::memcg;
use super::read::{Field, Result, Section};
use super::types::{Condition, EventAction, MemcgSpec, MemoryAmount, Victim, WatchSpec};
use super::units::MAX_TIME_NS;
use super::{MAX_PAGES, error::ScenarioError};
use refault_mm::{Counter, PsiKind};

/// Keys of an event that happens when conditions hold.
pub(super) const WATCH_KEYS: [&str; 4] = ["poll", "hold", "cooldown", "times"];
/// Keys of an event that kills.
pub(super) const KILL_KEYS: [&str; 1] = ["victim"];
const CONDITION_KEYS: [&str; 10] = [
    "available_below",
    "node_available_below",
    "free_swap_below",
    "memcg",
    "some_avg10_above",
    "full_avg10_above",
    "some_stall_above",
    "full_stall_above",
    "counter",
    "rises_above",
];
/// Lists of conditions of an event.
const MAX_LISTS: usize = 16;
const SECOND_NS: u64 = 1_000_000_000;

/// Daemons that end tasks before the kernel has to, with the defaults that they come with.
const DAEMONS: [(&str, Daemon); 4] = [
    ("kubelet", Daemon::Kubelet),
    ("systemd-oomd", Daemon::SystemdOomd),
    ("earlyoom", Daemon::Earlyoom),
    ("lmkd", Daemon::Lmkd),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Daemon {
    Kubelet,
    SystemdOomd,
    Earlyoom,
    Lmkd,
}

impl Daemon {
    fn victim(self) -> Victim {
        match self {
            Daemon::Kubelet => Victim::LargestGroup,
            Daemon::SystemdOomd => Victim::ScannedGroup,
            Daemon::Earlyoom => Victim::OomScore,
            Daemon::Lmkd => Victim::OomScoreAdj,
        }
    }

    /// Condition that it watches in a group.
    fn watch(self, memcg: Option<usize>) -> WatchSpec {
        let ten = MemoryAmount::Percent(10.0);
        let stall = |kind, ms: u64| Condition::StallAbove { memcg, kind, ns: ms * 1_000_000 };
        let (any, poll_ns, hold_ns, cooldown_ns) = match self {
            // `--eviction-hard`, looked at every ten seconds.
            Daemon::Kubelet => {
                let least = MemoryAmount::Pages(100 << 8);
                (vec![vec![Condition::NodeAvailableBelow(least)]], 10 * SECOND_NS, 0, 0)
            }
            // `DefaultMemoryPressureLimit`, `DefaultMemoryPressureDurationSec`, and 15 s without
            // another look at pressure after a kill.
            Daemon::SystemdOomd => {
                let full = Condition::Avg10Above { memcg, kind: PsiKind::Full, percent: 60.0 };
                (vec![vec![full]], SECOND_NS, 30 * SECOND_NS, 15 * SECOND_NS)
            }
            // `-m 10 -s 10`.
            Daemon::Earlyoom => {
                let both = vec![Condition::AvailableBelow(ten), Condition::FreeSwapBelow(ten)];
                (vec![both], SECOND_NS / 10, 0, SECOND_NS)
            }
            // `psi_partial_stall_ms` and `psi_complete_stall_ms` of a window of a second,
            // `swap_free_low_percentage`.
            Daemon::Lmkd => {
                let low = vec![stall(PsiKind::Some, 70), Condition::FreeSwapBelow(ten)];
                (vec![low, vec![stall(PsiKind::Full, 700)]], SECOND_NS, 0, 0)
            }
        };
        let daemon = DAEMONS.iter().find(|(_, daemon)| *daemon == self).map(|(name, _)| *name);
        WatchSpec { daemon, any, poll_ns, hold_ns, cooldown_ns, times: u64::MAX }
    }
}

/// Reads a daemon: the conditions it watches, and its action when they hold.
pub(super) fn daemon(s: &Section<'_>, memcgs: &[MemcgSpec]) -> Result<(WatchSpec, EventAction)> {
    let daemon = s.need("daemon", "daemon = \"earlyoom\"")?.choice(&DAEMONS)?;
    let within = s.opt("within", |f| memcg(f, memcgs))?.flatten();
    let victim = s.or("victim", daemon.victim(), |f| f.choice(&Victim::ALL))?;
    let watch = watch(s, memcgs, Some(daemon.watch(within)))?;
    Ok((watch, EventAction::Kill { within, victim }))
}

/// Action of a daemon that kills: whom.
pub(super) fn kill(s: &Section<'_>, memcgs: &[MemcgSpec]) -> Result<EventAction> {
    let within = memcg(&s.need("kill", "kill = \"/...\"")?, memcgs)?;
    Ok(EventAction::Kill { within, victim: s.or("victim", Victim::OomScore, |f| f.choice(&Victim::ALL))? })
}

/// When an event happens, by conditions; what is not given is as in `defaults`.
pub(super) fn watch(s: &Section<'_>, memcgs: &[MemcgSpec], defaults: Option<WatchSpec>) -> Result<WatchSpec> {
    let kills = s.has("kill") || s.has("daemon");
    let times = if kills { u64::MAX } else { 1 };
    let plain = WatchSpec { daemon: None, any: Vec::new(), poll_ns: SECOND_NS, hold_ns: 0, cooldown_ns: 0, times };
    let d = defaults.unwrap_or(plain);
    let any = match s.get("when") {
        Some(field) => conditions(&field, memcgs)?,
        None => d.any,
    };
    Ok(WatchSpec {
        daemon: d.daemon,
        any,
        poll_ns: s.or("poll", d.poll_ns, |f| f.time(1_000_000..=MAX_TIME_NS))?,
        hold_ns: s.or("hold", d.hold_ns, |f| f.time(0..=MAX_TIME_NS))?,
        cooldown_ns: s.or("cooldown", d.cooldown_ns, |f| f.time(0..=MAX_TIME_NS))?,
        times: s.or("times", d.times, |f| f.int(1..=u64::MAX))?,
    })
}

/// A table of conditions that must hold together, or a list of such tables, one of which must.
fn conditions(field: &Field<'_>, memcgs: &[MemcgSpec]) -> Result<Vec<Vec<Condition>>> {
    let lists = field.one_or_more(&CONDITION_KEYS, MAX_LISTS)?;
    match lists.is_empty() {
        true => Err(field.error("nothing is a condition; write when = { available_below = \"10%\" }, or another")),
        false => lists.iter().map(|s| all_of(s, memcgs)).collect(),
    }
}

fn all_of(s: &Section<'_>, memcgs: &[MemcgSpec]) -> Result<Vec<Condition>> {
    let group = s.opt("memcg", |f| memcg(f, memcgs))?.flatten();
    let mut all = Vec::new();
    all.extend(s.opt("available_below", amount)?.map(Condition::AvailableBelow));
    all.extend(s.opt("node_available_below", amount)?.map(Condition::NodeAvailableBelow));
    all.extend(s.opt("free_swap_below", amount)?.map(Condition::FreeSwapBelow));
    for (kind, avg10, stall) in [
        (PsiKind::Some, "some_avg10_above", "some_stall_above"),
        (PsiKind::Full, "full_avg10_above", "full_stall_above"),
    ] {
        let percent = s.opt(avg10, |f| f.float(0.0..=100.0))?;
        all.extend(percent.map(|percent| Condition::Avg10Above { memcg: group, kind, percent }));
        let ns = s.opt(stall, |f| f.time(0..=MAX_TIME_NS))?;
        all.extend(ns.map(|ns| Condition::StallAbove { memcg: group, kind, ns }));
    }
    if let Some(field) = s.get("counter") {
        let name = field.text()?;
        let counter = Counter::ALL.iter().copied().find(|c| c.name() == name);
        let counter =
            counter.ok_or_else(|| field.bad("is no counter; write one of /proc/vmstat, such as pgscan_direct"))?;
        all.push(Condition::CounterRises { counter, above: s.or("rises_above", 0, |f| f.int(0..=u64::MAX))? });
    }
    needs(s, "rises_above", &["counter"])?;
    needs(s, "memcg", &["some_avg10_above", "full_avg10_above", "some_stall_above", "full_stall_above"])?;
    match all.is_empty() {
        true => Err(s.error("nothing is a condition; write available_below = \"10%\", or another")),
        false => Ok(all),
    }
}

/// A key means nothing without one of the others.
fn needs(s: &Section<'_>, key: &str, others: &[&str]) -> Result<()> {
    let error = |field: Field<'_>| -> ScenarioError {
        field.error(format!("means nothing by itself; write {} as well, or leave this out", others.join(" or ")))
    };
    match s.get(key) {
        Some(field) if !others.iter().any(|other| s.has(other)) => Err(error(field)),
        _ => Ok(()),
    }
}

/// A size, or percent of all that there is.
fn amount(field: &Field<'_>) -> Result<MemoryAmount> {
    let percent = field.text().ok().and_then(|text| text.strip_suffix('%')).map(|n| n.trim().parse::<f64>());
    match percent {
        Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => Ok(MemoryAmount::Percent(percent)),
        Some(_) => Err(field.bad("is no share; write \"10%\"")),
        None => Ok(MemoryAmount::Pages(field.pages(0..=MAX_PAGES)?)),
    }
}
