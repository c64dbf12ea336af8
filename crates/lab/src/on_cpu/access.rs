//! One access of one page by a task: through its page tables, or by a call of the engine, and what
//! that means for the task.

use refault_mm::{Outcome, PageId, ThrottleReason, Touch, World as _};

use super::context::{AccessEnd, OnCpu};
use crate::kernel::LabKernel;
use crate::scenario::PhaseSpec;
use crate::sched::{PsiState, Stop, TICK_NS};
use crate::task::{Access, Task};

impl OnCpu<'_> {
    /// One access of one page.
    pub(super) fn access(
        &mut self,
        t: usize,
        task: &mut Task,
        phase: &PhaseSpec,
        clock: u64,
        access: Access,
    ) -> AccessEnd {
        if std::mem::take(&mut self.threads[t].read_failed) {
            // The error is the task's; the thread that touches the page next has it read again.
            let ns = self.kernel.costs.minor_fault_ns.max(1);
            task.spend(phase, 0, ns);
            task.finish_access(phase, clock + ns, false);
            return AccessEnd::Go(ns);
        }
        if task.script.as_ref().is_some_and(|s| s.mincore) {
            self.kernel.set_now_ns(clock);
            self.kernel.engine.borrow_frame(&mut self.kernel.hw);
            if let Some(step) = self.give_way(t, (task, phase), clock, Outcome::Throttled) {
                return step;
            }
        }
        let space = task.streams[access.stream].space;
        if let (true, Some(space)) = (access.mapped, space) {
            if let Some(ns) = self.hit_in_table(space, phase, clock, access) {
                task.spend(phase, ns, 0);
                task.count(phase, true);
                task.finish_access(phase, clock + ns, true);
                return self.pay_for_probe(t, clock, ns.max(1));
            }
            if self.tiering.is_some() && self.kernel.hw.tables.take_hint(space, access.page) {
                return self.hint_fault(t, task, phase, (access.page, clock));
            }
        }
        let outcome = self.call_engine(task, clock, access);
        if outcome == Outcome::Hit && !self.kernel.hw.has_news() && !self.kernel.engine.is_over_high() {
            let c = &self.kernel.costs;
            let hit = if access.write { c.write_hit_ns } else { c.read_hit_ns };
            let hit = hit + copy_of(self.kernel, access.page, access.write, clock);
            let ns = hit + phase.cpu_ns;
            task.spend(phase, phase.cpu_ns, hit);
            task.count(phase, true);
            task.finish_access(phase, clock + ns, true);
            return AccessEnd::Go(ns.max(1));
        }
        if let Some(step) = self.give_way(t, (task, phase), clock, outcome) {
            return step;
        }
        self.pay(t, task, phase, (clock, access, outcome))
    }

    /// A hit in the page table after `mincore`, which may have woken kswapd or reclaimed.
    fn pay_for_probe(&mut self, t: usize, clock: u64, ns: u64) -> AccessEnd {
        if !self.kernel.hw.has_news() {
            return AccessEnd::Go(ns);
        }
        let bill = self.settle(clock);
        self.threads[t].debt_ns += bill.reclaim_ns;
        let ns = ns + bill.io_ns;
        let Some((reason, max_wait_ns)) = self.kernel.take_throttle() else { return AccessEnd::Go(ns) };
        self.threads.wait_throttled(t, reason, clock + ns + bill.reclaim_ns + max_wait_ns, self.clock);
        AccessEnd::Stop(ns, Stop::Blocked(PsiState::Stalled))
    }

    /// Handles a task that gave up its CPU before it reclaimed, or that pauses while it reclaims:
    /// the task stops, if the access is not done.
    fn give_way(
        &mut self,
        t: usize,
        (task, phase): (&mut Task, &PhaseSpec),
        clock: u64,
        outcome: Outcome,
    ) -> Option<AccessEnd> {
        let paused = self.kernel.engine.take_paused_reclaim();
        let yielded = std::mem::take(&mut self.kernel.hw.slice.yielded);
        if !yielded && paused.is_none() {
            return None;
        }
        self.threads[t].owes_reclaim = yielded;
        self.threads[t].paused_reclaim = paused;
        if outcome != Outcome::Throttled {
            return None;
        }
        let bill = self.settle(clock);
        self.threads[t].debt_ns = bill.reclaim_ns;
        let ns = bill.io_ns.max(1);
        task.spend(phase, 0, ns + bill.reclaim_ns);
        // Reclaim of its group came before, and may have asked it to wait.
        let Some((reason, max_wait_ns)) = self.kernel.take_throttle() else {
            return Some(AccessEnd::Stop(ns, Stop::Preempted));
        };
        self.threads.wait_throttled(t, reason, clock + ns + bill.reclaim_ns + max_wait_ns, self.clock);
        Some(AccessEnd::Stop(ns, Stop::Blocked(PsiState::Stalled)))
    }

    /// Nanoseconds of a touch that needs no fault; `None` if it needs one.
    #[inline]
    pub(super) fn hit_in_table(&mut self, space: usize, phase: &PhaseSpec, clock: u64, access: Access) -> Option<u64> {
        let kernel = &mut *self.kernel;
        let entry = kernel.hw.tables.touch(space, access.page, access.write)?;
        let mut ns = kernel.costs.map_hit_ns + phase.cpu_ns;
        if !kernel.hw.nodes.is_empty() {
            ns += kernel.hw.nodes.access(entry.node(), access.write, phase.lines, clock);
        }
        Some(ns)
    }

    fn call_engine(&mut self, task: &mut Task, clock: u64, access: Access) -> Outcome {
        let Access { stream, page, left, write, mapped, continues } = access;
        let s = &mut task.streams[stream];
        self.kernel.set_now_ns(clock);
        let (engine, hw) = (&mut self.kernel.engine, &mut self.kernel.hw);
        hw.tables.current = s.space;
        hw.tables.mapped = 0;
        hw.slice.may_pause = true;
        let outcome = match (mapped, write) {
            (true, false) => engine.access(hw, page, Touch::MapRead),
            (true, true) => engine.access(hw, page, Touch::MapWrite),
            (false, true) => engine.access(hw, page, Touch::Write),
            (false, false) if continues => engine.access(hw, page, Touch::ReadContinued),
            (false, false) => engine.read_file(hw, page, left, Touch::Read, &mut s.readahead),
        };
        hw.slice.may_pause = false;
        outcome
    }

    /// Charges an access that was more than a hit. Returns how the task goes on.
    fn pay(
        &mut self,
        t: usize,
        task: &mut Task,
        phase: &PhaseSpec,
        (clock, access, outcome): (u64, Access, Outcome),
    ) -> AccessEnd {
        let Access { page, write, mapped, .. } = access;
        let done = matches!(outcome, Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh);
        let kernel = &mut *self.kernel;
        if let (Some(space), true) =
            (task.streams[access.stream].space, mapped && write && done && outcome != Outcome::Hit)
        {
            kernel.hw.tables.set_dirty(space, page);
        }
        // A call that waits for a page returns when that is there, and sleeps for `high` then.
        if done && kernel.engine.is_over_high() {
            kernel.engine.return_to_user(&mut kernel.hw);
        }
        let mut own_ns = cost_of(kernel, outcome, mapped, write);
        if let (Some(contention), Some(space), true) =
            (&mut kernel.contention, task.streams[access.stream].space, mapped)
        {
            own_ns += contention.fault(task.program, space, clock);
        }
        let bill = self.settle(clock);
        if done && !self.kernel.hw.nodes.is_empty() {
            own_ns += match mapped {
                true => first_touch_of(self.kernel, page, write, phase.lines, clock),
                false => copy_of(self.kernel, page, write, clock),
            };
        }
        let stall_ns = self.stall_of(page, bill.io_ns - bill.freed_ns);
        let ns = (own_ns + bill.io_ns).max(1) - stall_ns;
        self.threads[t].debt_ns = bill.reclaim_ns;
        self.threads[t].stall_ns = stall_ns;
        task.spend(phase, if done { phase.cpu_ns } else { 0 }, ns + stall_ns + bill.reclaim_ns);
        // The outcome says whether somebody is to be killed: the access may find room all the same.
        let _ = self.kernel.take_oom();
        let throttle = self.kernel.take_throttle();
        // The access lasts until it has reclaimed and is not held up any more.
        task.is_held_up = bill.reclaim_ns + stall_ns > 0 || throttle.is_some();
        let step = self.conclude(t, task, phase, (page, outcome), (clock, ns));
        task.is_held_up = false;
        match (throttle, step) {
            // Reclaim of a group came upon nothing but dirty pages, and waits for the flusher.
            (Some((reason @ ThrottleReason::Writeback, max_wait_ns)), AccessEnd::Stop(ns, stop))
                if outcome == Outcome::Throttled =>
            {
                self.threads.wait_throttled(t, reason, clock + ns + bill.reclaim_ns + max_wait_ns, self.clock);
                AccessEnd::Stop(ns, stop)
            }
            // Waiting for the page is enough.
            (Some((reason, _)), AccessEnd::Stop(ns, stop)) => {
                self.kernel.engine.throttle_ended(reason);
                AccessEnd::Stop(ns, stop)
            }
            (Some((reason, max_wait_ns)), AccessEnd::Go(ns)) => {
                let until = clock + ns + bill.reclaim_ns + max_wait_ns;
                self.threads.wait_throttled(t, reason, until, self.clock);
                let psi_state = if reason == ThrottleReason::Dirty { PsiState::Idle } else { PsiState::Stalled };
                AccessEnd::Stop(ns, Stop::Blocked(psi_state))
            }
            (None, step) => step,
        }
    }

    /// The part of the time that the CPU reads a page which is a memory stall, paid for as one.
    fn stall_of(&self, page: PageId, io_ns: u64) -> u64 {
        if io_ns > 0 && self.kernel.engine.is_refault_read(page) { io_ns } else { 0 }
    }

    /// Handles the touch of a marked page by a task. The touch itself comes again.
    fn hint_fault(&mut self, t: usize, task: &mut Task, phase: &PhaseSpec, (page, clock): (PageId, u64)) -> AccessEnd {
        let kernel = &mut *self.kernel;
        kernel.set_now_ns(clock);
        let _ = kernel.engine.hint_fault(&mut kernel.hw, page);
        let bill = self.settle(clock);
        self.threads[t].debt_ns = bill.reclaim_ns;
        // Nobody waits for a promotion.
        self.kernel.skip_throttle();
        let ns = self.kernel.costs.hint_fault_ns + bill.io_ns;
        task.spend(phase, 0, ns + bill.reclaim_ns);
        AccessEnd::Go(ns)
    }

    /// Turns the outcome into what the task does next.
    fn conclude(
        &mut self,
        t: usize,
        task: &mut Task,
        phase: &PhaseSpec,
        (page, outcome): (PageId, Outcome),
        (clock, ns): (u64, u64),
    ) -> AccessEnd {
        match outcome {
            Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh => {
                task.count(phase, outcome.is_hit());
                let ns = ns + phase.cpu_ns;
                task.finish_access(phase, clock + ns, true);
                AccessEnd::Go(ns)
            }
            Outcome::Failed => {
                task.count(phase, false);
                task.finish_access(phase, clock + ns, false);
                AccessEnd::Go(ns)
            }
            Outcome::Waiting => {
                task.count(phase, false);
                let psi_state =
                    if self.kernel.engine.is_refault_wait(page) { PsiState::Stalled } else { PsiState::Idle };
                self.threads.wait_for_page(t, page);
                AccessEnd::Stop(ns, Stop::Blocked(psi_state))
            }
            Outcome::Throttled => {
                let is_full = self.kernel.hw.is_write_queue_full();
                self.threads.wait_for_room(t, is_full, clock + ns, self.clock);
                AccessEnd::Stop(ns, Stop::Blocked(PsiState::Stalled))
            }
            Outcome::Oom(memcg) => {
                self.kill_for(memcg);
                self.threads[t].begin_wait();
                AccessEnd::Stop(ns, Stop::Sleep(clock + ns + TICK_NS))
            }
        }
    }
}

