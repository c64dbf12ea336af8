//! The threads, the CPUs on which they take turns, and what they wait for.

mod eevdf;

use std::collections::{HashMap, VecDeque};
use std::ops::{Index, IndexMut, Range};

use refault_mm::{NodeId, PageId, ThrottleReason};

use self::eevdf::Eevdf;
use super::event::{Clock, Event};
use super::pressure::{Pressure, PsiState};
use super::thread::{Thread, ThreadState, ThreadWork, Wait};
use super::ticks::Ticks;
use crate::scenario::Scenario;

/// Wakes a thread whatever it waits for.
pub(crate) const ANY_WAIT: u64 = u64::MAX;

/// Nanoseconds that a task waits which found no room, before it tries again: a timer tick.
pub(crate) const TICK_NS: u64 = 4_000_000;

/// Place in the queue for a thread that lost its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    First,
    Second,
    Last,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    running: Option<usize>,
    last: Option<usize>,
    /// With ticks: when the slice of the CPU's thread began, and whether the thread is to give way.
    slice_began_ns: u64,
    need_resched: bool,
    /// Since when its thread has it.
    since_ns: u64,
}

/// All threads: first the copies of the tasks in the order of the scenario, then kswapd of each
/// node, the flusher, the worker of zswap, and one for each event of the scenario.
#[derive(Debug)]
pub(crate) struct Threads {
    all: Vec<Thread>,
    tasks: usize,
    nodes: usize,
    cpus: Vec<Cpu>,
    ticks: Option<Ticks>,
    eevdf: Option<Eevdf>,
    queue: VecDeque<usize>,
    /// Threads that wait for a page.
    page_waiters: HashMap<PageId, Vec<usize>>,
    /// Threads that wait for room in the queue of a swap device, by the number of their wait.
    room_waiters: VecDeque<(usize, u64)>,
    pub(crate) pressure: Pressure,
}

impl Threads {
    /// Threads of a scenario, tasks apart, which come first and are given: `tasks` by what they do
    /// and the groups they are in.
    pub(crate) fn new(spec: &Scenario, tasks: Vec<Thread>) -> Threads {
        let nodes = spec.machine.nodes.len().max(1);
        let kswapd = (0..nodes).map(|node| ThreadWork::Kswapd(NodeId(node as u8)));
        let workers =
            kswapd.chain([ThreadWork::Flusher, ThreadWork::Zswap]).chain((0..spec.events.len()).map(ThreadWork::Admin));
        let blocked = |work| Thread { state: ThreadState::Blocked, ..Thread::new(work, vec![0]) };
        Threads {
            tasks: tasks.len(),
            nodes,
            all: tasks.into_iter().chain(workers.map(blocked)).collect(),
            cpus: vec![Cpu::default(); spec.machine.cpus as usize],
            ticks: (spec.machine.tick_ns > 0).then(|| Ticks::new(spec.machine.tick_ns, spec.machine.cpus)),
            eevdf: Eevdf::new(spec),
            queue: VecDeque::new(),
            page_waiters: HashMap::new(),
            room_waiters: VecDeque::new(),
            pressure: Pressure::new(spec.machine.cpus, spec.memcgs.len() + 1),
        }
    }

    pub(crate) fn kswapd(&self, node: NodeId) -> usize {
        self.tasks + node.index()
    }

    pub(crate) fn flusher(&self) -> usize {
        self.tasks + self.nodes
    }

    /// The worker that writes back what zswap holds.
    pub(crate) fn zswap(&self) -> usize {
        self.flusher() + 1
    }

    /// Thread that reclaims for an event of the scenario.
    pub(crate) fn admin(&self, event: usize) -> usize {
        self.zswap() + 1 + event
    }

    /// The threads of the kernel, by the names that `ps` shows.
    pub(crate) fn of_kernel(&self) -> impl Iterator<Item = (String, usize)> {
        let kswapd = (0..self.nodes).map(|n| (format!("kswapd{n}"), self.tasks + n));
        kswapd.chain([("flush".to_owned(), self.flusher()), ("zswap-shrink".to_owned(), self.zswap())])
    }

    /// CPU time that a thread has had until now.
    pub(crate) fn ran_ns(&self, t: usize, now_ns: u64) -> u64 {
        let since = self.cpus.iter().find(|c| c.running == Some(t)).map(|c| c.since_ns);
        self.all[t].ran_ns + since.map_or(0, |since| now_ns.saturating_sub(since))
    }

