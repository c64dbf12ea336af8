//! The events of a scenario: what an administrator does while the machine runs. Making, moving and removing takes no time here; what
//! reclaims for a new limit, or for `memory.reclaim`, is a program that needs a CPU, and waits for devices.

use refault_mm::{MemcgId, ReclaimRequest, ReclaimRound, World as _};

use super::burst::TICK_NS;
use super::event::Event;
use super::pressure::Mood;
use super::run::ANY_WAIT;
use super::{Machine, Stop};
use crate::scenario::{EventAction, EventSpec, LimitChanges, Scenario};

/// Ticks in a row in which a group does not come nearer to its new limit before it is given up: a second.
const MAX_FRUITLESS_TICKS: u32 = 250;

/// How far an event is.
#[derive(Clone, Debug, Default)]
pub(super) struct Doing {
    /// When it first began.
    at_ns: Option<u64>,
    /// How often it happened, and how often less was freed than was asked for.
    times: u64,
    short: u64,
    asked_pages: u64,
    reclaimed_pages: u64,
    failed: Option<String>,
    /// `memory.reclaim` on its way.
    request: Option<ReclaimRequest>,
    /// When the next one is due, or when the one on its way was.
    due_ns: u64,
    fruitless: u32,
    /// Before this tick.
    usage: u64,
}

/// What came of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventResult {
    /// What it is, such as `reclaim 8192p of /cron`.
    pub what: String,
    /// When it first happened; never: the run was over before.
    pub at_ns: Option<u64>,
    /// How often it happened.
    pub times: u64,
    /// Of `memory.reclaim`: pages that were asked for, in all.
    pub asked_pages: u64,
    /// Pages that were freed.
    pub reclaimed_pages: u64,
    /// How often less was freed than was asked for (`EAGAIN`).
    pub short: u64,
    /// Why it did not happen, or not as it should.
    pub failed: Option<String>,
}

impl Machine {
    /// Announces the events that wait for nothing.
    pub(super) fn schedule_events(&mut self) {
        let spec = self.spec.clone();
        for (i, e) in spec.events.iter().enumerate().filter(|(_, e)| e.after.is_none()) {
            self.events.push(e.at_ns, Event::Admin(i));
        }
    }

    /// A task has ended: what waits for that.
    pub(super) fn schedule_events_after(&mut self, task: usize) {
        let spec = self.spec.clone();
        for (i, e) in spec.events.iter().enumerate().filter(|(_, e)| e.after == Some(task)) {
            self.events.push(self.now_ns + e.at_ns, Event::Admin(i));
        }
    }

    /// An event is due.
    pub(super) fn begin_event(&mut self, i: usize) -> Result<(), String> {
        let spec = self.spec.clone();
        let doing = &mut self.doing[i];
        doing.at_ns = Some(self.now_ns);
        doing.times = 1;
        let result = match &spec.events[i].action {
            EventAction::Create(n) => self.create_group(*n),
            EventAction::Move { task, to, charges } => self.move_task(*task, *to, *charges),
            EventAction::Remove(n) => self.remove_group(*n),
            EventAction::Set { memcg, limits } => self.set_limits(i, *memcg, limits),
            EventAction::Reclaim { .. } => {
                (self.doing[i].times, self.doing[i].due_ns) = (0, self.now_ns);
                self.wake(self.admin + i, ANY_WAIT);
                Ok(())
            }
        };
        if let Err(why) = result {
            self.doing[i].failed = Some(why);
        }
        if let Some((reason, _)) = self.hw.throttle.take() {
            self.engine.throttle_ended(reason);
        }
        let bill = self.settle(self.now_ns);
        if let EventAction::Set { memcg, .. } = spec.events[i].action {
            self.threads[self.admin + i].debt_ns += bill.reclaim_ns;
            let over = self.groups.id(memcg).is_some_and(|id| self.engine.is_over_limit(id));
            if (over && self.doing[i].failed.is_none()) || bill.reclaim_ns > 0 {
                self.wake(self.admin + i, ANY_WAIT);
            }
        }
        match self.check {
            true => self.engine.validate().map_err(|e| format!("after event {}: {e}", i + 1)),
            false => Ok(()),
        }
    }

    /// Limits change; what is beyond them is reclaimed by a thread of its own.
    fn set_limits(&mut self, i: usize, n: usize, limits: &LimitChanges) -> Result<(), String> {
        let id = self.groups.id(n).ok_or("it is not there")?;
        let limits = limits.applied_to(&self.engine.memcg_limits(id));
        self.doing[i].usage = u64::MAX;
        self.engine.set_memcg_limits(&mut self.hw, id, &limits)?;
        self.kill_for_limit(id)
    }

    /// A group cannot be brought below its new `memory.max`: a task of it dies. An error: there is none.
    fn kill_for_limit(&mut self, id: MemcgId) -> Result<(), String> {
        match self.hw.oom.take() {
            Some(over) if self.kill_within(over) == 0 => {
                let used = self.engine.memcg_usage(id);
                Err(format!("it still uses {used} pages, and there is nothing to reclaim and nobody to kill"))
            }
            _ => Ok(()),
        }
    }

    /// A thread of an event has a CPU.
    pub(super) fn run_admin(&mut self, i: usize, start_ns: u64) -> (u64, Stop) {
        self.set_engine_time(start_ns);
        let spec = self.spec.clone();
        let t = self.admin + i;
        let mut stop = match &spec.events[i].action {
            EventAction::Reclaim { .. } => self.reclaim_on(&spec.events[i], i, start_ns),
            EventAction::Set { memcg, .. } => self.shrink_on(i, *memcg, start_ns),
            _ => Stop::Done,
        };
        let bill = self.settle(start_ns);
        self.threads[t].debt_ns += bill.reclaim_ns;
        let end = start_ns + bill.io_ns.max(1_000);
        if let Some((reason, max_wait_ns)) = self.hw.throttle.take() {
            match stop {
                Stop::Preempted => {
                    self.wait_throttled(t, reason, end + bill.reclaim_ns + max_wait_ns);
                    stop = Stop::Blocked(Mood::Stalled);
                }
                _ => self.engine.throttle_ended(reason),
            }
        }
        (end, stop)
    }

