//! Faults: what a touch leads to, and what ends a wait.

use refault_mm::{Advice, Outcome, PageId, ThrottleReason, Touch};

use super::faults::{Fault, MAX_MESSAGES};
use super::folio_reads::FolioRead;
use super::memory_high::{MOST_LEAVING, Released};
use super::operations::Operations;
use super::places::WINDOW;
use super::state::State;
use super::swap_core::Core;
use crate::store::{PageBuf, StoreError};

/// Steps without result after which a pool in front of a file is asked for memory.
const ROOM_STEPS: u32 = 20;

impl<O: Operations> Core<O> {
    /// Someone touched a page that is not in place.
    pub(crate) fn fault(&mut self, page: u32, write: bool) {
        self.memory.counts.faults += 1;
        self.serve_now(page, write);
    }

    /// A fault that is told only now.
    pub(super) fn serve_now(&mut self, page: u32, write: bool) {
        self.serve(Fault { page, write, since_ns: self.now_ns }, false);
    }

    /// `forced`: even if there is next to no room.
    pub(super) fn serve(&mut self, fault: Fault, forced: bool) {
        let page = fault.page;
        match self.memory.state(page) {
            State::Mapped => self.wake_mapped(page),
            // A thread that tries again gets the signal.
            State::Poisoned => self.wake(page),
            state if state.is_moving() => self.waiting.add(page, fault.write),
            State::Empty | State::Stored if !forced && self.is_short() => self.waiting_for_frame.add(fault),
            state => {
                match state {
                    State::Staged => self.cancel_write(fault),
                    _ => self.touch(fault),
                }
                match state {
                    State::Staged | State::Written => {
                        self.memory.counts.rescued += 1;
                        let unit = self.unit(page);
                        self.engine.advise_range(PageId(unit.start), unit.len() as u32, Advice::InUse);
                        self.rescued += if state == State::Staged { unit.len() as u64 } else { 0 };
                    }
                    State::Empty if self.memory.state(page) == State::Mapped => {
                        self.memory.counts.first_touches += 1;
                    }
                    _ => {}
                }
            }
        }
        self.budget.note_peak(&self.engine);
    }

    /// Reclaim is at work, and what is left is for it.
    pub(crate) fn is_short(&self) -> bool {
        self.budget.is_short(&self.engine, self.memory.kswapd_awake)
    }

    pub(super) fn touch(&mut self, fault: Fault) {
        let Fault { page, write, .. } = fault;
        self.memory.write = write;
        match self.access(page, if write { Touch::MapWrite } else { Touch::MapRead }) {
            Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh => self.check_in_place(page),
            Outcome::Waiting => self.waiting.add(page, write),
            Outcome::Throttled => self.waiting_for_frame.add(fault),
            Outcome::Failed => self.poison(page, "it could not be read"),
            // The verdict is about the new limit, which is not in force.
            Outcome::Oom(_) if self.memory.lowering => self.waiting_for_frame.add(fault),
            Outcome::Oom(_) if self.memory.area.ask_for_room() => self.waiting_for_frame.add(fault),
            Outcome::Oom(_) => self.poison(page, "there is no room for it, and nothing to reclaim"),
        }
    }

    /// As a touch of a page that is in use, whatever it was before.
    pub(super) fn touch_now(&mut self, page: u32, write: bool) {
        self.touch(Fault { page, write, since_ns: self.now_ns });
    }

    /// The engine takes the page for mapped: it is in place, or it is lost.
    fn check_in_place(&mut self, page: u32) {
        if !matches!(self.memory.state(page), State::Mapped | State::Poisoned) {
            self.poison(page, "the kernel could not put it in its place");
        }
    }

