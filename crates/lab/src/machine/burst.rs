//! What a thread does while it has a CPU.

use std::cell::Cell;
use std::rc::Rc;

use refault_mm::{
    KswapdStep, MemcgId, NodeId, OomTask, Outcome, PageId, SwapWork, ThrottleReason, Touch, World, ZswapStep,
};
use refault_trace::generate::Rng;

use super::event::Event;
use super::pressure::Mood;
use super::run::ANY_WAIT;
use super::stream::Stream;
use super::task::{Access, Advised, Next, Task, Turn};
use super::{Ending, Machine, State, Stop, Work};
use crate::cost::Costs;
use crate::scenario::{PhaseSpec, Scenario, StreamSpec};

/// How long an access that found no room waits before it tries again: a timer tick.
pub(super) const TICK_NS: u64 = 4_000_000;

/// CPU time that an engine call set off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bill {
    /// Reclaim: a memory stall.
    pub(super) reclaim_ns: u64,
    /// Requests and synchronous reads.
    pub(super) io_ns: u64,
}

/// What the swap allocator cost from the start on.
fn swap_ns(c: &Costs, work: SwapWork) -> u64 {
    work.calls * c.swap_call_ns + work.clusters * c.swap_cluster_ns + work.probes * c.swap_64_places_ns / 64
}

/// How an access goes on.
enum Step {
    /// It is done after so many nanoseconds.
    Go(u64),
    /// The thread stops after so many nanoseconds.
    Stop(u64, Stop),
}

impl Machine {
    /// Runs a task from `start_ns` on; when it stops, why, and the task.
    pub(super) fn run_task(&mut self, t: usize, mut task: Box<Task>, start_ns: u64) -> (u64, Stop, Box<Task>) {
        let spec = self.spec.clone();
        if self.threads[t].killed {
            return (start_ns, Stop::Done, task);
        }
        let end = start_ns + spec.machine.quantum_ns;
        let mut clock = start_ns;
        if task.cpu_ns >= task.next_scan_ns {
            clock += self.scan_for_hints(t, &mut task, clock);
        }
        if task.streams.is_empty() && task.phase == 0 && task.done.first_ns.is_none() {
            self.enter_phase(&spec, &mut task, clock);
        }
        while clock < end && self.threads[t].debt_ns == 0 {
            let phase = &spec.tasks[task.spec].phases[task.phase];
            let step = match task.turn(phase, clock) {
                Turn::SleepUntil(until) => {
                    self.threads[t].wait += 1;
                    Step::Stop(0, Stop::Sleep(until))
                }
                Turn::PhaseOver => match self.end_phase(&spec, &mut task, clock) {
                    true => Step::Go(0),
                    false => Step::Stop(0, Stop::Done),
                },
                Turn::Advise(advised) => self.advise(&mut task, phase, clock, advised),
                Turn::Access(access) => self.access(t, &mut task, phase, clock, access),
            };
            match step {
                Step::Go(ns) => clock += ns,
                Step::Stop(ns, stop) => return (clock + ns, stop, task),
            }
        }
        (clock, Stop::Preempted, task)
    }

    /// Goes on to the next phase; false: there is none.
    fn end_phase(&mut self, spec: &Rc<Scenario>, task: &mut Task, now_ns: u64) -> bool {
        self.count_hottest(task, -1.0);
        let more = match task.next_phase(&spec.tasks[task.spec], now_ns) {
            Next::Phase => true,
            Next::End => false,
            Next::Repeat(l) => {
                self.record_iteration(task.spec, l);
                true
            }
            Next::Leave(l, more) => {
                self.record_iteration(task.spec, l);
                more
            }
        };
        if more {
            self.enter_phase(spec, task, now_ns);
        }
        more
    }

