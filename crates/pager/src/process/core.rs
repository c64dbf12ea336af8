//! The engine with the memory of processes: what a fault, a read and a write lead to.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use refault_mm::{Advice, Engine, MappingId, MappingKind, MemcgId, Outcome, PageId, Touch};

use super::address_space::AddressSpace;
use super::memory::Memory;
use super::no_progress::NoProgress;
use super::page_table::BLOCK;
use super::pressure::Pressure;
use super::recent_swap_ins::RecentSwapIns;
use super::share::Sharing;
use super::unlimited::UnlimitedMemory;
use super::wake::{Wakes, wake_at};
use crate::core::{Budget, State};
use crate::store::{PageBuf, StoreError};
use crate::uffd::{Fault, PAGE, Uffd};

/// A fault that was not served yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// The number of the process.
    pub(super) space: usize,
    pub(super) address: usize,
    pub(super) write: bool,
    pub(super) since_ns: u64,
}

pub(super) struct Core {
    pub(super) engine: Engine,
    pub(super) memory: Memory,
    pub(super) spaces: Vec<Option<AddressSpace>>,
    pub(super) group: MemcgId,
    /// Mappings of the engine by their first page, and blocks that no process has.
    mappings: HashMap<u32, MappingId>,
    pub(super) free_blocks: Vec<u32>,
    /// Blocks of processes that are gone, with pages that are still being read or written.
    pub(super) draining: Vec<u32>,
    pub(super) pending: VecDeque<Pending>,
    /// Faults on pages that are between two states, by page.
    pub(super) waiting: HashMap<u32, Pending>,
    pub(super) waiting_for_frame: Vec<Pending>,
    /// Faults of processes whose mappings are changing.
    pub(super) unsettled: Vec<Pending>,
    /// Threads that ask about memory that they have made: their processes, and the pages that they
    /// touched for it.
    pub(super) asked: Vec<(usize, usize)>,
    /// Threads that faulted, as it was read, with the numbers of their processes.
    pub(super) threads: Vec<(usize, u32)>,
    /// Processes whose descriptors no thread waits for yet.
    pub(super) is_new: Vec<usize>,
    /// Processes that have not answered an order in time, or have now.
    pub(super) changed_answers: Vec<usize>,
    /// Number of times that a process had not answered an order in time.
    pub(super) unanswered: u64,
    /// The process whose bell rang last.
    pub(super) last_bell: Option<usize>,
    /// The evictor waits to be told that there is work.
    pub(super) evictor_waits: bool,
    /// When time last went on, in nanoseconds since it began.
    pub(super) now_ns: u64,
    pub(super) stall_limit_ns: u64,
    pub(super) budget: Budget,
    pub(super) low_mark: u64,
    pub(super) high_mark: u64,
    /// Pages of the engine that stand for memory it does not know of, and how many more there
    /// should be.
    pub(super) taken: u64,
    pub(super) uncharged: u64,
    pub(super) progress: NoProgress,
    /// Pages that stay while the store is full.
    pub(super) recent_swap_ins: RecentSwapIns,
    pub(super) has_swap_file: bool,
    pub(super) failed_writes: u64,
    /// The most pages of anonymous memory that the processes had at one time, as the kernel counts
    /// them.
    pub(super) peak_resident: u64,
    /// The same with pages on their way out, the pool and the pager.
    pub(super) peak_taken: u64,
    /// Memory that processes share since a fork.
    pub(super) sharing: Sharing,
    /// Memory that is not limited.
    pub(super) unlimited: UnlimitedMemory,
    /// The most bytes of tables, and of how many pages they were then.
    pub(super) peak_tables: (u64, u64),
    /// Processes that were killed because there was no room for them.
    pub(super) killed: u64,
    pub(super) peak_swap: u64,
    pub(super) peak_pool_bytes: u64,
    pub(super) peak_file: u64,
    /// `memory.swap.max`, in pages.
    pub(super) swap_pages: u64,
    /// `memory.high`, in pages, if there is one.
    pub(super) high_pages: Option<u64>,
    /// Nanoseconds that threads waited for pages that had been in memory before, or for room.
    pub(super) stall_ns: u64,
    /// Times since which threads waited that were served since time last went on, in nanoseconds.
    pub(super) served: Vec<u64>,
    /// The share of time that is lost to it.
    pub(super) pressure: Pressure,
    /// Times that a process was forked with pages out of memory or not, and that one began.
    pub(super) forks: u64,
    pub(super) processes: u64,
    /// Processes whose C library could not be caught: what they make is found, not told.
    pub(super) uncaught: u64,
    /// Functions that were not caught in any of them: bits of [`super::abi::CAUGHT_ALL`].
    pub(super) missed: u32,
    /// Times that a thread asked about memory that it had made.
    pub(super) asks: u64,
    /// Batches of changes whose order could not be told, and pages with content but without a
    /// place: there should be none.
    pub(super) undecided: u64,
    /// Batches of changes that were dealt with.
    pub(super) batches: u64,
    pub(super) strays: u64,
    /// Pages that are marked although nothing is known that should be there, and since when.
    pub(super) unexplained_marks: HashMap<(usize, usize), u64>,
    /// The last round of the evictor moved nothing out.
    pub(super) was_fruitless: bool,
    /// Threads that were served, and are not woken yet.
    pub(super) wakes: Wakes,
}

