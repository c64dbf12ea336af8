//! The threads that reclaim for a scenario's events: for a new limit, or for `memory.reclaim`. Each
//! is a program that needs a CPU, and waits for devices.

use refault_mm::{MemcgId, ReclaimRequest, ReclaimRound, Swapoff, SwapoffError, World as _};

use super::context::OnCpu;
use crate::kernel::LabKernel;
use crate::results::EventResult;
use crate::scenario::{EventAction, EventSpec, LimitChanges, Scenario, SysctlChanges};
use crate::sched::{PsiState, Stop};

/// Ticks in a row, a second in all, without progress of a group towards its new limit, after which
/// the change is given up.
const MAX_FRUITLESS_TICKS: u32 = 250;

/// Progress of an event of the scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventProgress {
    /// When the event first began.
    at_ns: Option<u64>,
    /// Times at which the event happened, and the last of these times.
    happened_ns: Vec<u64>,
    last_ns: Option<u64>,
    /// How often the event happened, and how often less was freed than was asked for.
    times: u64,
    short: u64,
    asked_pages: u64,
    reclaimed_pages: u64,
    failed: Option<String>,
    /// Number of tasks that were killed, and the names of tasks or groups.
    killed: u64,
    victims: Vec<String>,
    /// `memory.reclaim` on its way.
    request: Option<ReclaimRequest>,
    /// When the next request is due, or when the one under way was.
    due_ns: u64,
    fruitless: u32,
    /// Pages that the group used before this tick.
    usage: u64,
}

impl EventProgress {
    /// Notes that the event is due. An action that `repeats` by itself counts its times itself.
    pub(crate) fn begin(&mut self, now_ns: u64, repeats: bool) {
        self.at_ns.get_or_insert(now_ns);
        if !repeats {
            self.count(now_ns);
        }
        self.due_ns = now_ns;
    }

    /// Counts the event as happened now.
    fn count(&mut self, now_ns: u64) {
        self.times += 1;
        self.last_ns = Some(now_ns);
        if self.happened_ns.len() < EventResult::MOST_TIMES {
            self.happened_ns.push(now_ns);
        }
    }

    /// Notes that `tasks` tasks were killed, called `name` together.
    pub(crate) fn note_killed(&mut self, tasks: u64, name: String) {
        self.killed += tasks;
        if !self.victims.contains(&name) {
            self.victims.push(name);
        }
    }

    pub(crate) fn fail(&mut self, why: String) {
        self.failed = Some(why);
    }

    /// The thread of the event has nothing more to do.
    fn give_up(&mut self, why: &str) -> Stop {
        self.fail(why.to_owned());
        Stop::Done
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
}

impl OnCpu<'_> {
    /// Changes the limits of a group. Pages beyond them are reclaimed by the event's own thread.
    pub(crate) fn set_limits(
        &mut self,
        progress: &mut EventProgress,
        n: usize,
        limits: &LimitChanges,
    ) -> Result<(), String> {
        let id = self.groups.id(n).ok_or("it is not there")?;
        let kernel = &mut *self.kernel;
        let limits = limits.applied_to(&kernel.engine.memcg_limits(id));
        progress.usage = u64::MAX;
        kernel.engine.set_memcg_limits(&mut kernel.hw, id, &limits)?;
        self.kill_for_limit(id)
    }

    /// Kills a task of a group that cannot be brought below its new `memory.max`. Error: the group
    /// has no task to kill.
    fn kill_for_limit(&mut self, id: MemcgId) -> Result<(), String> {
        match self.kernel.take_oom() {
            Some(over) if self.kill_within(over) == 0 => {
                let used = self.kernel.engine.memcg_usage(id);
                Err(format!("it still uses {used} pages, and there is nothing to reclaim and nobody to kill"))
            }
            _ => Ok(()),
        }
    }