    /// Drops a block, or pages it out: the program's own time.
    fn advise(&mut self, task: &mut Task, phase: &PhaseSpec, clock: u64, advised: Advised) -> Step {
        self.set_engine_time(clock);
        match advised.page_out {
            true => drop(self.engine.page_out(&mut self.hw, advised.first, advised.pages)),
            false => self.engine.drop_range(&mut self.hw, advised.first, advised.pages),
        }
        let bill = self.settle(clock);
        if let Some((reason, _)) = self.hw.throttle.take() {
            // It does not wait for what it asked to be written.
            self.engine.throttle_ended(reason);
        }
        let walk_ns = self.costs.madvise_ns + u64::from(advised.pages) * self.costs.pte_walk_ns;
        let ns = (walk_ns + bill.reclaim_ns + bill.io_ns).max(1);
        task.spend(phase, 0, ns);
        task.finish_advice(phase, clock + ns);
        Step::Go(ns)
    }

    fn enter_phase(&mut self, spec: &Rc<Scenario>, task: &mut Task, now_ns: u64) {
        let t = &spec.tasks[task.spec];
        let phase = &t.phases[task.phase];
        if phase.measured {
            self.note_measured();
        }
        if task.script.is_some() {
            return self.enter_trace(phase, task, now_ns);
        }
        self.start_recording(t, task);
        task.draw(t);
        let streams = phase.streams.iter().enumerate().map(|(i, s)| {
            let private = spec.objects[s.object].private;
            let instance = self.first_instance[s.object] + if private { task.copy as usize } else { 0 };
            let first = self.hw.extents[instance].first;
            // Copies strew the same ranks over the same pages.
            let purpose = [u64::MAX, task.spec as u64, task.phase as u64, i as u64];
            let key = (task.spec, task.phase, i);
            let s = &StreamSpec { pages: task.drawn_pages(s.least_pages, s.pages), ..s.clone() };
            let position = self.positions.entry(key).or_insert_with(|| Rc::new(Cell::new(u64::MAX)));
            Stream::new(s, instance, first, (task.copy, t.count), (&mut Rng::new(spec.seed, &purpose), position))
        });
        let mut streams: Vec<Stream> = streams.collect();
        for s in streams.iter_mut().filter(|s| s.mapped) {
            s.space = Some(self.space_of(s.extent, task));
        }
        task.start_phase(phase, streams, now_ns);
        self.count_hottest(task, 1.0);
    }

    /// The streams of a trace are its objects.
    fn enter_trace(&mut self, phase: &PhaseSpec, task: &mut Task, now_ns: u64) {
        let random = self.spec.tasks[task.spec].trace.as_ref().is_some_and(|t| t.random_advice);
        let Some(script) = &mut task.script else { return };
        script.start_ns = now_ns;
        let first = script.first_extent;
        let mut streams: Vec<Stream> = (first..first + script.objects.len())
            .map(|e| Stream::of_trace(e, self.hw.extents[e].first, u64::from(self.hw.extents[e].pages), random))
            .collect();
        for s in &mut streams {
            s.space = Some(self.space_of(s.extent, task));
        }
        task.start_phase(phase, streams, now_ns);
        self.count_hottest(task, 1.0);
    }

    /// The page table through which a task sees an object: anonymous memory has one, a file one a task.
    fn space_of(&mut self, extent: usize, task: &mut Task) -> usize {
        if self.instances[extent].anon {
            let space = self.hw.first_space(extent);
            self.add_space_to_program(task, space, u64::from(self.hw.extents[extent].pages));
            return space;
        }
        match task.spaces.iter().find(|s| s.0 == extent) {
            Some(&(_, space)) => space,
            None => {
                let space = self.hw.add_space(extent);
                task.spaces.push((extent, space));
                self.add_space_to_program(task, space, u64::from(self.hw.extents[extent].pages));
                space
            }
        }
    }