impl Core {
    pub(super) fn new(engine: Engine, group: MemcgId, memory: Memory, fixed_bytes: usize) -> Core {
        let low_mark = engine.zones().map(|(.., marks)| marks.low).sum();
        let high_mark = engine.zones().map(|(.., marks)| marks.high).sum();
        Core {
            budget: Budget::new(&engine, fixed_bytes),
            engine,
            memory,
            spaces: Vec::new(),
            group,
            mappings: HashMap::new(),
            free_blocks: Vec::new(),
            draining: Vec::new(),
            pending: VecDeque::new(),
            waiting: HashMap::new(),
            waiting_for_frame: Vec::new(),
            unsettled: Vec::new(),
            asked: Vec::new(),
            threads: Vec::new(),
            is_new: Vec::new(),
            changed_answers: Vec::new(),
            unanswered: 0,
            last_bell: None,
            evictor_waits: false,
            now_ns: 0,
            stall_limit_ns: u64::MAX,
            low_mark,
            high_mark,
            taken: 0,
            uncharged: 0,
            progress: NoProgress::default(),
            recent_swap_ins: RecentSwapIns::default(),
            has_swap_file: false,
            failed_writes: 0,
            peak_resident: 0,
            peak_taken: 0,
            sharing: Sharing::default(),
            unlimited: UnlimitedMemory::default(),
            peak_tables: (0, 0),
            killed: 0,
            peak_swap: 0,
            peak_pool_bytes: 0,
            peak_file: 0,
            swap_pages: 0,
            high_pages: None,
            stall_ns: 0,
            served: Vec::new(),
            pressure: Pressure::new(),
            forks: 0,
            processes: 0,
            uncaught: 0,
            missed: 0,
            asks: 0,
            undecided: 0,
            batches: 0,
            strays: 0,
            unexplained_marks: HashMap::new(),
            was_fruitless: false,
            wakes: Wakes::default(),
        }
    }