    /// A thread of an event has a CPU.
    pub(crate) fn run_admin(&mut self, progress: &mut EventProgress, i: usize, start_ns: u64) -> (u64, Stop) {
        self.kernel.set_now_ns(start_ns);
        let event = &self.spec.events[i];
        let t = self.threads.admin(i);
        let mut stop = match event.action {
            EventAction::Reclaim { .. } => self.reclaim_on(event, progress, t, start_ns),
            EventAction::Set { memcg, .. } => self.shrink_on(memcg, progress, t, start_ns),
            EventAction::Swapoff(n) => self.swapoff_on(n, progress, t, start_ns),
            _ => Stop::Done,
        };
        let bill = self.settle(start_ns);
        self.threads[t].debt_ns += bill.reclaim_ns;
        let end = start_ns + bill.io_ns.max(1_000);
        if let Some((reason, max_wait_ns)) = self.kernel.take_throttle() {
            match stop {
                Stop::Preempted => {
                    self.threads.wait_throttled(t, reason, end + bill.reclaim_ns + max_wait_ns, self.clock);
                    stop = Stop::Blocked(PsiState::Idle);
                }
                _ => self.kernel.engine.throttle_ended(reason),
            }
        }
        (end, stop)
    }

    /// A round of `memory.reclaim`.
    fn reclaim_on(&mut self, event: &EventSpec, progress: &mut EventProgress, t: usize, now_ns: u64) -> Stop {
        let EventAction::Reclaim { memcg, pages, swappiness, every_ns, until_ns } = event.action else {
            return Stop::Done;
        };
        if progress.request.is_none() {
            let Some(id) = self.groups.id_or_root(memcg) else {
                return progress.give_up("it is not there");
            };
            progress.count(now_ns);
            progress.asked_pages += pages;
            progress.request = Some(ReclaimRequest::new(id, pages, swappiness));
        }
        let Some(mut request) = progress.request.take() else { return Stop::Done };
        // A group that is gone may have given its number to another one.
        let gone = self.groups.id_or_root(memcg).is_none();
        let round = match gone {
            true => Err("it was removed".to_owned()),
            false => self.kernel.engine.reclaim_round(&mut self.kernel.hw, &mut request),
        };
        match round {
            Ok(ReclaimRound::More) => {
                progress.request = Some(request);
                Stop::Preempted
            }
            Ok(ReclaimRound::Wait) => {
                progress.request = Some(request);
                self.wait_for_writes(t, now_ns)
            }
            Ok(round) => {
                progress.reclaimed_pages += request.reclaimed();
                progress.short += u64::from(round == ReclaimRound::Again);
                // One that takes longer than that is followed by the next at once.
                let next = every_ns.map(|every| (progress.due_ns + every).max(now_ns));
                let Some(next) = next.filter(|&next| until_ns.is_none_or(|until| next <= until)) else {
                    return Stop::Done;
                };
                progress.due_ns = next;
                self.threads[t].begin_wait();
                Stop::Sleep(next)
            }
            Err(why) => {
                progress.reclaimed_pages += request.reclaimed();
                progress.give_up(&why)
            }
        }
    }

    /// Brings pages of a swap device back, as far as there is room at once.
    fn swapoff_on(&mut self, n: usize, progress: &mut EventProgress, t: usize, now_ns: u64) -> Stop {
        let device = self.spec.swap[n].device;
        let Some(number) = self.kernel.hw.storage.swap_number(device) else { return progress.give_up("it is not on") };
        let kernel = &mut *self.kernel;
        match kernel.engine.swapoff(&mut kernel.hw, number) {
            Swapoff::Done => {
                kernel.hw.storage.swapoff(number);
                Stop::Done
            }
            Swapoff::Waiting => self.wait_for_writes(t, now_ns),
            Swapoff::Failed(SwapoffError::NoMemory(_)) => progress.give_up("there is no room for what is on it"),
            Swapoff::Failed(SwapoffError::Read(_)) => progress.give_up("a page of it cannot be read"),
            Swapoff::Failed(SwapoffError::NoDevice) => progress.give_up("it is not on"),
        }
    }