    /// One access of one page.
    fn access(
        &mut self,
        t: usize,
        task: &mut Task,
        phase: &PhaseSpec,
        clock: u64,
        Access { stream, page, left, write, mapped, continues }: Access,
    ) -> Step {
        if std::mem::take(&mut self.threads[t].read_failed) {
            // The error is the task's; whoever touches the page next has it read again.
            let ns = self.costs.minor_fault_ns.max(1);
            task.spend(phase, 0, ns);
            task.finish_access(phase, clock + ns, false);
            return Step::Go(ns);
        }
        let s = &mut task.streams[stream];
        if let (true, Some(space)) = (mapped, s.space) {
            if let Some(entry) = self.hw.touch(space, page, write) {
                let mut ns = self.costs.map_hit_ns + phase.cpu_ns;
                if !self.hw.memory.is_empty() {
                    ns += self.hw.memory.access(entry.node(), write, phase.lines, clock);
                }
                task.spend(phase, ns, 0);
                task.count(phase, true);
                task.finish_access(phase, clock + ns, true);
                return Step::Go(ns.max(1));
            }
            if self.tiering.is_some() && self.hw.take_hint(space, page) {
                return self.hint_fault(t, page, clock);
            }
        }
        self.engine.set_now_ns(clock);
        self.hw.now_ns = clock;
        self.hw.current = s.space;
        self.hw.mapped = 0;
        let outcome = match (mapped, write) {
            (true, false) => self.engine.access(&mut self.hw, page, Touch::MapRead),
            (true, true) => self.engine.access(&mut self.hw, page, Touch::MapWrite),
            (false, true) => self.engine.access(&mut self.hw, page, Touch::Write),
            (false, false) if continues => self.engine.access(&mut self.hw, page, Touch::ReadOn),
            (false, false) => self.engine.read_file(&mut self.hw, page, left, Touch::Read, &mut s.readahead),
        };
        let space = s.space.filter(|_| mapped);
        if outcome == Outcome::Hit && !self.hw.has_news() {
            let hit = if write { self.costs.write_hit_ns } else { self.costs.read_hit_ns };
            let hit = hit + self.copy_of(page, write, clock);
            let ns = hit + phase.cpu_ns;
            task.spend(phase, phase.cpu_ns, hit);
            task.count(phase, true);
            task.finish_access(phase, clock + ns, true);
            return Step::Go(ns.max(1));
        }
        if let (Some(space), true, Outcome::Minor | Outcome::Major | Outcome::Fresh) = (space, write, outcome) {
            self.hw.set_dirty(space, page);
        }
        if self.engine.is_over_high() {
            self.engine.return_to_user(&mut self.hw);
        }
        let mut own_ns = self.cost_of(outcome, mapped, write);
        let bill = self.settle(clock);
        if matches!(outcome, Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh)
            && !self.hw.memory.is_empty()
        {
            own_ns += match mapped {
                true => self.first_touch_of(page, write, phase.lines, clock),
                false => self.copy_of(page, write, clock),
            };
        }
        let ns = (own_ns + bill.io_ns).max(1);
        self.threads[t].debt_ns = bill.reclaim_ns;
        let done = matches!(outcome, Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh);
        task.spend(phase, if done { phase.cpu_ns } else { 0 }, ns + bill.reclaim_ns);
        let throttle = self.hw.throttle.take();
        let step = self.conclude(t, task, phase, (page, outcome), (clock, ns));
        match (throttle, step) {
            // Waiting for the page is enough.
            (Some((reason, _)), Step::Stop(ns, stop)) => {
                self.engine.throttle_ended(reason);
                Step::Stop(ns, stop)
            }
            (Some((reason, max_wait_ns)), Step::Go(ns)) => {
                self.wait_throttled(t, reason, clock + ns + bill.reclaim_ns + max_wait_ns);
                let mood = if reason == ThrottleReason::Dirty { Mood::Idle } else { Mood::Stalled };
                Step::Stop(ns, Stop::Blocked(mood))
            }
            (None, step) => step,
        }
    }