    /// Time goes on.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        debug_assert!(now_ns >= self.now_ns, "time goes on, from {} to {now_ns}", self.now_ns);
        self.now_ns = now_ns;
        self.engine.set_now_ns(now_ns);
        self.memory.written.forget_asked();
        self.stall_ns += self.served.drain(..).map(|since_ns| now_ns - since_ns).sum::<u64>();
        self.memory.look_for_record(now_ns);
        self.note_pressure();
    }

    pub(super) fn space(&self, space: usize) -> Option<&AddressSpace> {
        self.spaces.get(space).and_then(|s| s.as_ref())
    }

    pub(super) fn space_mut(&mut self, space: usize) -> Option<&mut AddressSpace> {
        self.spaces.get_mut(space).and_then(|s| s.as_mut())
    }

    pub(super) fn uffd(&self, space: usize) -> Option<Arc<Uffd>> {
        self.space(space).map(|s| s.uffd.clone())
    }

    /// The engine's page at an address of a process; there is one from now on. `None`: the process
    /// is gone, or is to go, for there is no room for tables.
    pub(super) fn page_at(&mut self, space: usize, address: usize) -> Option<u32> {
        if let Some(page) = self.space(space)?.table.get(address) {
            return Some(page);
        }
        if self.free_blocks.is_empty() && !self.has_room_for_tables() {
            self.out_of_tables(space);
            return None;
        }
        self.new_page_at(space, address)
    }

    /// As [`Core::page_at`], whatever room there is.
    pub(super) fn new_page_at(&mut self, space: usize, address: usize) -> Option<u32> {
        let first = match self.free_blocks.pop() {
            Some(first) => first,
            None => {
                let made = self.engine.add_mapping(MappingKind::Anon, self.group, 0..BLOCK as u64);
                let (mapping, first) = made.ok()?;
                self.mappings.insert(first.0, mapping);
                self.memory.grow(first.index() + BLOCK);
                first.0
            }
        };
        let s = self.spaces[space].as_mut()?;
        let base = s.table.insert(address, first);
        s.blocks.push(first);
        for i in 0..BLOCK {
            let page = first as usize + i;
            self.memory.page_counts.owner[page] = space as u32;
            self.memory.address[page] = base + i * PAGE;
            self.memory.may_be_discarded[page] = false;
        }
        Some(first + (address / PAGE % BLOCK) as u32)
    }

    /// Changes of its mappings were read that are not dealt with.
    pub(super) fn has_batch(&self, space: usize) -> bool {
        self.space(space).is_some_and(|s| !s.batch.is_empty())
    }

    /// Serves what was read from the descriptors.
    pub(super) fn serve_pending(&mut self) {
        // Nothing else may come that would have a batch dealt with: the thread that waits for it
        // may wait for the manager.
        for index in 0..self.spaces.len() {
            if self.has_batch(index) {
                self.settle(index);
            }
        }
        self.serve_asked();
        for p in std::mem::take(&mut self.unsettled) {
            self.serve(p, false);
        }
        while let Some(p) = self.pending.pop_front() {
            self.memory.counts.faults += 1;
            // Pages that are about to be written are at hand, too.
            let at_hand = self.memory.all_resident() + self.memory.count(State::Staged);
            let has_begun = self.memory.counts.moved_out > 0;
            if let Some(r) = &mut self.memory.recorder {
                r.touch(p.since_ns, p.space, p.address, p.write);
                if has_begun {
                    r.fault_beside(at_hand);
                }
            }
            self.serve(p, false);
        }
        self.note_pressure();
    }

    /// Threads that wait for a page that was in memory before, for room, or because of
    /// `memory.high`. Threads that wait for the same page are one.
    pub(super) fn stalled(&self) -> usize {
        self.waiting.len() + self.waiting_for_frame.len() + self.memory.high.sleeping()
    }

    /// `forced`: even if there is next to no room.
    pub(super) fn serve(&mut self, p: Pending, forced: bool) {
        if self.holds_fault(p) {
            return;
        }
        // A change that has happened and was not read yet has the kernel refuse whatever is done to
        // the page.
        if self.has_batch(p.space) && !self.settle(p.space) {
            return self.unsettled.push(p);
        }
        let Some(s) = self.space(p.space) else { return };
        if s.is_undecided {
            // It may not have been known when it was condemned, and waits.
            return self.kill(p.space);
        }
        let Some(page) = self.page_at(p.space, p.address) else { return };
        let state = self.memory.state(page);
        match state {
            State::Mapped | State::Leaving => self.refill(page, p),
            State::Poisoned => self.mark_poisoned(page),
            State::Writing | State::Reading => self.wait_for(page, p),
            State::CowSwap if self.was_wiped(page, p) => self.serve(p, forced),
            // Memory that a process takes to become known has others make room.
            State::Empty | State::Stored | State::CowSwap
                if !forced && self.is_short() && !self.is_newborn(p.space) =>
            {
                self.waiting_for_frame.push(p);
            }
            State::CowSwap => self.serve_cow_swap(page, p),
            _ => {
                if state == State::Staged {
                    self.engine.write_cancelled(&mut self.memory, PageId(page));
                }
                self.touch(page, p);
                match state {
                    State::Staged | State::Written => {
                        self.memory.counts.rescued += 1;
                        self.engine.advise(PageId(page), Advice::InUse);
                        self.served.push(p.since_ns);
                    }
                    State::Empty if self.memory.state(page) == State::Mapped => {
                        self.memory.counts.first_touches += 1;
                        self.fill_ahead(p);
                    }
                    _ => {}
                }
            }
        }
        self.note_peak();
    }

    fn wait_for(&mut self, page: u32, p: Pending) {
        let known = self.waiting.entry(page).or_insert(p);
        known.write |= p.write;
    }

    /// Tells the engine of a touch, and does what it orders.
    pub(super) fn touch(&mut self, page: u32, p: Pending) {
        self.memory.write = p.write;
        let touch = if p.write { Touch::MapWrite } else { Touch::MapRead };
        let outcome = self.engine.access(&mut self.memory, PageId(page), touch);
        self.fill_all(p);
        match outcome {
            Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh => {}
            Outcome::Waiting => self.wait_for(page, p),
            // A fault for which the engine finds nothing to reclaim may find room when what is on
            // its way has gone.
            Outcome::Throttled | Outcome::Oom(_) => self.waiting_for_frame.push(p),
            Outcome::Failed => self.poison(page, "it could not be read"),
        }
    }

    pub(super) fn wake(&self, page: u32) {
        if let Some(uffd) = self.uffd(self.memory.owner(page)) {
            wake_at(&uffd, self.memory.address[page as usize], PAGE);
        }
    }

    pub(super) fn wake_at(&self, p: Pending) {
        if let Some(uffd) = self.uffd(p.space) {
            wake_at(&uffd, p.address, PAGE);
        }
    }

    /// Drops the content of this page, which is of no use any more.
    pub(super) fn drop_page(&mut self, page: u32) {
        let (id, state) = (PageId(page), self.memory.state(page));
        match state {
            State::Empty => return,
            State::Writing | State::Reading => {
                self.memory.dropped[page as usize] = true;
                return self.engine.zap_range(&mut self.memory, id, 1);
            }
            State::CowSwap => self.end_cow_swap(page),
            State::Leaving => {
                self.memory.set_state(page, State::Empty);
                self.engine.write_cancelled(&mut self.memory, id);
            }
            State::Staged => self.engine.write_cancelled(&mut self.memory, id),
            State::Mapped | State::Written | State::Stored | State::Poisoned => {}
        }
        self.memory.dropping = true;
        self.engine.zap_range(&mut self.memory, id, 1);
        self.memory.dropping = false;
        match self.memory.state(page) {
            State::Staged | State::Written => self.memory.leave_place(page, State::Empty),
            _ => self.memory.set_state(page, State::Empty),
        }
    }

    /// A page was read, or could not be.
    pub(super) fn arrive(&mut self, page: u32, content: Result<Box<PageBuf>, StoreError>) {
        let Some(content) = self.holds_read(page, content) else { return };
        let id = PageId(page);
        if std::mem::take(&mut self.memory.dropped[page as usize]) {
            self.memory.set_state(page, State::Empty);
            self.engine.read_done(&mut self.memory, id, true);
            return self.serve_waiting(page);
        }
        let waiter = self.waiting.remove(&page);
        match content {
            Ok(content) => {
                self.memory.counts.swapped_in += 1;
                self.recent_swap_ins.push(page, self.now_ns);
                self.engine.read_done(&mut self.memory, id, true);
                self.memory.arrived = Some(content);
                let p = waiter.unwrap_or_else(|| self.unasked(page));
                if waiter.is_none()
                    && let Some(r) = &mut self.memory.recorder
                {
                    // It is among those that came back, so a record without it would have more hits
                    // than the run.
                    r.touch(p.since_ns, p.space, p.address, false);
                }
                self.touch(page, p);
                self.memory.arrived = None;
                if waiter.is_none() {
                    // Nobody has touched it yet.
                    self.memory.young[page as usize] = false;
                }
                self.served.push(p.since_ns);
                if waiter.is_some() {
                    self.memory.area.fault_served(self.now_ns - p.since_ns);
                }
            }
            // It was read ahead. A thread that needs it may have better luck.
            Err(_) if waiter.is_none() => {
                self.memory.set_state(page, State::Stored);
                self.engine.read_done(&mut self.memory, id, false);
            }
            Err(e) => {
                self.memory.counts.read_errors += 1;
                self.engine.read_done(&mut self.memory, id, false);
                self.poison(page, &format!("reading it from swap: {e}"));
            }
        }
        self.note_pressure();
    }

    /// A touch that nobody waits for.
    pub(super) fn unasked(&self, page: u32) -> Pending {
        let (space, address) = self.memory.place_of(page);
        Pending { space, address, write: false, since_ns: self.now_ns }
    }

    /// A page that was to go stays in place. The engine learns of it as of a touch.
    pub(super) fn stay(&mut self, page: u32) {
        self.memory.set_state(page, State::Mapped);
        self.engine.write_cancelled(&mut self.memory, PageId(page));
        let p = self.unasked(page);
        self.touch(page, p);
    }

    pub(super) fn serve_waiting(&mut self, page: u32) {
        if let Some(p) = self.waiting.remove(&page) {
            // The page may have moved; who waited where it was was woken then.
            let address = self.memory.address[page as usize];
            self.serve(Pending { address, ..p }, false);
        }
    }

    /// Whether the evictor has anything to do.
    pub(super) fn has_work(&self) -> bool {
        let m = &self.memory;
        m.kswapd_awake
            || !m.leaving.is_empty()
            || m.count(State::Staged) > 0
            || m.has_discards()
            || !self.waiting_for_frame.is_empty()
            || !self.unsettled.is_empty()
            || !self.asked.is_empty()
            || (0..self.spaces.len()).any(|index| self.has_batch(index))
            || !m.to_mark.is_empty()
            || self.memory.high.new_sleepers
            || m.area.wants_tending()
            || self.missing() > 0
    }

    /// A fault that was read.
    pub(super) fn push(&mut self, space: usize, fault: Fault) {
        self.threads.push((space, fault.thread));
        if let Some(s) = self.space_mut(space).filter(|s| s.pid == 0) {
            s.toucher = fault.thread as i32;
        }
        if self.space(space).is_some_and(|s| s.calls.contains(&fault.address)) {
            return self.asked.push((space, fault.address));
        }
        self.pending.push_back(Pending { space, address: fault.address, write: fault.write, since_ns: self.now_ns });
    }
}