    /// Brings a page in of its own accord, in whatever state it is. `None`: there is no room, or
    /// the page is on its way and must arrive first.
    pub(crate) fn bring(&mut self, page: u32) -> bool {
        let state = self.memory.state(page);
        if self.is_short() || state.is_moving() {
            return false;
        }
        if state == State::Staged {
            self.engine.write_cancelled(&mut self.memory, PageId(page));
        }
        self.memory.write = false;
        match self.access(page, Touch::MapRead) {
            Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh => {
                self.check_in_place(page);
                true
            }
            Outcome::Waiting => {
                self.waiting.add(page, false);
                true
            }
            Outcome::Throttled | Outcome::Failed | Outcome::Oom(_) => false,
        }
    }

    /// Tells the engine of a touch, and puts in place what it maps. If the engine reclaims for it,
    /// it stops when a window of pages is to leave: none of them is free before it is written, and
    /// all there is would be ordered out.
    fn access(&mut self, page: u32, touch: Touch) -> Outcome {
        self.memory.high.most_leaving = self.memory.leaving.len() + WINDOW;
        let outcome = self.engine.access(&mut self.memory, PageId(page), touch);
        self.memory.high.most_leaving = usize::MAX;
        self.map_all();
        outcome
    }

    /// A fault on a page that is in place: it was served meanwhile. If it is not there after all,
    /// someone changed the memory behind the pager, and what was there is lost.
    fn wake_mapped(&mut self, page: u32) {
        match self.memory.ops.is_present(page) {
            // The thread that faulted first has to wait for it, and so has any that comes after.
            true if self.memory.high.is_asleep(&page) => {}
            true => self.wake(page),
            false => self.poison(page, "its memory was changed by madvise, mremap or munmap"),
        }
    }

    pub(super) fn wake(&self, page: u32) {
        self.memory.ops.wake(page);
    }

    /// The page cannot be had: the thread that touches it gets a signal.
    pub(super) fn poison(&mut self, page: u32, why: &str) {
        match self.memory.state(page) {
            State::Staged | State::Written => self.memory.leave_place(page, State::Poisoned),
            _ => self.memory.set_state(page, State::Poisoned),
        }
        self.memory.counts.poisoned += 1;
        let is_said = self.memory.counts.poisoned <= MAX_MESSAGES;
        self.memory.ops.poison(page, is_said.then_some(why));
        self.wake(page);
    }

    /// A page was read, or could not be. `placed`: it is in place already, which nobody but who put
    /// it there knows yet; then the content may be only there. Whether anyone waited for it.
    pub(crate) fn arrive(
        &mut self,
        page: u32,
        content: Result<Option<Box<PageBuf>>, StoreError>,
        placed: bool,
    ) -> bool {
        debug_assert_eq!(self.memory.state(page), State::Reading, "page {page} arrives");
        let id = PageId(page);
        let waiting = self.waiting.remove(page);
        match content {
            Ok(content) => {
                self.memory.counts.swapped_in += 1;
                self.engine.read_done(&mut self.memory, id, true);
                self.memory.arrived = content;
                self.memory.placed = placed.then_some(page);
                self.touch_now(page, waiting.unwrap_or(false));
                let spare = self.memory.arrived.take();
                self.memory.spare.extend(spare);
                if self.memory.placed.take().is_some() {
                    // It could free what it does not know to be in use.
                    self.memory.ops.fatal("a page is in place, and the engine did not map it");
                }
            }
            // It was read ahead. A thread that needs it may have better luck.
            Err(_) if waiting.is_none() => {
                self.memory.set_state(page, State::Stored);
                self.engine.read_done(&mut self.memory, id, false);
            }
            Err(e) => {
                self.memory.counts.read_errors += 1;
                self.engine.read_done(&mut self.memory, id, false);
                self.poison(page, &format!("reading it from swap: {e}"));
            }
        }
        waiting.is_some()
    }

    /// Takes the pages to be read, in no order, and the folios to be read, for the reader.
    pub(crate) fn take_reads(&mut self) -> (Vec<(u32, u32)>, Vec<FolioRead>) {
        (std::mem::take(&mut self.memory.reads), std::mem::take(&mut self.memory.folios.reads))
    }

    pub(super) fn serve_waiting(&mut self, page: u32) {
        if let Some(write) = self.waiting.remove(page) {
            self.serve_now(page, write);
        }
    }