    /// A task touches a page that was marked: what the engine makes of it. The touch itself comes again.
    fn hint_fault(&mut self, t: usize, page: PageId, clock: u64) -> Step {
        self.set_engine_time(clock);
        let _ = self.engine.hint_fault(&mut self.hw, page);
        let bill = self.settle(clock);
        self.threads[t].debt_ns = bill.reclaim_ns;
        // Nobody waits for a promotion.
        if let Some((reason, _)) = self.hw.throttle.take() {
            self.engine.throttle_ended(reason);
        }
        Step::Go(self.costs.hint_fault_ns + bill.io_ns)
    }

    /// The touch itself, after a fault.
    fn first_touch_of(&mut self, page: PageId, write: bool, lines: u32, clock: u64) -> u64 {
        let node = self.engine.page_node(page);
        node.map_or(0, |n| self.hw.memory.access(n.index(), write, lines, clock))
    }

    /// A read or write by descriptor: what copying takes longer than with the memory that it was measured with.
    fn copy_of(&mut self, page: PageId, write: bool, clock: u64) -> u64 {
        if self.hw.memory.is_empty() {
            return 0;
        }
        let node = self.engine.page_node(page);
        node.map_or(0, |n| self.hw.memory.stream(n.index(), write, clock))
    }

    /// What happens now, for the engine and for what it orders.
    pub(super) fn set_engine_time(&mut self, now_ns: u64) {
        self.engine.set_now_ns(now_ns);
        self.hw.now_ns = now_ns;
    }

    fn cost_of(&self, outcome: Outcome, mapped: bool, write: bool) -> u64 {
        let c = &self.costs;
        let copy = match (mapped, write) {
            (true, _) => c.map_hit_ns,
            (false, true) => c.write_hit_ns,
            (false, false) => c.read_hit_ns,
        };
        match outcome {
            Outcome::Hit => copy,
            Outcome::Minor => c.minor_fault_ns + copy,
            Outcome::Major => c.major_fault_ns + copy,
            Outcome::Fresh if mapped => c.anon_fault_ns + self.hw.mapped.saturating_sub(1) * c.zero_page_ns,
            Outcome::Fresh => copy,
            Outcome::Waiting => c.major_fault_ns,
            Outcome::Failed | Outcome::Throttled | Outcome::Oom(_) => c.minor_fault_ns,
        }
    }

    /// What the outcome means for the task.
    fn conclude(
        &mut self,
        t: usize,
        task: &mut Task,
        phase: &PhaseSpec,
        (page, outcome): (PageId, Outcome),
        (clock, ns): (u64, u64),
    ) -> Step {
        match outcome {
            Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh => {
                task.count(phase, outcome.is_hit());
                let ns = ns + phase.cpu_ns;
                task.finish_access(phase, clock + ns, true);
                Step::Go(ns)
            }
            Outcome::Failed => {
                task.count(phase, false);
                task.finish_access(phase, clock + ns, false);
                Step::Go(ns)
            }
            Outcome::Waiting => {
                task.count(phase, false);
                let mood = if self.engine.is_refault_wait(page) { Mood::Stalled } else { Mood::Idle };
                self.wait_for_page(t, page);
                Step::Stop(ns, Stop::Blocked(mood))
            }
            Outcome::Throttled => {
                self.threads[t].wait += 1;
                let until = clock + ns + TICK_NS;
                self.events.push(until, Event::Wake(t, self.threads[t].wait));
                if self.hw.is_write_queue_full() {
                    self.queued.push_back((t, self.threads[t].wait));
                }
                Step::Stop(ns, Stop::Blocked(Mood::Stalled))
            }
            Outcome::Oom(memcg) => {
                self.kill_for(memcg);
                self.threads[t].wait += 1;
                Step::Stop(ns, Stop::Sleep(clock + ns + TICK_NS))
            }
        }
    }

    /// The out-of-memory killer: the engine says who.
    fn kill_for(&mut self, memcg: MemcgId) {
        if self.kill_within(memcg) == 0 {
            // Linux gives up, too.
            self.ending = Some(Ending::Stuck);
        }
    }

