//! The event loop: who runs when, who wakes whom, and what devices bring back.

use refault_mm::{PageId, ThrottleReason};

use super::event::Event;
use super::pressure::Mood;
use super::{Ending, Machine, RunResult, State, Stop, Work};

/// How a run reports on itself: virtual time, events so far. False: stop.
pub type Progress<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// Wakes a thread whatever it waits for.
pub(super) const ANY_WAIT: u64 = u64::MAX;

/// Events between two reports.
const REPORT_EVERY: u64 = 4096;

impl Machine {
    /// Runs to the end.
    pub fn run(self) -> Result<RunResult, String> {
        self.run_with(&mut |_, _| true)
    }

    /// Runs to the end, reporting now and then.
    pub fn run_with(self, progress: &mut Progress) -> Result<RunResult, String> {
        self.run_watched(&mut |machine| progress(machine.now_ns, machine.events_handled))
    }

    /// Runs to the end; now and then someone looks at the machine, and false stops it.
    pub fn run_watched(mut self, watch: &mut dyn FnMut(&Machine) -> bool) -> Result<RunResult, String> {
        while self.ending.is_none() {
            let Some((at_ns, event)) = self.events.pop() else {
                self.ending = Some(Ending::Stuck);
                break;
            };
            if let Some(end) = self.spec.end_ns.filter(|&end| at_ns > end) {
                self.now_ns = end;
                self.ending = Some(Ending::Time);
                break;
            }
            if at_ns < self.now_ns {
                return Err(format!("time runs backwards, from {} to {at_ns} ns", self.now_ns));
            }
            self.now_ns = at_ns;
            self.engine.set_now_ns(at_ns);
            self.handle(event)?;
            self.events_handled += 1;
            if self.events_handled.is_multiple_of(REPORT_EVERY) && !watch(&self) {
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
                self.engine.discard_done(&mut self.hw, refault_mm::SwapSlot(slot));
                self.after_interrupt();
            }
            Event::Sample => return self.take_sample(),
            Event::Admin(i) => return self.begin_event(i),
            Event::Enter(task) => return self.enter_group(task),
        }
        Ok(())
    }

    /// A thread that waits goes on, if this is the wait that was meant.
    pub(super) fn wake(&mut self, t: usize, wait: u64) {
        let thread = &mut self.threads[t];
        if thread.wait != wait && wait != ANY_WAIT {
            return;
        }
        match thread.state {
            State::Blocked => self.make_runnable(t),
            State::Running => thread.woken = true,
            State::Queued | State::Off => {}
        }
    }

    fn make_runnable(&mut self, t: usize) {
        if let Some(reason) = self.threads[t].throttled.take() {
            self.engine.throttle_ended(reason);
        }
        self.threads[t].state = State::Queued;
        // kswapd and direct reclaim count as stalled while they work.
        let kswapd = matches!(self.threads[t].work, Some(Work::Kswapd(_)));
        let mood = if kswapd { Mood::Stalled } else { Mood::Productive };
        self.set_mood(t, mood);
        self.queue.push_back(t);
        if let Some(cpu) = self.cpus.iter().position(|c| c.running.is_none()) {
            self.dispatch(cpu);
        }
    }

    pub(super) fn set_mood(&mut self, t: usize, mood: Mood) {
        let from = std::mem::replace(&mut self.threads[t].mood, mood);
        self.pressure.change(self.now_ns, &self.threads[t].groups, from, mood);
    }

    /// Gives an idle CPU to the thread that waits longest.
    fn dispatch(&mut self, cpu: usize) {
        let Some(t) = self.queue.pop_front() else { return };
        let switched = self.cpus[cpu].last != Some(t);
        self.cpus[cpu] = super::Cpu { running: Some(t), last: Some(t) };
        self.threads[t].state = State::Running;
        self.threads[t].woken = false;
        let start = self.now_ns + if switched { self.costs.context_switch_ns } else { 0 };
        self.engine.set_cpu(cpu);
        self.hw.current = None;
        let work = self.threads[t].work.take();
        let (end, stop, work) = match work {
            Some(Work::Task(task)) => {
                let (end, stop, mut task) = self.run_task(t, task, start);
                task.cpu_ns += end - start;
                (end, stop, Work::Task(task))
            }
            Some(Work::Kswapd(node)) => {
                let (end, stop) = self.run_kswapd(t, node, start);
                (end, stop, Work::Kswapd(node))
            }
            Some(Work::Zswap) => {
                let (end, stop) = self.run_zswap(start);
                (end, stop, Work::Zswap)
            }
            Some(Work::Admin(i)) => {
                let (end, stop) = self.run_admin(i, start);
                (end, stop, Work::Admin(i))
            }
            Some(Work::Flusher) | None => {
                let (end, stop) = self.run_flusher(start);
                (end, stop, Work::Flusher)
            }
        };
        self.threads[t].work = Some(work);
        self.threads[t].stop = stop;
        self.events.push(end, Event::Cpu(cpu));
    }