/// The touch itself, after a fault.
fn first_touch_of(kernel: &mut LabKernel, page: PageId, write: bool, lines: u32, clock: u64) -> u64 {
    let node = kernel.engine.page_node(page);
    node.map_or(0, |n| kernel.hw.nodes.access(n.index(), write, lines, clock))
}

/// Nanoseconds that the copy of a read or write by descriptor takes longer than with idle DRAM.
fn copy_of(kernel: &mut LabKernel, page: PageId, write: bool, clock: u64) -> u64 {
    if kernel.hw.nodes.is_empty() {
        return 0;
    }
    let node = kernel.engine.page_node(page);
    node.map_or(0, |n| kernel.hw.nodes.stream(n.index(), write, clock))
}

/// Nanoseconds of an access, apart from reclaim, I/O, and nodes of memory.
fn cost_of(kernel: &LabKernel, outcome: Outcome, mapped: bool, write: bool) -> u64 {
    let c = &kernel.costs;
    let copy = match (mapped, write) {
        (true, _) => c.map_hit_ns,
        (false, true) => c.write_hit_ns,
        (false, false) => c.read_hit_ns,
    };
    match outcome {
        Outcome::Hit => copy,
        Outcome::Minor => c.minor_fault_ns + copy,
        Outcome::Major if mapped => c.major_fault_ns + copy,
        Outcome::Major => c.read_miss_ns + copy,
        Outcome::Fresh if mapped => c.anon_fault_ns + kernel.hw.tables.mapped.saturating_sub(1) * c.zero_page_ns,
        Outcome::Fresh => copy,
        Outcome::Waiting if mapped => c.major_fault_ns,
        Outcome::Waiting => c.read_miss_ns,
        Outcome::Failed | Outcome::Throttled | Outcome::Oom(_) => c.minor_fault_ns,
    }
}