    /// Kills who is to die for a group; how many.
    pub(super) fn kill_within(&mut self, memcg: MemcgId) -> usize {
        self.hw.oom = None;
        let spec = self.spec.clone();
        let mut threads = Vec::new();
        let mut tasks = Vec::new();
        let mut at = 0;
        for (n, s) in spec.tasks.iter().enumerate() {
            // Without a group it has not begun.
            let group = self.groups.id_or_root(self.groups.of_task(n));
            for copy in 0..s.count {
                if let (Some(group), false) = (group, self.threads[at].state == State::Off || self.threads[at].killed) {
                    threads.push(at);
                    let mappings = self.anon_of(s, copy);
                    tasks.push(OomTask { memcg: group, score_adj: s.oom_score_adj, mappings });
                }
                at += 1;
            }
        }
        let victims = self.engine.oom_kill(memcg, &tasks);
        victims.iter().for_each(|&v| self.kill(threads[v], &tasks[v].mappings));
        victims.len()
    }

    /// The anonymous mappings of a copy of a task.
    fn anon_of(&self, task: &crate::scenario::TaskSpec, copy: u32) -> Vec<refault_mm::MappingId> {
        let objects = task.phases.iter().flat_map(|p| &p.streams).map(|s| s.object);
        let instance = |o: usize| self.first_instance[o] + if self.spec.objects[o].private { copy as usize } else { 0 };
        let mut all: Vec<usize> = objects.map(instance).filter(|&i| self.instances[i].anon).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(|i| self.instances[i].mapping).collect()
    }

    /// A copy of a task has ended: anonymous memory that nobody will use any more is free.
    pub(super) fn free_memory_of(&mut self, task: usize, copy: u32) {
        let spec = self.spec.clone();
        let uses =
            |t: &crate::scenario::TaskSpec, o: usize| t.phases.iter().flat_map(|p| &p.streams).any(|s| s.object == o);
        let mut objects: Vec<usize> =
            spec.tasks[task].phases.iter().flat_map(|p| &p.streams).map(|s| s.object).collect();
        objects.sort_unstable();
        objects.dedup();
        for o in objects {
            let private = spec.objects[o].private;
            let wanted = |(i, t): (usize, &crate::scenario::TaskSpec)| self.copies_left[i] > 0 && uses(t, o);
            if private || !spec.tasks.iter().enumerate().any(wanted) {
                let instance = self.first_instance[o] + if private { copy as usize } else { 0 };
                // Files stay in the cache.
                self.engine.drop_mapping(&mut self.hw, self.instances[instance].mapping);
            }
        }
        let _ = self.settle(self.now_ns);
    }

    fn kill(&mut self, t: usize, mappings: &[refault_mm::MappingId]) {
        self.oom_kills += 1;
        self.threads[t].killed = true;
        for &m in mappings {
            self.engine.drop_mapping(&mut self.hw, m);
        }
        self.threads[t].wait += 1;
        self.events.push(self.now_ns, Event::Wake(t, self.threads[t].wait));
    }

    /// kswapd, one pass of it.
    pub(super) fn run_kswapd(&mut self, t: usize, node: NodeId, start_ns: u64) -> (u64, Stop) {
        self.set_engine_time(start_ns);
        let step = self.engine.kswapd_node_step(&mut self.hw, node);
        let bill = self.settle(start_ns);
        let end = start_ns + (bill.reclaim_ns + bill.io_ns).max(1_000);
        if let Some((reason, max_wait_ns)) = self.hw.throttle.take() {
            self.wait_throttled(t, reason, end + max_wait_ns);
            return (end, Stop::Blocked(Mood::Idle));
        }
        match step {
            KswapdStep::Again => (end, Stop::Preempted),
            KswapdStep::Sleep => {
                self.threads[t].wait += 1;
                (end, Stop::Blocked(Mood::Idle))
            }
        }
    }