    /// Ends all waits at the end of the run, so that they count until now.
    pub(crate) fn end_waits(&mut self, now_ns: u64) {
        for thread in self.all.iter_mut().filter(|t| matches!(t.state, ThreadState::Blocked | ThreadState::Queued)) {
            thread.next_wait(thread.waits_for, now_ns);
        }
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Thread> {
        self.all.iter()
    }

    /// The copies of a task.
    pub(crate) fn of_task(spec: &Scenario, task: usize) -> Range<usize> {
        let first: usize = spec.tasks[..task].iter().map(|t| t.count as usize).sum();
        first..first + spec.tasks[task].count as usize
    }

    /// Whether a copy of a task that has begun has not ended.
    pub(crate) fn is_alive(&self, spec: &Scenario, task: usize) -> bool {
        Threads::of_task(spec, task).any(|t| self.all[t].state != ThreadState::Off && !self.all[t].killed)
    }

    /// Whether a thread exists for who kills: it has begun, has not ended and is not killed.
    pub(crate) fn can_be_killed(&self, t: usize) -> bool {
        let thread = &self.all[t];
        thread.has_begun && thread.state != ThreadState::Off && !thread.killed
    }

    /// A wake-up reaches a thread. True: it waited for that, and is to be made runnable.
    pub(crate) fn is_woken(&mut self, t: usize, wait: u64) -> bool {
        let thread = &mut self.all[t];
        if thread.wait != wait && wait != ANY_WAIT {
            return false;
        }
        thread.woken |= thread.state == ThreadState::Running || thread.state == ThreadState::Queued && thread.owes();
        thread.state == ThreadState::Blocked
    }

    /// Queues a woken thread for a CPU; with ticks it is next. Returns the reason if the thread had
    /// been throttled, which is over now.
    pub(crate) fn make_runnable(&mut self, t: usize, now_ns: u64) -> Option<ThrottleReason> {
        debug_assert!(
            matches!(self.all[t].state, ThreadState::Blocked | ThreadState::Running),
            "{:?}",
            self.all[t].state
        );
        let reason = self.all[t].throttled.take();
        if self.eevdf.is_some() && self.all[t].state == ThreadState::Blocked {
            self.enqueue_entity(t, now_ns);
        }
        self.queue_up(t, now_ns);
        match self.ticks {
            Some(_) => self.queue.push_front(t),
            None => self.queue.push_back(t),
        }
        reason
    }

    fn queue_up(&mut self, t: usize, now_ns: u64) {
        if self.all[t].state == ThreadState::Running {
            // The thread was woken before it had begun to wait.
            (self.all[t].waits_for, self.all[t].waits_since_ns) = (Wait::Nothing, now_ns);
        }
        self.all[t].next_wait(Wait::Cpu, now_ns);
        self.all[t].state = ThreadState::Queued;
        self.all[t].has_begun = true;
        let state = match self.all[t].psi_state {
            // A stall is over when the thread has a CPU again, and says so itself.
            PsiState::Reclaiming if !self.all[t].owes() && !self.is_kswapd(t) => PsiState::Productive,
            PsiState::Reclaiming | PsiState::Queued | PsiState::Stalled | PsiState::Refault => PsiState::Queued,
            _ if self.is_kswapd(t) => PsiState::Queued,
            _ => PsiState::Productive,
        };
        self.set_psi_state(t, state, now_ns);
    }

    fn is_kswapd(&self, t: usize) -> bool {
        (self.tasks..self.tasks + self.nodes).contains(&t)
    }

    /// Lets a thread begin as soon as it is woken. Returns the number of its wait.
    pub(crate) fn start(&mut self, t: usize) -> u64 {
        debug_assert_eq!(self.all[t].state, ThreadState::Off, "thread {t} begins twice");
        self.all[t].state = ThreadState::Blocked;
        self.all[t].wait
    }

    pub(crate) fn set_psi_state(&mut self, t: usize, psi_state: PsiState, now_ns: u64) {
        let from = std::mem::replace(&mut self.all[t].psi_state, psi_state);
        self.pressure.change(now_ns, &self.all[t].groups, from, psi_state);
    }

    /// A thread is in other groups from now on.
    pub(crate) fn set_groups(&mut self, t: usize, groups: &[usize], now_ns: u64) {
        let psi_state = self.all[t].psi_state;
        self.pressure.change(now_ns, &self.all[t].groups, psi_state, PsiState::Idle);
        self.pressure.change(now_ns, groups, PsiState::Idle, psi_state);
        self.all[t].groups = groups.to_vec();
    }

    /// A CPU on which nothing runs.
    pub(crate) fn idle_cpu(&self) -> Option<usize> {
        self.cpus.iter().position(|c| c.running.is_none())
    }

    /// Gives an idle CPU to the thread that has waited longest. Returns the thread, and whether
    /// another thread ran on the CPU before.
    pub(crate) fn give_cpu(&mut self, cpu: usize, now_ns: u64) -> Option<(usize, bool)> {
        debug_assert!(self.cpus[cpu].running.is_none(), "CPU {cpu} is not idle");
        let t = self.queue.pop_front()?;
        debug_assert_eq!(self.all[t].state, ThreadState::Queued, "thread {t}");
        let switched = self.cpus[cpu].last != Some(t);
        let slice_began_ns = now_ns.saturating_sub(self.all[t].used_ns);
        self.cpus[cpu] = Cpu { running: Some(t), last: Some(t), slice_began_ns, need_resched: false, since_ns: now_ns };
        self.all[t].next_wait(Wait::Nothing, now_ns);
        self.all[t].state = ThreadState::Running;
        self.all[t].woken &= self.all[t].owes();
        let stalls = self.all[t].psi_state == PsiState::Queued && self.all[t].owes();
        let state = if stalls || self.is_kswapd(t) { PsiState::Reclaiming } else { PsiState::Productive };
        self.set_psi_state(t, state, now_ns);
        Some((t, switched))
    }

    pub(crate) fn running(&self, cpu: usize) -> Option<usize> {
        self.cpus[cpu].running
    }

    /// The thread on a CPU stops; it is neither runnable nor blocked yet.
    pub(crate) fn take_cpu(&mut self, cpu: usize, now_ns: u64) {
        debug_assert!(self.cpus[cpu].running.is_some_and(|t| self.all[t].state == ThreadState::Running), "CPU {cpu}");
        if let Some(t) = self.cpus[cpu].running.take() {
            let ran_ns = now_ns.saturating_sub(self.cpus[cpu].since_ns);
            self.all[t].vruntime_ns += ran_ns as i64;
            self.all[t].ran_ns += ran_ns;
            self.all[t].used_ns = now_ns.saturating_sub(self.cpus[cpu].slice_began_ns);
        }
    }

    /// With ticks: the one at which the thread on a CPU loses it to one that waits.
    pub(crate) fn turn_ends_ns(&self, cpu: usize) -> Option<u64> {
        let c = &self.cpus[cpu];
        let slice_ends_ns = self.ticks?.end_of(c.slice_began_ns);
        c.running.map(|t| self.slice_end_ns(&self.all[t], c.since_ns, slice_ends_ns))
    }

    /// Lets a woken thread take a CPU at once though none is idle: with ticks, if the thread is
    /// owed CPU time.
    pub(crate) fn preempt(&mut self, t: usize, now_ns: u64) {
        if !self.is_eligible(t, now_ns) {
            return;
        }
        let is_first = |c: &&mut Cpu| c.running.is_some() && !c.need_resched;
        if let (Some(_), Some(cpu)) = (self.ticks, self.cpus.iter_mut().find(is_first)) {
            cpu.need_resched = true;
        }
    }

    /// With ticks: the place in the queue of the thread on a CPU, which could go on: behind one
    /// that was woken, behind all if its slice is over, and else before all.
    pub(crate) fn place(&mut self, cpu: usize, now_ns: u64) -> Option<Place> {
        let (ticks, t, is_over) = (self.ticks?, self.cpus[cpu].running?, now_ns >= self.turn_ends_ns(cpu)?);
        let goes_on = if self.cpus[cpu].need_resched { Place::Second } else { Place::First };
        if !is_over && !self.must_resched_now(t) {
            return Some(goes_on);
        }
        self.all[t].wants_resched = false;
        let keeps = self.eevdf.is_some() && self.keeps_running(cpu, now_ns);
        if now_ns >= ticks.end_of(self.cpus[cpu].slice_began_ns) {
            self.cpus[cpu].slice_began_ns = ticks.last(now_ns);
        }
        Some(if keeps { goes_on } else { Place::Last })
    }

    /// A thread that stopped and could go on waits for a CPU again.
    pub(crate) fn queue_again(&mut self, t: usize, place: Place, now_ns: u64) {
        debug_assert_eq!(self.all[t].state, ThreadState::Running, "thread {t}");
        self.queue_up(t, now_ns);
        match place {
            Place::First => self.queue.push_front(t),
            Place::Second => self.queue.insert(self.queue.len().min(1), t),
            Place::Last => self.queue.push_back(t),
        }
    }

    /// Queues a thread that loses its CPU while it is spending CPU time for work already done.
    pub(crate) fn queue_in_debt(&mut self, t: usize, place: Place, now_ns: u64) {
        self.all[t].waits_then = self.all[t].waits_for;
        self.queue_again(t, place, now_ns);
    }

    /// Gives such a thread, which has a CPU again, the wait it had before.
    pub(crate) fn resume_in_debt(&mut self, t: usize) {
        self.all[t].waits_for = std::mem::replace(&mut self.all[t].waits_then, Wait::Nothing);
    }

    pub(crate) fn has_ticks(&self) -> bool {
        self.ticks.is_some()
    }

    pub(crate) fn block(&mut self, t: usize, psi_state: PsiState, now_ns: u64) {
        debug_assert_eq!(self.all[t].state, ThreadState::Running, "thread {t}");
        self.all[t].state = ThreadState::Blocked;
        self.all[t].waits_since_ns = now_ns;
        self.all[t].used_ns = 0;
        if self.eevdf.is_some() {
            self.dequeue_entity(t, now_ns);
        }
        let for_device = self.all[t].waits_for == Wait::Io;
        self.set_psi_state(t, psi_state.asleep(for_device), now_ns);
    }

    /// A thread is gone.
    pub(crate) fn end(&mut self, t: usize, now_ns: u64) {
        debug_assert_eq!(self.all[t].state, ThreadState::Running, "thread {t}");
        self.all[t].state = ThreadState::Off;
        self.set_psi_state(t, PsiState::Idle, now_ns);
    }

    /// Waits for a page on behalf of thread `t`, from within its burst.
    pub(crate) fn wait_for_page(&mut self, t: usize, page: PageId) {
        self.all[t].begin_wait();
        self.all[t].waits_for = Wait::Io;
        self.page_waiters.entry(page).or_default().push(t);
    }

    /// Waits for a request of its own, from within its burst.
    pub(crate) fn wait_for_device(&mut self, t: usize) {
        self.all[t].begin_wait();
        self.all[t].waits_for = Wait::Io;
    }

    /// Takes the threads that waited for a page: what held it is over.
    pub(crate) fn take_page_waiters(&mut self, page: PageId) -> Vec<usize> {
        self.page_waiters.remove(&page).unwrap_or_default()
    }

    /// Waits for a timer tick after `from_ns`, or for room in the queue of a swap device if that is
    /// full.
    pub(crate) fn wait_for_room(&mut self, t: usize, is_full: bool, from_ns: u64, clock: &mut Clock) {
        let wait = self.all[t].begin_wait();
        clock.push(from_ns + TICK_NS, Event::Wake(t, wait));
        self.all[t].waits_for = if is_full { Wait::Io } else { Wait::Reclaim };
        if is_full {
            self.room_waiters.push_back((t, wait));
        }
    }

    /// Thread that waits longest for room in the queue of a swap device, with the number of the
    /// wait.
    pub(crate) fn next_room_waiter(&mut self) -> Option<(usize, u64)> {
        // Some may have gone on by themselves.
        std::iter::from_fn(|| self.room_waiters.pop_front()).find(|&(t, wait)| self.all[t].wait == wait)
    }

    /// Waits for reclaim on behalf of thread `t`, no longer than until then.
    pub(crate) fn wait_throttled(&mut self, t: usize, reason: ThrottleReason, until_ns: u64, clock: &mut Clock) {
        let wait = self.all[t].begin_wait();
        debug_assert!(self.all[t].throttled.is_none(), "thread {t} is throttled twice");
        self.all[t].throttled = Some(reason);
        self.all[t].waits_for = if reason == ThrottleReason::Dirty { Wait::Io } else { Wait::Reclaim };
        clock.push(until_ns, Event::Wake(t, wait));
    }

    /// Wakes the threads that are throttled for that reason.
    pub(crate) fn release_throttled(&mut self, reason: ThrottleReason, at_ns: u64, clock: &mut Clock) {
        for (t, thread) in self.all.iter_mut().enumerate() {
            if thread.throttled == Some(reason) {
                // The engine has let them go already.
                thread.throttled = None;
                clock.push(at_ns.max(clock.now_ns()), Event::Wake(t, thread.wait));
            }
        }
    }
}

impl Index<usize> for Threads {
    type Output = Thread;

    fn index(&self, t: usize) -> &Thread {
        &self.all[t]
    }
}

impl IndexMut<usize> for Threads {
    fn index_mut(&mut self, t: usize) -> &mut Thread {
        &mut self.all[t]
    }
}