    /// Until a device has written something, or a tick.
    fn wait_for_writes(&mut self, t: usize, now_ns: u64) -> Stop {
        let is_full = self.kernel.hw.is_write_queue_full();
        self.threads.wait_for_room(t, is_full, now_ns, self.clock);
        Stop::Blocked(PsiState::Idle)
    }

    /// A group has a new limit, and still uses more.
    fn shrink_on(&mut self, n: usize, progress: &mut EventProgress, t: usize, now_ns: u64) -> Stop {
        let Some(id) = self.groups.id(n) else { return Stop::Done };
        let kernel = &mut *self.kernel;
        if !kernel.engine.is_over_limit(id) {
            return Stop::Done;
        }
        let limits = kernel.engine.memcg_limits(id);
        if kernel.engine.set_memcg_limits(&mut kernel.hw, id, &limits).is_err() {
            return Stop::Done;
        }
        if let Err(why) = self.kill_for_limit(id) {
            return progress.give_up(&why);
        }
        let LabKernel { engine, hw, .. } = &*self.kernel;
        if !engine.is_over_limit(id) {
            return Stop::Done;
        }
        let usage = engine.memcg_usage(id);
        progress.fruitless = if usage < progress.usage { 0 } else { progress.fruitless + 1 };
        progress.usage = usage;
        // Usage beyond memory.high is reclaimed by the group's tasks, too.
        let worth_it = usage > limits.max || engine.is_write_pending(id) || hw.is_write_queue_full();
        match worth_it && progress.fruitless < MAX_FRUITLESS_TICKS {
            true => self.wait_for_writes(t, now_ns),
            false if usage > limits.max => progress.give_up(&format!("it still uses {usage} pages")),
            false => Stop::Done,
        }
    }
}

/// Results of all events.
pub(crate) fn event_results(spec: &Scenario, progress: &[EventProgress]) -> Vec<EventResult> {
    let result = |(e, progress): (&EventSpec, &EventProgress)| EventResult {
        what: text(spec, e),
        at_ns: progress.at_ns,
        happened_ns: progress.happened_ns.clone(),
        last_ns: progress.last_ns,
        has_conditions: e.watch.is_some(),
        times: progress.times,
        asked_pages: progress.asked_pages,
        // Pages that a request under way has freed count, too.
        reclaimed_pages: progress.reclaimed_pages + progress.request.as_ref().map_or(0, ReclaimRequest::reclaimed),
        short: progress.short,
        failed: progress.failed.clone(),
        killed: progress.killed,
        victims: progress.victims.clone(),
    };
    spec.events.iter().zip(progress).map(result).collect()
}

fn sysctl_text(changes: &SysctlChanges) -> String {
    let SysctlChanges { swappiness, min_free_kbytes, watermark_scale_factor, drop_caches } = *changes;
    let all = [
        swappiness.map(|n| format!("vm.swappiness={n}")),
        min_free_kbytes.map(|n| format!("vm.min_free_kbytes={n}")),
        watermark_scale_factor.map(|n| format!("vm.watermark_scale_factor={n}")),
        drop_caches.then(|| "vm.drop_caches=1".to_owned()),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(" ")
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
        EventAction::Sysctl(changes) => format!("sysctl {}", sysctl_text(&changes)),
        EventAction::Swapon(n) => format!("swapon {}", spec.devices[spec.swap[n].device].name),
        EventAction::Swapoff(n) => format!("swapoff {}", spec.devices[spec.swap[n].device].name),
        EventAction::AddMemory(pages) => format!("add {} MiB of memory", pages >> 8),
        EventAction::Kill { within, .. } => {
            let daemon = event.watch.as_ref().and_then(|w| w.daemon).map_or(String::new(), |name| format!("{name}: "));
            format!("{daemon}kill in {}", path_or_root(within))
        }
    }
}