    /// The flusher: everything that it was woken for, at once.
    pub(super) fn run_flusher(&mut self, start_ns: u64) -> (u64, Stop) {
        self.set_engine_time(start_ns);
        self.engine.flush(&mut self.hw);
        let bill = self.settle(start_ns);
        self.threads[self.flusher].wait += 1;
        (start_ns + (bill.reclaim_ns + bill.io_ns).max(1_000), Stop::Blocked(Mood::Idle))
    }

    /// The worker of zswap: a step of it.
    pub(super) fn run_zswap(&mut self, start_ns: u64) -> (u64, Stop) {
        self.set_engine_time(start_ns);
        let step = self.engine.zswap_step(&mut self.hw);
        // What reclaim for its pages would have had to wait for does not hold it up.
        if let Some((reason, _)) = self.hw.throttle.take() {
            self.engine.throttle_ended(reason);
        }
        let bill = self.settle(start_ns);
        let end = start_ns + (bill.reclaim_ns + bill.io_ns).max(1_000);
        match step {
            ZswapStep::Again => (end, Stop::Preempted),
            ZswapStep::Sleep => {
                self.threads[self.zswap].wait += 1;
                (end, Stop::Blocked(Mood::Idle))
            }
        }
    }

    /// Carries out what an engine call asked for, from `at_ns` on, and says what it costs.
    pub(super) fn settle(&mut self, at_ns: u64) -> Bill {
        let work = self.engine.take_work();
        let c = &self.costs;
        let reclaim_ns = work.scanned * c.scan_page_ns + work.reclaimed * c.reclaim_page_ns + work.ptes * c.pte_walk_ns;
        let mut bill = Bill { reclaim_ns, io_ns: 0 };
        bill.reclaim_ns += work.split * c.split_page_ns;
        let swap = self.engine.swap_work();
        let paid = std::mem::replace(&mut self.swap_paid, swap);
        bill.reclaim_ns += swap_ns(c, swap) - swap_ns(c, paid);
        bill.reclaim_ns += work.compressed * c.compress_page_ns;
        bill.io_ns += work.decompressed * c.decompress_page_ns;
        bill.reclaim_ns += std::mem::take(&mut self.hw.write_cpu_ns) + self.hw.take_unmapped() * c.unmap_page_ns;
        bill.io_ns += std::mem::take(&mut self.hw.read_cpu_ns);
        let [up_ns, down_ns] = self.hw.take_copied();
        bill.io_ns += up_ns;
        bill.reclaim_ns += down_ns;
        if self.hw.is_plugged() {
            let submissions = self.hw.unplug();
            bill.io_ns += submissions.len() as u64 * c.io_submit_ns;
            self.events.push_submission(at_ns + bill.io_ns, submissions);
        }
        for slot in std::mem::take(&mut self.hw.discards) {
            self.events.push(at_ns + self.hw.discard_ns(slot), Event::Discarded(slot.0));
        }
        if self.hw.take_memory_change() {
            let pages = self.hw.swap_memory_pages() + self.spec.machine.kernel_pages;
            let granted = self.engine.set_external_pages(pages);
            self.hw.refuse_writes(!granted);
        }
        for node in std::mem::take(&mut self.hw.wake_kswapd) {
            self.events.push(at_ns, Event::Wake(self.kswapd + node.index(), ANY_WAIT));
        }
        for page in self.hw.take_placed() {
            if let Some(node) = self.engine.page_node(page) {
                self.hw.place(page, node);
            }
        }
        if std::mem::take(&mut self.hw.wake_flusher) {
            self.events.push(at_ns, Event::Wake(self.flusher, ANY_WAIT));
        }
        if std::mem::take(&mut self.hw.wake_zswap) {
            self.events.push(at_ns, Event::Wake(self.zswap, ANY_WAIT));
        }
        for reason in std::mem::take(&mut self.hw.unthrottle) {
            self.release_throttled(reason, at_ns);
        }
        bill
    }

    /// Time that a task lost to memory.
    pub(super) fn add_stall(&mut self, t: usize, ns: u64) {
        if let Some(Work::Task(task)) = &mut self.threads[t].work {
            task.done.stalled_ns += ns;
        }
    }
}