    /// A burst is over: pay for reclaim, then stop as the burst ended.
    fn stop_running(&mut self, cpu: usize) {
        let Some(t) = self.cpus[cpu].running else { return };
        let debt = std::mem::take(&mut self.threads[t].debt_ns);
        if debt > 0 {
            self.set_mood(t, Mood::Stalled);
            self.add_stall(t, debt);
            self.events.push(self.now_ns + debt, Event::Cpu(cpu));
            return;
        }
        self.cpus[cpu].running = None;
        let stop = if self.threads[t].killed { Stop::Done } else { self.threads[t].stop };
        match stop {
            Stop::Preempted => self.make_runnable(t),
            _ if stop != Stop::Done && std::mem::take(&mut self.threads[t].woken) => self.make_runnable(t),
            Stop::Sleep(until) => {
                self.block(t, Mood::Idle);
                self.events.push(until.max(self.now_ns), Event::Wake(t, self.threads[t].wait));
            }
            Stop::Blocked(mood) => self.block(t, mood),
            Stop::Done => self.end_thread(t),
        }
        if self.cpus[cpu].running.is_none() {
            self.dispatch(cpu);
        }
    }

    fn block(&mut self, t: usize, mood: Mood) {
        self.threads[t].state = State::Blocked;
        self.set_mood(t, mood);
    }

    /// A task is gone; what waits for it to end may begin.
    fn end_thread(&mut self, t: usize) {
        self.threads[t].state = State::Off;
        self.set_mood(t, Mood::Idle);
        let Some(Work::Task(task)) = &self.threads[t].work else { return };
        let (spec, copy) = (task.spec, task.copy);
        let counts = !self.spec.tasks[spec].background;
        if counts && self.alive == 1 {
            // Afterwards there would be nothing to see.
            self.last_swap = Some(self.swap_results());
        }
        self.copies_left[spec] -= 1;
        self.free_memory_of(spec, copy);
        if counts {
            self.alive -= 1;
            if self.alive == 0 {
                self.ending = Some(Ending::TasksDone);
            }
        }
        if self.copies_left[spec] > 0 {
            return;
        }
        self.schedule_events_after(spec);
        let next: Vec<_> = (0..self.spec.tasks.len()).filter(|&n| self.spec.tasks[n].after == Some(spec)).collect();
        for n in next {
            self.schedule_start(n, self.now_ns + self.spec.tasks[n].start_ns);
        }
    }

    fn submit(&mut self, place: usize) {
        let submissions = self.events.take_submission(place);
        for s in submissions {
            self.hw.devices[s.device].submit(self.now_ns, s.request);
            self.in_flight.insert(s.request.id, s.folios);
            self.announce(s.device);
        }
    }

    /// Has the device called when it has something to do.
    fn announce(&mut self, device: usize) {
        let next = self.hw.devices[device].next_event_ns();
        if next.is_some_and(|at| self.announced[device].is_none_or(|a| at < a)) {
            self.announced[device] = next;
            self.events.push(next.unwrap_or(self.now_ns).max(self.now_ns), Event::Device(device));
        }
    }

    fn advance_device(&mut self, device: usize) {
        if self.announced[device].is_none_or(|a| a > self.now_ns) {
            // Announced anew meanwhile: that call is still to come.
            return;
        }
        self.announced[device] = None;
        let mut done = std::mem::take(&mut self.completions);
        self.hw.devices[device].advance(self.now_ns, &mut done);
        for c in done.drain(..) {
            self.completed += 1;
            self.hw.note_done(device);
            self.wake_queued();
            let folios = self.in_flight.remove(&c.request.id).unwrap_or_default();
            for (page, nr) in folios {
                match c.request.write {
                    true => self.engine.write_done(&mut self.hw, page, c.ok),
                    false => self.engine.read_done(&mut self.hw, page, c.ok),
                }
                for page in (page.0..page.0 + nr).map(PageId) {
                    self.wake_waiters(page, !c.ok && !c.request.write);
                }
            }
        }
        self.completions = done;
        self.after_interrupt();
        self.announce(device);
    }

    /// A device has room for a request: one of those who wait to swap out goes on.
    fn wake_queued(&mut self) {
        while let Some((t, wait)) = self.queued.pop_front() {
            // It may have gone on by itself.
            if self.threads[t].wait == wait {
                return self.events.push(self.now_ns, Event::Wake(t, wait));
            }
        }
    }

    /// I/O that brought or held a page is over.
    fn wake_waiters(&mut self, page: PageId, read_failed: bool) {
        for t in self.waiters.remove(&page).unwrap_or_default() {
            self.threads[t].read_failed = read_failed;
            self.wake(t, self.threads[t].wait);
        }
    }

    /// What the end of an I/O set off: nobody's CPU time is charged.
    fn after_interrupt(&mut self) {
        let _ = self.settle(self.now_ns);
    }

    /// Waits for a page on behalf of thread `t`, from within its burst.
    pub(super) fn wait_for_page(&mut self, t: usize, page: PageId) {
        self.threads[t].wait += 1;
        self.waiters.entry(page).or_default().push(t);
    }

    /// Waits for reclaim on behalf of thread `t`, no longer than until then.
    pub(super) fn wait_throttled(&mut self, t: usize, reason: ThrottleReason, until_ns: u64) {
        self.threads[t].wait += 1;
        self.threads[t].throttled = Some(reason);
        self.events.push(until_ns, Event::Wake(t, self.threads[t].wait));
    }

    /// Those who are throttled for that reason go on.
    pub(super) fn release_throttled(&mut self, reason: ThrottleReason, at_ns: u64) {
        for t in 0..self.threads.len() {
            if self.threads[t].throttled == Some(reason) {
                // The engine has let them go already.
                self.threads[t].throttled = None;
                self.events.push(at_ns.max(self.now_ns), Event::Wake(t, self.threads[t].wait));
            }
        }
    }
}
