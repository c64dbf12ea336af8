//! The events of a scenario: what an administrator does while the machine runs. Making, moving and
//! removing takes no time here; what reclaims for a new limit, or for `memory.reclaim`, is a thread
//! of its own.

use super::build::{pages_of_files, swap_device};
use super::state::Machine;
use crate::scenario::{EventAction, SysctlChanges};
use crate::sched::{ANY_WAIT, Event, ThreadState};

impl Machine {
    /// Announces when the flusher looks next for what has been dirty for too long, if it does.
    pub(super) fn schedule_expiry(&mut self) {
        if self.spec.machine.dirty_expire_ns > 0 {
            self.clock.push(self.clock.now_ns() + self.spec.machine.dirty_writeback_ns, Event::Expiry);
        }
    }

    /// The flusher looks for what has been dirty for too long, if anything is dirty. Like samples
    /// that alone does not keep a machine going.
    pub(super) fn look_for_expired(&mut self) {
        if self.kernel.engine.has_dirty_files() {
            self.wake(self.threads.flusher(), ANY_WAIT);
        }
        if !self.clock.is_idle() {
            self.schedule_expiry();
        }
    }

    /// Announces the events that wait for the end of task `after`; none: events that wait for no
    /// task.
    pub(super) fn schedule_events(&mut self, after: Option<usize>) {
        for (i, e) in self.spec.events.iter().enumerate().filter(|(_, e)| e.after == after) {
            let event = if e.watch.is_some() { Event::Look(i) } else { Event::Admin(i) };
            self.clock.push(self.clock.now_ns() + e.at_ns, event);
        }
    }

    /// Begins an event of the scenario that is due.
    pub(super) fn begin_event(&mut self, i: usize) -> Result<(), String> {
        let repeats = matches!(self.spec.events[i].action, EventAction::Reclaim { .. });
        self.event_progress[i].begin(self.clock.now_ns(), repeats);
        let t = self.threads.admin(i);
        if self.threads[t].state == ThreadState::Off {
            // The event happens again.
            self.threads.start(t);
        }
        if let Err(why) = self.carry_out(i) {
            self.event_progress[i].fail(why);
        }
        self.kernel.skip_throttle();
        let bill = self.settle();
        if let EventAction::Swapoff(_) = self.spec.events[i].action {
            self.wake(self.threads.admin(i), ANY_WAIT);
        }
        if let EventAction::Set { memcg, .. } = self.spec.events[i].action {
            let t = self.threads.admin(i);
            self.threads[t].debt_ns += bill.reclaim_ns;
            let over = self.groups.id(memcg).is_some_and(|id| self.kernel.engine.is_over_limit(id));
            if (over && !self.event_progress[i].has_failed()) || bill.reclaim_ns > 0 {
                self.wake(t, ANY_WAIT);
            }
        }
        match self.check {
            true => self.kernel.engine.validate().map_err(|e| format!("after event {}: {e}", i + 1)),
            false => Ok(()),
        }
    }

    fn carry_out(&mut self, i: usize) -> Result<(), String> {
        let now_ns = self.clock.now_ns();
        match self.spec.events[i].action {
            EventAction::Create(n) => self.groups.create(&self.spec, n, now_ns, &self.programs, &mut self.kernel),
            EventAction::Move { task, to, charges } => {
                let parts = (&mut self.threads, &mut self.programs, &mut self.kernel);
                self.groups.move_task(&self.spec, (task, to, charges), now_ns, parts)
            }
            EventAction::Remove(n) => self.remove_group(n),
            EventAction::Set { memcg, limits } => {
                let (mut on_cpu, progress) = self.on_cpu();
                on_cpu.set_limits(&mut progress[i], memcg, &limits)
            }
            EventAction::Sysctl(changes) => self.set_sysctl(i, &changes),
            EventAction::Swapon(n) => self.swapon(n),
            EventAction::Swapoff(_) => Ok(()),
            EventAction::AddMemory(pages) => {
                let pages = self.kernel.engine.managed_pages() + pages;
                self.kernel.engine.resize_node(pages).map(|_| ())
            }
            EventAction::Kill { within, victim } => {
                let scanned = std::mem::take(&mut self.watching[i].scanned);
                let (mut on_cpu, progress) = self.on_cpu();
                let (tasks, name) = on_cpu.kill_by_daemon((within, victim), &scanned)?;
                progress[i].note_killed(tasks, name);
                Ok(())
            }
            EventAction::Reclaim { .. } => {
                self.wake(self.threads.admin(i), ANY_WAIT);
                Ok(())
            }
        }
    }

    /// Files in `/proc/sys/vm` are written. Dropping pages is CPU time of who writes.
    fn set_sysctl(&mut self, i: usize, changes: &SysctlChanges) -> Result<(), String> {
        let kernel = &mut self.kernel;
        if let Some(swappiness) = changes.swappiness {
            kernel.engine.set_swappiness(swappiness)?;
        }
        if changes.min_free_kbytes.is_some() || changes.watermark_scale_factor.is_some() {
            kernel.engine.set_watermarks(changes.min_free_kbytes, changes.watermark_scale_factor)?;
        }
        if changes.drop_caches {
            let pages = kernel.engine.drop_caches(&mut kernel.hw);
            let ns = pages * kernel.costs.reclaim_page_ns;
            let t = self.threads.admin(i);
            self.threads[t].debt_ns += ns;
            self.wake(t, ANY_WAIT);
        }
        Ok(())
    }

    fn swapon(&mut self, n: usize) -> Result<(), String> {
        let swap = &self.spec.swap[n];
        if self.kernel.hw.storage.swap_number(swap.device).is_some() {
            return Err("it is on already".into());
        }
        let number = self.kernel.engine.swapon(swap_device(&self.spec, swap)?)?;
        self.kernel.hw.storage.swapon(number, swap.device, pages_of_files(&self.spec, swap.device));
        Ok(())
    }

    /// Removes a group without tasks and children; what there was to say of it stays.
    fn remove_group(&mut self, n: usize) -> Result<(), String> {
        let id = self.groups.removable(&self.spec, n, &self.threads)?;
        let mut last = self.memcg_result(n + 1);
        last.removed_ns = Some(self.clock.now_ns());
        self.kernel.engine.remove_memcg(id)?;
        self.groups.set_removed(n, last);
        Ok(())
    }
}
