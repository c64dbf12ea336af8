//! The event loop: who runs when, and who wakes whom.

use super::state::Machine;
use crate::on_cpu;
use crate::results::{Ending, RunResult};
use crate::sched::{Event, Place, PsiState, Stop, ThreadWork, Threads};

/// Function that a run calls with its virtual time in nanoseconds and its events so far. False:
/// stop.
pub type ProgressFn<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// Events between two reports.
const REPORT_EVERY: u64 = 4096;

impl Machine {
    /// Runs to the end.
    pub fn run(self) -> Result<RunResult, String> {
        self.run_with(&mut |_, _| true)
    }

    /// Runs to the end, reporting now and then.
    pub fn run_with(self, progress: &mut ProgressFn) -> Result<RunResult, String> {
        self.run_watched(&mut |machine| progress(machine.now_ns(), machine.events()))
    }

    /// Runs to the end; now and then someone looks at the machine, and false stops it.
    pub fn run_watched(mut self, watch: &mut dyn FnMut(&Machine) -> bool) -> Result<RunResult, String> {
        while self.ending.is_none() {
            let Some((at_ns, event)) = self.clock.pop() else {
                self.ending = Some(Ending::Stuck);
                break;
            };
            if let Some(end) = self.spec.end_ns.filter(|&end| at_ns > end) {
                self.clock.advance(end)?;
                self.ending = Some(Ending::Time);
                break;
            }
            self.clock.advance(at_ns)?;
            self.kernel.engine.set_now_ns(at_ns);
            self.handle(event)?;
            self.kernel.hw.pending.check_taken(self.check)?;
            if self.clock.count().is_multiple_of(REPORT_EVERY) && !watch(&self) {
                return Err("interrupted".into());
            }
        }
        self.finish()
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Cpu(cpu) => self.stop_running(cpu),
            Event::Device(d) => self.advance_device(d),
            Event::Wake(t, wait) => self.wake(t, wait),
            Event::Submit(place) => self.submit(place),
            Event::Discarded(slot) => {
                self.kernel.engine.discard_done(&mut self.kernel.hw, refault_mm::SwapSlot(slot));
                self.settle();
            }
            Event::Sample => return self.take_sample(),
            Event::Expiry => self.look_for_expired(),
            Event::Admin(i) => return self.begin_event(i),
            Event::Look(i) => return self.look(i),
            Event::Enter(task) => return self.groups.enter(&self.spec, task, self.clock.now_ns()),
        }
        Ok(())
    }

    /// A thread that waits goes on, if this is the wait that was meant.
    pub(super) fn wake(&mut self, t: usize, wait: u64) {
        if self.threads.is_woken(t, wait) {
            self.make_runnable(t);
        }
    }

    fn make_runnable(&mut self, t: usize) {
        if let Some(reason) = self.threads.make_runnable(t, self.clock.now_ns()) {
            self.kernel.engine.throttle_ended(reason);
        }
        match self.threads.idle_cpu() {
            Some(cpu) => self.dispatch(cpu),
            None => self.threads.preempt(t, self.clock.now_ns()),
        }
    }

    /// Gives an idle CPU to the thread that waits longest.
    fn dispatch(&mut self, cpu: usize) {
        let Some((t, switched)) = self.threads.give_cpu(cpu, self.clock.now_ns()) else { return };
        let start = self.clock.now_ns() + if switched { self.kernel.costs.context_switch_ns } else { 0 };
        if self.threads[t].owes() {
            self.threads.resume_in_debt(t);
            if let Some(contention) = &mut self.kernel.contention {
                let program = self.threads[t].task().map(|task| task.program);
                contention.enter(cpu, program, self.clock.now_ns());
                contention.leave();
            }
            self.clock.push(start, Event::Cpu(cpu));
            return;
        }
        self.kernel.engine.set_cpu(cpu);
        let hint = self.threads[t].task().map_or(0, |task| self.spec.tasks[task.spec].cache_ext_hint);
        self.kernel.engine.set_cache_ext_hint(hint);
        if let Some(contention) = &mut self.kernel.contention {
            let program = self.threads[t].task().map(|task| task.program);
            contention.enter(cpu, program, self.clock.now_ns());
        }
        self.kernel.hw.tables.current = None;
        self.kernel.hw.slice.left_ns = self.threads.turn_ends_ns(cpu).map(|end| end.saturating_sub(start));
        let Some(mut work) = self.threads[t].work.take() else { return };
        let (mut on_cpu, progress) = self.on_cpu();
        let (end, stop) = match &mut work {
            ThreadWork::Task(task) => {
                let (end, stop) = on_cpu.run_task(t, task, start);
                task.cpu_ns += end - start;
                (end, stop)
            }
            ThreadWork::Admin(i) => on_cpu.run_admin(&mut progress[*i], *i, start),
            ThreadWork::Kswapd(node) => on_cpu.run_kswapd(*node, start),
            ThreadWork::Zswap => on_cpu::zswap(start, on_cpu.kernel, on_cpu.clock, on_cpu.threads),
            ThreadWork::Flusher => on_cpu.run_flusher(start),
        };
        self.threads[t].work = Some(work);
        self.threads[t].stop = stop;
        if std::mem::take(&mut self.kernel.hw.pending.wake_vmpressure) {
            self.threads.resched(t);
        }
        if let Some(contention) = &mut self.kernel.contention {
            contention.leave();
        }
        self.clock.push(end, Event::Cpu(cpu));
    }

    /// A burst is over: pay for reclaim, then stop as the burst ended.
    fn stop_running(&mut self, cpu: usize) {
        let Some(t) = self.threads.running(cpu) else { return };
        let now_ns = self.clock.now_ns();
        if self.pay_debts(t, cpu) {
            return;
        }
        if self.pay_for_interrupts(t, cpu) {
            return;
        }
        let place = self.threads.place(cpu, now_ns);
        self.threads.take_cpu(cpu, now_ns);
        let thread = &mut self.threads[t];
        let stop = if thread.killed { Stop::Done } else { thread.stop };
        match stop {
            Stop::Preempted => match place {
                Some(place) => self.threads.queue_again(t, place, now_ns),
                None => self.make_runnable(t),
            },
            _ if stop != Stop::Done && std::mem::take(&mut thread.woken) => self.make_runnable(t),
            Stop::Sleep(until) => {
                let wait = thread.wait;
                self.threads.block(t, PsiState::Idle, now_ns);
                self.clock.push(until.max(now_ns), Event::Wake(t, wait));
            }
            Stop::Blocked(psi_state) => self.threads.block(t, psi_state, now_ns),
            Stop::Done => self.end_thread(t),
        }
        if self.threads.running(cpu).is_none() {
            self.dispatch(cpu);
        }
    }

    /// Reclaim and synchronous reads that a burst leaves to be paid for, as stalls; with ticks a
    /// quantum at a time, since who waits for the CPU may take it. A writer of a file of a group
    /// that reclaims (`memory.reclaim`, a lower limit) is not stalled. True: it stops later.
    fn pay_debts(&mut self, t: usize, cpu: usize) -> bool {
        let now_ns = self.clock.now_ns();
        let pays = std::mem::take(&mut self.threads[t].pays);
        if !self.threads[t].owes() {
            return false;
        }
        let place = self.threads.place(cpu, now_ns).filter(|&place| pays && place != Place::First);
        if let Some(place) = place {
            if self.pay_for_interrupts(t, cpu) {
                self.threads[t].pays = true;
                return true;
            }
            self.threads.take_cpu(cpu, now_ns);
            self.threads.queue_in_debt(t, place, now_ns);
            self.dispatch(cpu);
            return true;
        }
        let most_ns = if self.threads.has_ticks() { self.spec.machine.quantum_ns } else { u64::MAX };
        let thread = &mut self.threads[t];
        thread.pays = true;
        let stall = thread.stall_ns.min(most_ns);
        let debt = thread.debt_ns.min(most_ns - stall);
        (thread.stall_ns, thread.debt_ns) = (thread.stall_ns - stall, thread.debt_ns - debt);
        if !matches!(thread.work, Some(ThreadWork::Admin(_))) {
            self.threads.set_psi_state(t, PsiState::Reclaiming, now_ns);
        }
        if let (Some(task), true) = (self.threads[t].task_mut(), debt > 0) {
            task.reclaim(debt);
            self.direct_reclaim_ns += debt;
        }
        self.clock.push(now_ns + stall + debt, Event::Cpu(cpu));
        true
    }

    /// Adds the time that a CPU has lost to interrupts to what its thread does there. True: it lost
    /// some, and stops later.
    fn pay_for_interrupts(&mut self, t: usize, cpu: usize) -> bool {
        let Some(contention) = &mut self.kernel.contention else { return false };
        let lost_ns = contention.take_lost_ns(cpu);
        if lost_ns == 0 {
            contention.stop(cpu);
            return false;
        }
        if let Some(task) = self.threads[t].task_mut() {
            task.cpu_ns += lost_ns;
            if let Some(phase) = self.spec.tasks[task.spec].phases.get(task.phase) {
                task.spend(phase, 0, lost_ns);
            }
        }
        self.clock.push(self.clock.now_ns() + lost_ns, Event::Cpu(cpu));
        true
    }

    /// Ends a thread. After the last copy of a task, schedules the tasks and events that come after
    /// it.
    fn end_thread(&mut self, t: usize) {
        self.threads.end(t, self.clock.now_ns());
        let Some(task) = self.threads[t].task() else { return };
        let (spec, copy) = (task.spec, task.copy);
        let counts = !self.spec.tasks[spec].background;
        if counts && self.programs.is_last() {
            // The last task is about to free its memory, and its slots with it.
            self.last_swap = Some(self.swap_results());
        }
        self.programs.end_copy(spec);
        self.on_cpu().0.free_memory_of(spec, copy);
        if counts && self.programs.end_counted() {
            self.ending = Some(Ending::TasksDone);
        }
        if self.programs.copies_left(spec) > 0 {
            return;
        }
        self.schedule_events(Some(spec));
        let next: Vec<_> = (0..self.spec.tasks.len()).filter(|&n| self.spec.tasks[n].after == Some(spec)).collect();
        for n in next {
            self.schedule_start(n, self.clock.now_ns() + self.spec.tasks[n].start_ns);
        }
    }

    /// Schedules the start of all copies of a task, `stagger_ns` apart.
    pub(super) fn schedule_start(&mut self, task: usize, at_ns: u64) {
        let at_ns = at_ns.max(self.clock.now_ns());
        let stagger_ns = self.spec.tasks[task].stagger_ns;
        if !self.spec.events.is_empty() {
            self.clock.push(at_ns, Event::Enter(task));
        }
        for (t, copy) in Threads::of_task(&self.spec, task).zip(0..) {
            let wait = self.threads.start(t);
            self.clock.push(at_ns + copy * stagger_ns, Event::Wake(t, wait));
        }
    }
}
