//! The engine with the pages of a file: what a fault, a read and a write lead to.

use std::ops::Range;

use crate::control::CpuLatencyQosStats;
use fixedbitset::FixedBitSet;
use refault_mm::{Engine, MemcgId, Outcome, PageId, Touch};

use super::memory::{Memory, State};
use super::stats::FileStats;
use crate::core::{
    Budget, EvictorCore, Fault, MAX_MESSAGES, Operations, Waiting, WaitingForFrame, engine_bytes, kswapd_step,
    used_pages,
};
use crate::evict::LockedCore;

pub(super) struct Core<O> {
    pub(super) engine: Engine,
    pub(super) memory: Memory<O>,
    /// The memcg of the file.
    pub(super) group: MemcgId,
    /// The first error of writing since the last flush told of one.
    pub(super) write_error: Option<std::io::Error>,
    /// Pages that were written and are not known to be on the medium: no `fdatasync` that began
    /// later went well.
    pub(super) unsynced: FixedBitSet,
    /// Pages that left memory before a `fdatasync` failed that was to bring them to the medium.
    /// Nobody can write them again.
    pub(super) uncertain: u64,
    pub(super) budget: Budget,
    /// When time last went on, in nanoseconds since it began.
    pub(super) now_ns: u64,
    /// Nanoseconds without room after which a fault ends in an error.
    pub(super) stall_limit_ns: u64,
    /// Faults on pages that are on their way, and whether any fault on the page is a write.
    waiting: Waiting,
    waiting_for_frame: WaitingForFrame,
}

impl<O: Operations> Core<O> {
    pub(super) fn new(engine: Engine, memory: Memory<O>, group: MemcgId, fixed_bytes: usize) -> Core<O> {
        Core {
            budget: Budget::new(&engine, fixed_bytes),
            engine,
            unsynced: FixedBitSet::with_capacity(memory.len()),
            memory,
            group,
            write_error: None,
            uncertain: 0,
            now_ns: 0,
            stall_limit_ns: u64::MAX,
            waiting: Waiting::default(),
            waiting_for_frame: WaitingForFrame::default(),
        }
    }