    /// After a step of reclaim, by any thread: where faults wait for a frame and nothing is on
    /// its way out, again and again, a pool before a file is asked for memory. Background reclaim
    /// may go on for long before it finds that there is nothing.
    pub(crate) fn note_step(&mut self) {
        let m = &self.memory;
        let under_way =
            m.count(State::Staged) > self.standby_pages || m.count(State::Writing) > 0 || !m.leaving.is_empty();
        let moved = m.counts.swapped_out + m.counts.swapped_in;
        if self.waiting_for_frame.is_empty() || under_way || moved != self.fruitless.1 {
            self.fruitless = (0, moved);
            return;
        }
        self.fruitless.0 += 1;
        // Where swap is used up, more steps would find no more.
        let used_up = self.engine.swap_used_pages() as usize >= self.limits.swap_max / crate::uffd::PAGE;
        if self.fruitless.0 >= if used_up { 1 } else { ROOM_STEPS } {
            self.fruitless.0 = 0;
            m.area.ask_for_room();
        }
    }

    /// Faults that found no frame try again. Without anyone who makes room, they reclaim for
    /// themselves.
    pub(crate) fn retry_waiting(&mut self) {
        for (fault, is_late) in self.waiting_for_frame.take(self.now_ns, self.stall_limit_ns) {
            match is_late {
                true => self.poison(fault.page, "there was no room for it for too long"),
                false => self.serve(fault, !self.memory.kswapd_awake),
            }
        }
    }

    /// Whether any fault waits for a frame.
    pub(crate) fn is_waiting_for_frame(&self) -> bool {
        !self.waiting_for_frame.is_empty()
    }

    /// Whether a fault on the page has to wait. Then someone who is at work serves it.
    pub(crate) fn is_awaited(&mut self, page: u32, write: bool) -> bool {
        if self.memory.state(page).is_moving() {
            // The page may have come, and be on its way out again.
            self.waiting.add(page, write);
            return true;
        }
        self.waiting_for_frame.contains(page) || self.memory.high.is_asleep(&page)
    }

    /// Whether somebody who waits for the page will be woken by someone who knows of it.
    #[cfg(test)]
    pub(super) fn is_known_to_wait(&self, page: u32) -> bool {
        self.waiting.pages().any(|p| p == page)
            || self.waiting_for_frame.contains(page)
            || self.memory.high.is_asleep(&page)
    }

    /// Orders out what was charged beyond `memory.high`, or frees what was written of it.
    pub(crate) fn reclaim_high(&mut self) {
        self.memory.high.most_leaving = MOST_LEAVING;
        self.engine.reclaim_over_high(&mut self.memory);
        self.memory.high.most_leaving = usize::MAX;
    }

    /// Lets the threads go on whose faults were served; they wait if their group is above
    /// `memory.high`.
    pub(crate) fn release_held(&mut self) {
        if self.engine.is_over_high() {
            self.memory.high.most_leaving = MOST_LEAVING;
            self.engine.return_to_user(&mut self.memory);
            self.memory.high.most_leaving = usize::MAX;
        }
        match self.memory.high.release(self.now_ns) {
            Released::Now(pages) => pages.into_iter().for_each(|p| self.wake(p)),
            Released::Later(n, ns) => {
                self.memory.counts.throttled += n;
                self.memory.counts.throttled_ns += ns;
            }
        }
    }

    /// Lets threads go on whose sleep is over. Returns the nanoseconds until the next sleep ends.
    pub(crate) fn wake_sleepers(&mut self) -> Option<u64> {
        for pages in self.memory.high.take_due(self.now_ns) {
            self.engine.throttle_ended(ThrottleReason::High);
            pages.into_iter().for_each(|p| self.wake(p));
        }
        self.memory.high.next(self.now_ns)
    }

    /// Lets all sleeping threads go on: a limit was changed.
    pub(super) fn wake_all_sleepers(&mut self) {
        self.memory.high.end_all();
        self.wake_sleepers();
    }
}