    /// A round of `memory.reclaim`.
    fn reclaim_on(&mut self, event: &EventSpec, i: usize, now_ns: u64) -> Stop {
        let EventAction::Reclaim { memcg, pages, swappiness, every_ns, until_ns } = event.action else {
            return Stop::Done;
        };
        if self.doing[i].request.is_none() {
            let Some(id) = self.groups.id_or_root(memcg) else {
                return self.fail_event(i, "it is not there");
            };
            let doing = &mut self.doing[i];
            doing.times += 1;
            doing.asked_pages += pages;
            doing.request = Some(ReclaimRequest::new(id, pages, swappiness));
        }
        let Some(mut request) = self.doing[i].request.take() else { return Stop::Done };
        // A group that is gone may have given its number to another one.
        let gone = self.groups.id_or_root(memcg).is_none();
        let round = match gone {
            true => Err("it was removed".to_owned()),
            false => self.engine.reclaim_round(&mut self.hw, &mut request),
        };
        match round {
            Ok(ReclaimRound::More) => {
                self.doing[i].request = Some(request);
                Stop::Preempted
            }
            Ok(ReclaimRound::Wait) => {
                self.doing[i].request = Some(request);
                self.wait_for_writes(i, now_ns)
            }
            Ok(round) => {
                let doing = &mut self.doing[i];
                doing.reclaimed_pages += request.reclaimed();
                doing.short += u64::from(round == ReclaimRound::Again);
                // One that takes longer than that is followed by the next at once.
                let next = every_ns.map(|every| (doing.due_ns + every).max(now_ns));
                let Some(next) = next.filter(|&next| until_ns.is_none_or(|until| next <= until)) else {
                    return Stop::Done;
                };
                doing.due_ns = next;
                self.threads[self.admin + i].wait += 1;
                Stop::Sleep(next)
            }
            Err(why) => {
                self.doing[i].reclaimed_pages += request.reclaimed();
                self.fail_event(i, &why)
            }
        }
    }

    fn fail_event(&mut self, i: usize, why: &str) -> Stop {
        self.doing[i].failed = Some(why.to_owned());
        Stop::Done
    }

    /// Until a device has written something, or a tick.
    fn wait_for_writes(&mut self, i: usize, now_ns: u64) -> Stop {
        let t = self.admin + i;
        self.threads[t].wait += 1;
        let wait = self.threads[t].wait;
        self.events.push(now_ns + TICK_NS, Event::Wake(t, wait));
        if self.hw.is_write_queue_full() {
            self.queued.push_back((t, wait));
        }
        Stop::Blocked(Mood::Stalled)
    }

    /// A group has a new limit, and still uses more.
    fn shrink_on(&mut self, i: usize, n: usize, now_ns: u64) -> Stop {
        let Some(id) = self.groups.id(n) else { return Stop::Done };
        if !self.engine.is_over_limit(id) {
            return Stop::Done;
        }
        let limits = self.engine.memcg_limits(id);
        if self.engine.set_memcg_limits(&mut self.hw, id, &limits).is_err() {
            return Stop::Done;
        }
        if let Err(why) = self.kill_for_limit(id) {
            return self.fail_event(i, &why);
        }
        if !self.engine.is_over_limit(id) {
            return Stop::Done;
        }
        let usage = self.engine.memcg_usage(id);
        let doing = &mut self.doing[i];
        doing.fruitless = if usage < doing.usage { 0 } else { doing.fruitless + 1 };
        doing.usage = usage;
        // What is beyond memory.high its tasks reclaim, too.
        let worth_it = usage > limits.max || self.engine.is_write_pending(id) || self.hw.is_write_queue_full();
        match worth_it && doing.fruitless < MAX_FRUITLESS_TICKS {
            true => self.wait_for_writes(i, now_ns),
            false if usage > limits.max => self.fail_event(i, &format!("it still uses {usage} pages")),
            false => Stop::Done,
        }
    }

    pub(super) fn event_results(&self) -> Vec<EventResult> {
        let spec = &self.spec;
        let result = |(e, doing): (&EventSpec, &Doing)| EventResult {
            what: text(spec, e),
            at_ns: doing.at_ns,
            times: doing.times,
            asked_pages: doing.asked_pages,
            // What a request that is on its way has freed counts, too.
            reclaimed_pages: doing.reclaimed_pages + doing.request.as_ref().map_or(0, ReclaimRequest::reclaimed),
            short: doing.short,
            failed: doing.failed.clone(),
        };
        spec.events.iter().zip(&self.doing).map(result).collect()
    }
}

/// An event for people.
fn text(spec: &Scenario, event: &EventSpec) -> String {
    let path = |n: usize| spec.memcgs[n].path.clone();
    let path_or_root = |n: Option<usize>| n.map_or_else(|| "/".to_owned(), path);
    match event.action {
        EventAction::Create(n) => format!("create {}", path(n)),
        EventAction::Remove(n) => format!("remove {}", path(n)),
        EventAction::Set { memcg, .. } => format!("set {}", path(memcg)),
        EventAction::Move { task, to, .. } => format!("move {} to {}", spec.tasks[task].name, path_or_root(to)),
        EventAction::Reclaim { memcg, .. } => format!("reclaim {}", path_or_root(memcg)),
    }
}
