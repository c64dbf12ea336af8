//! A task has a CPU: turn after turn, until its quantum is over or it has to wait.

use refault_mm::AccessAdvice;
use refault_trace::generate::Rng;

use super::context::{AccessEnd, OnCpu};
use crate::hardware::Extent;
use crate::scenario::{PhaseSpec, StreamSpec};
use crate::sched::{PsiState, Stop};
use crate::task::{AdviseStep, PhaseEnd, Stream, Task, TaskStep};

impl OnCpu<'_> {
    /// Runs a task from `start_ns` on. Returns when it stops, and why.
    pub(crate) fn run_task(&mut self, t: usize, task: &mut Task, start_ns: u64) -> (u64, Stop) {
        if self.threads[t].killed {
            return (start_ns, Stop::Done);
        }
        let spec = self.spec;
        let (mut clock, end) = (start_ns, start_ns + self.turn_ns());
        task.close_op(clock);
        if self.threads[t].owes_reclaim || self.threads[t].paused_reclaim.is_some() {
            return self.reclaim_before(t, task, clock);
        }
        if let Some(tiering) = self.tiering.as_mut() {
            tiering.turn_begins(t, start_ns, self.kernel);
        }
        if let Some(tiering) = self.tiering.as_mut().filter(|_| task.cpu_ns >= task.next_scan_ns) {
            let ns = tiering.scan_for_hints(t, task, clock, self.kernel);
            if let Some(phase) = spec.tasks[task.spec].phases.get(task.phase) {
                task.spend(phase, 0, ns);
            }
            clock += ns;
        }
        if task.streams.is_empty() && task.phase == 0 && task.done.first_ns.is_none() {
            self.enter_phase(task, clock);
        }
        while clock < end && !self.threads[t].owes() {
            let phase = &spec.tasks[task.spec].phases[task.phase];
            if task.is_at_hits() && !self.threads[t].read_failed {
                clock = self.run_hits(task, phase, clock, end);
                if clock >= end {
                    break;
                }
            }
            if task.is_dry() {
                self.look_ahead(task);
            }
            let step = match task.next_step(phase, clock) {
                TaskStep::SleepUntil(until) => {
                    self.threads[t].begin_wait();
                    AccessEnd::Stop(0, Stop::Sleep(until))
                }
                TaskStep::PhaseOver => match self.end_phase(task, clock) {
                    true => AccessEnd::Go(0),
                    false => AccessEnd::Stop(0, Stop::Done),
                },
                TaskStep::Advise(advised) => self.advise(task, phase, clock, advised),
                TaskStep::Direct(direct) => self.direct(t, task, phase, (clock, direct)),
                TaskStep::Sync(syncing) => self.sync(t, task, phase, (clock, syncing)),
                TaskStep::Access(access) => self.access(t, task, phase, clock, access),
            };
            let loses_cpu = std::mem::take(&mut self.kernel.woke) && self.kernel.hw.slice.left_ns.is_some();
            match step {
                AccessEnd::Go(ns) if loses_cpu => return (clock + ns, Stop::Preempted),
                AccessEnd::Go(ns) => clock += ns,
                AccessEnd::Stop(ns, stop) => return (clock + ns, stop),
            }
        }
        (clock, Stop::Preempted)
    }

    /// Nanoseconds that a task keeps its CPU now: a quantum, but with ticks not beyond the tick
    /// that ends its slice.
    fn turn_ns(&self) -> u64 {
        self.kernel
            .hw
            .slice
            .left_ns
            .map_or(self.spec.machine.quantum_ns, |left| left.clamp(1, self.spec.machine.quantum_ns))
    }

    /// Lets a task reclaim that gave up its CPU before it reclaimed, or in the middle, and has a
    /// CPU again, whatever is free by now.
    fn reclaim_before(&mut self, t: usize, task: &mut Task, clock: u64) -> (u64, Stop) {
        self.kernel.set_now_ns(clock);
        let kernel = &mut *self.kernel;
        kernel.hw.slice.may_pause = true;
        match self.threads[t].paused_reclaim.take() {
            Some(run) => kernel.engine.resume_reclaim(&mut kernel.hw, run),
            None => {
                self.threads[t].owes_reclaim = false;
                kernel.engine.reclaim_directly(&mut kernel.hw);
            }
        }
        kernel.hw.slice.may_pause = false;
        self.threads[t].paused_reclaim = kernel.engine.take_paused_reclaim();
        let bill = self.settle(clock);
        let end = clock + bill.io_ns.max(1);
        self.threads[t].debt_ns = bill.reclaim_ns;
        task.spend(&self.spec.tasks[task.spec].phases[task.phase], 0, end - clock + bill.reclaim_ns);
        let Some((reason, max_wait_ns)) = self.kernel.take_throttle() else { return (end, Stop::Preempted) };
        self.threads.wait_throttled(t, reason, end + bill.reclaim_ns + max_wait_ns, self.clock);
        (end, Stop::Blocked(PsiState::Stalled))
    }

    /// Loads what the next accesses of a task will look at into the processor's caches.
    pub(super) fn look_ahead(&mut self, task: &mut Task) {
        let kernel = &*self.kernel;
        let sum: u64 = task
            .look_ahead()
            .map(|(page, space)| match space {
                // A hit needs no more than this.
                Some(space) => kernel.hw.tables.prefetch(space, page),
                None => kernel.engine.prefetch_access(page),
            })
            .sum();
        // Else the loads would be optimised away.
        std::hint::black_box(sum);
    }

    /// Goes on to the next phase; false: there is none.
    fn end_phase(&mut self, task: &mut Task, now_ns: u64) -> bool {
        let spec = self.spec;
        self.count_hottest(task, -1.0);
        let more = match task.next_phase(&spec.tasks[task.spec], now_ns) {
            PhaseEnd::Phase => true,
            PhaseEnd::End => false,
            PhaseEnd::Repeat(l) => {
                self.records.end_iteration(spec, task.spec, l, &self.kernel.engine);
                true
            }
            PhaseEnd::Leave(l, more) => {
                self.records.end_iteration(spec, task.spec, l, &self.kernel.engine);
                more
            }
        };
        if more {
            self.enter_phase(task, now_ns);
        }
        more
    }

    /// Drops a block, or pages it out: the program's own time.
    fn advise(&mut self, task: &mut Task, phase: &PhaseSpec, clock: u64, advised: AdviseStep) -> AccessEnd {
        let kernel = &mut *self.kernel;
        kernel.set_now_ns(clock);
        let is_file = !self.programs.instances[task.streams[advised.stream].extent].anon;
        let mut dropped = 0;
        match advised.page_out {
            _ if is_file => {
                dropped = kernel.engine.invalidate_range(&mut kernel.hw, advised.first, advised.pages);
            }
            true => drop(kernel.engine.page_out(&mut kernel.hw, advised.first, advised.pages)),
            false => {
                kernel.hw.gather();
                kernel.engine.zap_range(&mut kernel.hw, advised.first, advised.pages);
            }
        }
        let bill = self.settle(clock);
        // The task does not wait for the writes that it asked for.
        self.kernel.skip_throttle();
        let costs = &self.kernel.costs;
        let pages_ns = match is_file {
            true => dropped * costs.reclaim_page_ns,
            false => u64::from(advised.pages) * costs.pte_walk_ns,
        };
        let walk_ns = costs.madvise_ns + pages_ns;
        let ns = (walk_ns + bill.reclaim_ns + bill.io_ns).max(1);
        task.spend(phase, 0, ns);
        task.finish_advice(phase, clock + ns);
        AccessEnd::Go(ns)
    }

    fn enter_phase(&mut self, task: &mut Task, now_ns: u64) {
        let spec = self.spec;
        let t = &spec.tasks[task.spec];
        let phase = &t.phases[task.phase];
        if let Some(tiering) = self.tiering.as_mut().filter(|_| phase.measured) {
            tiering.note_measured(spec, self.kernel, self.clock.now_ns());
        }
        let mut streams = match task.script.is_some() {
            true => self.trace_streams(task, now_ns),
            false => {
                self.records.start(t, task, &self.kernel.engine);
                task.draw(t);
                self.phase_streams(task)
            }
        };
        let all_mapped = task.script.is_some();
        for s in streams.iter_mut().filter(|s| s.mapped || all_mapped) {
            s.space = Some(self.space_of(s.extent, task));
            let instance = &self.programs.instances[s.extent];
            // The advice of a trace is on its files.
            if !(all_mapped && instance.anon) {
                self.kernel.engine.advise_access(instance.mapping, s.readahead.advice());
            }
        }
        task.start_phase(phase, streams, now_ns);
        self.count_hottest(task, 1.0);
    }

    fn phase_streams(&mut self, task: &Task) -> Vec<Stream> {
        let spec = self.spec;
        let (t, seed) = (&spec.tasks[task.spec], spec.seed);
        let streams = t.phases[task.phase].streams.iter().enumerate().map(|(i, s)| {
            let instance = self.programs.instance(spec, s.object, task.copy);
            let first = self.kernel.hw.tables.extents[instance].first;
            // Copies permute the same ranks over the same pages.
            let purpose = [u64::MAX, task.spec as u64, task.phase as u64, i as u64];
            let s = &StreamSpec { pages: task.drawn_pages(s.least_pages, s.pages), ..s.clone() };
            let shared = self.programs.shared(task.spec, task.phase, i);
            Stream::new(s, instance, first, (task.copy, t.count), (&mut Rng::new(seed, &purpose), shared))
        });
        streams.collect()
    }

    /// The streams of a trace are its objects.
    fn trace_streams(&mut self, task: &mut Task, now_ns: u64) -> Vec<Stream> {
        let trace = self.spec.tasks[task.spec].trace.as_ref();
        let advice = trace.map_or(AccessAdvice::Normal, |t| t.advice);
        let Some(script) = &mut task.script else { return Vec::new() };
        script.start_ns = now_ns;
        let first = script.first_extent;
        let extents = &self.kernel.hw.tables.extents[first..first + script.objects.len()];
        let of = |(e, extent): (usize, &Extent)| Stream::of_trace(e, extent.first, u64::from(extent.pages), advice);
        (first..).zip(extents).map(of).collect()
    }

    /// The page table through which a task sees an object: anonymous memory has one, a file one a
    /// task.
    fn space_of(&mut self, extent: usize, task: &mut Task) -> usize {
        let tables = &mut self.kernel.hw.tables;
        let known = task.spaces.iter().find(|s| s.0 == extent).map(|s| s.1);
        let space = match (self.programs.instances[extent].anon, known) {
            (true, _) => {
                let space = tables.first_space(extent);
                if self.programs.is_memory_of_a_program(self.spec, extent, task.spec) {
                    tables.set_program(space, task.program);
                }
                space
            }
            (false, Some(space)) => return space,
            (false, None) => {
                let space = tables.add_space(extent);
                tables.set_program(space, task.program);
                task.spaces.push((extent, space));
                space
            }
        };
        let pages = u64::from(tables.extents[extent].pages);
        if let Some(tiering) = &mut self.tiering {
            tiering.add_space(self.spec, task, space, pages);
        }
        space
    }
}