    /// Time goes on.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        debug_assert!(now_ns >= self.now_ns, "time goes on, from {} to {now_ns}", self.now_ns);
        self.now_ns = now_ns;
        self.engine.set_now_ns(now_ns);
    }

    /// Someone touched a page that is not in place, or wrote to one that is protected.
    pub(super) fn fault(&mut self, page: u32, write: bool) {
        self.memory.counts.faults += 1;
        self.serve_now(page, write);
    }

    fn serve_now(&mut self, page: u32, write: bool) {
        self.serve(Fault { page, write, since_ns: self.now_ns }, false);
    }

    /// `forced`: even if there is next to no room.
    fn serve(&mut self, fault: Fault, forced: bool) {
        let Fault { page, write, .. } = fault;
        match self.memory.state(page) {
            // A thread that tries again gets the signal.
            State::Lost => self.wake(page),
            State::Reading => self.waiting.add(page, write),
            State::Writing if write => self.waiting.add(page, write),
            State::Absent if !forced && self.is_short() => self.wait_for_frame(fault),
            State::Absent => self.touch(fault),
            state @ (State::Clean | State::Dirty) if write => {
                self.memory.counts.dirtied += u64::from(state == State::Clean);
                self.touch(fault);
            }
            State::Clean | State::Dirty | State::Writing => self.wake_present(page),
        }
        self.budget.note_peak(&self.engine);
    }

    fn wait_for_frame(&mut self, fault: Fault) {
        self.memory.counts.starved += 1;
        self.waiting_for_frame.add(fault);
    }

    /// Reclaim is at work, and what is left is for it.
    fn is_short(&self) -> bool {
        self.budget.is_short(&self.engine, self.memory.kswapd_awake)
    }

    fn touch(&mut self, fault: Fault) {
        let outcome = self.access(fault);
        self.follow(fault, outcome);
    }

    /// Tells the engine of a touch.
    fn access(&mut self, Fault { page, write, .. }: Fault) -> Outcome {
        let touch = if write { Touch::MapWrite } else { Touch::MapRead };
        self.engine.access(&mut self.memory, PageId(page), touch)
    }

    /// Decides how the thread that touched the page goes on.
    fn follow(&mut self, fault: Fault, outcome: Outcome) {
        let Fault { page, write, .. } = fault;
        match outcome {
            Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh => {
                let there = match self.memory.state(page) {
                    State::Clean | State::Writing => !write,
                    State::Dirty | State::Lost => true,
                    State::Absent | State::Reading => false,
                };
                if !there {
                    self.memory.unplaced.insert(page);
                    self.lose(page, "the kernel could not put it in its place");
                }
            }
            Outcome::Waiting => self.waiting.add(page, write),
            Outcome::Throttled => self.wait_for_frame(fault),
            Outcome::Failed => self.lose(page, "it could not be read"),
            Outcome::Oom(_) => self.lose(page, "there is no room for it, and nothing to reclaim"),
        }
    }

    fn touch_now(&mut self, page: u32, write: bool) {
        self.touch(Fault { page, write, since_ns: self.now_ns });
    }

    /// Brings a page in that nobody waits for. False: there is no room.
    pub(super) fn bring(&mut self, page: u32) -> bool {
        if self.memory.state(page) != State::Absent {
            return true;
        }
        if self.is_short() {
            return false;
        }
        match self.engine.access(&mut self.memory, PageId(page), Touch::MapRead) {
            Outcome::Throttled | Outcome::Failed | Outcome::Oom(_) => return false,
            _ => {}
        }
        true
    }

    /// A fault on a page that is in place: it was served meanwhile. If it is not there after all,
    /// someone changed the mapping behind the pager, and what was there is lost.
    fn wake_present(&mut self, page: u32) {
        match self.memory.ops.is_present(page) {
            true => self.wake(page),
            false => self.lose(page, "its memory was changed by madvise, mremap or munmap"),
        }
    }

    fn wake(&self, page: u32) {
        self.memory.ops.wake(page);
    }

    /// The page cannot be had: the thread that touches it gets a signal.
    fn lose(&mut self, page: u32, why: &str) {
        self.memory.counts.lost += 1;
        if self.memory.state(page).is_present() {
            self.memory.ops.fatal("a page of a file is in place and cannot be used");
        }
        self.memory.set_state(page, State::Lost);
        let is_said = self.memory.counts.lost <= MAX_MESSAGES;
        self.memory.ops.poison(page, is_said.then_some(why));
        self.wake(page);
    }

    /// A page was read, to that place of the buffer, or could not be.
    pub(super) fn arrive(&mut self, page: u32, content: Result<usize, String>) {
        let id = PageId(page);
        let waiting = self.waiting.remove(page);
        match content {
            Ok(content) => {
                self.memory.counts.reads += 1;
                self.engine.read_done(&mut self.memory, id, true);
                self.memory.arrived = Some((page, content));
                self.place(page, waiting);
                self.memory.arrived = None;
            }
            // It was read ahead. A thread that needs it may have better luck.
            Err(_) if waiting.is_none() => {
                self.memory.set_state(page, State::Absent);
                self.engine.read_done(&mut self.memory, id, false);
            }
            Err(e) => {
                self.memory.counts.read_errors += 1;
                self.engine.read_done(&mut self.memory, id, false);
                self.lose(page, &e);
            }
        }
    }

    /// Maps a page whose content is here. That may take a page table, and reclaim for it may take
    /// the page itself, which is then read again, or find no room. `waiting`: a thread waits for
    /// the page; true: to write to it.
    fn place(&mut self, page: u32, waiting: Option<bool>) {
        let fault = Fault { page, write: waiting.unwrap_or(false), since_ns: self.now_ns };
        let outcome = self.access(fault);
        let has_no_room = matches!(outcome, Outcome::Throttled | Outcome::Oom(_));
        if has_no_room && self.memory.state(page) == State::Reading {
            // The content is not kept, so the engine must not take the page for one in memory.
            self.engine.page_out(&mut self.memory, PageId(page), 1);
        }
        let is_mapped = !has_no_room && outcome != Outcome::Waiting;
        if is_mapped || waiting.is_some() {
            self.follow(fault, outcome);
        }
    }

    /// Pages to be written now, side by side in the file and in memory. Nobody can write to them
    /// until [`Core::settle_writes`].
    pub(super) fn claim_writes(&mut self, most: usize) -> Vec<u32> {
        let n = self.memory.writes.len().min(most);
        let mut pages: Vec<u32> = self.memory.writes.drain(..n).collect();
        pages.sort_unstable();
        let run = pages.windows(2).take_while(|w| w[1] == w[0] + 1).count() + 1;
        // The others first, next time.
        for page in pages.drain(run.min(pages.len())..).rev() {
            self.memory.writes.push_front(page);
        }
        pages
    }

    /// Books the results of writes.
    pub(super) fn settle_writes(&mut self, pages: &[u32], result: std::io::Result<()>) {
        self.memory.counts.write_calls += 1;
        let ok = result.is_ok();
        if let Err(e) = result {
            self.memory.counts.write_errors += pages.len() as u64;
            self.write_error.get_or_insert(e);
        } else {
            self.memory.counts.writes += pages.len() as u64;
            self.unsynced.extend(pages.iter().map(|&page| page as usize));
        }
        for &page in pages {
            self.memory.written(page, ok);
            self.engine.write_done(&mut self.memory, PageId(page), ok);
            if let Some(write) = self.waiting.remove(page) {
                self.serve_now(page, write);
            }
        }
    }

    /// The pages that a `fdatasync` which begins now is to bring to the medium.
    pub(super) fn take_unsynced(&mut self) -> FixedBitSet {
        let none = FixedBitSet::with_capacity(self.unsynced.len());
        std::mem::replace(&mut self.unsynced, none)
    }

    /// `fdatasync` failed. The kernel takes what it could not write for written, so the next one
    /// may go well without it: what was written before is dirty again. Pages that are not in memory
    /// any more cannot be written again, and so are not known to be on the medium.
    pub(super) fn sync_failed(&mut self, pages: &FixedBitSet) {
        for page in pages.ones().map(|page| page as u32) {
            if self.memory.state(page) == State::Clean {
                self.touch_now(page, true);
            }
            // Dirty: it is written again. Writing: it is being written again, and synced after
            // that.
            let again = matches!(self.memory.state(page), State::Dirty | State::Writing);
            self.uncertain += u64::from(!again);
        }
    }

    /// Pages that were lost can be read again. How many there were.
    pub(super) fn forget_lost(&mut self, pages: Range<u32>) -> std::io::Result<u64> {
        let mut n = 0;
        for page in pages {
            if self.memory.state(page) != State::Lost {
                continue;
            }
            if self.memory.unplaced.contains(&page) && !self.forget_unplaced(page) {
                continue;
            }
            // Nothing is there but the mark of a page that is lost.
            self.memory.ops.discard(page, 1)?;
            self.memory.set_state(page, State::Absent);
            n += 1;
        }
        Ok(n)
    }

    /// A page that was read and could not be put in its place is in memory, mapped and perhaps
    /// dirty, for all that the engine knows. Whether it is that no more.
    fn forget_unplaced(&mut self, page: u32) -> bool {
        // A dirty page goes only when it is written; there is nothing to be written.
        self.engine.write_page(&mut self.memory, PageId(page));
        self.engine.page_out(&mut self.memory, PageId(page), 1);
        let is_gone = !self.engine.is_resident(PageId(page));
        is_gone && self.memory.unplaced.remove(&page)
    }

    /// One step of background reclaim, and of the flusher.
    pub(super) fn step(&mut self) {
        self.engine.flush_expired(&mut self.memory);
        if std::mem::take(&mut self.memory.flusher_due) {
            self.engine.flush(&mut self.memory);
        }
        if self.memory.kswapd_awake {
            self.memory.kswapd_awake = kswapd_step(&mut self.engine, &mut self.memory);
        }
    }

    /// Faults that found no frame try again.
    pub(super) fn retry_waiting(&mut self) {
        for (fault, is_late) in self.waiting_for_frame.take(self.now_ns, self.stall_limit_ns) {
            match is_late {
                true => self.lose(fault.page, "there was no room for it for too long"),
                false => self.serve(fault, !self.memory.kswapd_awake),
            }
        }
    }

    /// Whether somebody who waits for the page will be woken by someone who knows of it.
    #[cfg(test)]
    pub(super) fn is_known_to_wait(&self, page: u32) -> bool {
        self.waiting.pages().any(|p| p == page) || self.waiting_for_frame.contains(page)
    }

    /// Whether the writer has anything to do.
    pub(super) fn has_work(&self) -> bool {
        let m = &self.memory;
        m.kswapd_awake || m.flusher_due || !m.writes.is_empty() || !self.waiting_for_frame.is_empty()
    }

    /// Charges the memory that the pager takes.
    pub(super) fn charge_overhead(&mut self) {
        let bytes = self.own_bytes();
        self.budget.charge(&mut self.engine, None, bytes);
    }

    pub(super) fn own_bytes(&self) -> usize {
        // While it is synced, what is written meanwhile is noted in another set.
        let unsynced = 2 * self.unsynced.len() / 8;
        self.budget.fixed_bytes + engine_bytes(&self.engine) + self.memory.table_bytes() + unsynced
    }

    pub(super) fn stats(&self) -> FileStats {
        FileStats {
            counts: self.memory.counts,
            max_pages: self.budget.max_pages,
            memory_pages: used_pages(&self.engine),
            peak_pages: self.budget.peak_pages,
            own_bytes: self.own_bytes() as u64,
            dirty_pages: self.memory.dirty.len() as u64,
            writeback_pages: self.memory.writing.len() as u64,
            awake: CpuLatencyQosStats::default(),
            vmstat: self.engine.vmstat().iter().collect(),
        }
    }

    /// Checks the invariants of the engine, and that states, lists and page tables agree. `there`:
    /// whether the page tables have each page.
    pub(super) fn validate(&self, there: &[bool]) -> Result<(), String> {
        self.engine.validate()?;
        let m = &self.memory;
        let count = |state: State| m.states().iter().filter(|&&s| s == state).count();
        for (state, listed) in [(State::Dirty, &m.dirty), (State::Writing, &m.writing)] {
            if count(state) != listed.len() || !listed.iter().all(|&p| m.state(p) == state) {
                return Err(format!("{} pages are {state:?}, {} listed", count(state), listed.len()));
            }
        }
        for (page, (&state, &there)) in m.states().iter().zip(there).enumerate() {
            // A page that is lost has a mark in the page tables.
            if state.is_present() != there && state != State::Lost {
                return Err(format!("page {page} is {state:?}; in the page tables: {there}"));
            }
        }
        match m.counts.inconsistent {
            0 => Ok(()),
            n => Err(format!("{n} orders did not fit the state of their page")),
        }
    }
}

impl<O: Operations> LockedCore for Core<O> {
    type EvictorCore = Self;

    fn set_now(&mut self, now_ns: u64) {
        Core::set_now(self, now_ns);
    }

    fn evictor_core(&mut self) -> &mut Self {
        self
    }

    fn charge_overhead(&mut self) {
        Core::charge_overhead(self);
    }
}

impl<O: Operations> EvictorCore for Core<O> {
    /// Nobody sleeps for having taken too much.
    fn wake_sleepers(&mut self) -> Option<u64> {
        None
    }

    fn has_work(&self, _alone: bool) -> bool {
        Core::has_work(self)
    }

    fn reclaims(&self) -> bool {
        true
    }

    fn is_waiting_for_frame(&self) -> bool {
        !self.waiting_for_frame.is_empty()
    }

    fn sleeps(&mut self) {}

    /// Pages that are old by now are to be written.
    fn woke(&mut self) -> bool {
        self.step();
        false
    }
}
