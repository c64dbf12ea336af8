//! The engine with the pages of a file: what a fault, a read and a write lead to.

use std::ops::Range;
use std::time::{Duration, Instant};

use fixedbitset::FixedBitSet;
use refault_mm::{CpuLatencyQosStats, Engine, KswapdStep, MemcgId, Outcome, PageId, Touch};

use super::stats::FileStats;
use super::world::{Memory, State};
use crate::calls;
use crate::pagemap::Pagemap;
use crate::threads::fatal;
use crate::uffd::PAGE;
use crate::waiting::{Starved, Waiting};

/// Messages about lost pages.
const MAX_MESSAGES: u64 = 16;

pub(super) struct Core {
    pub(super) engine: Engine,
    pub(super) memory: Memory,
    /// The memcg of the file.
    pub(super) group: MemcgId,
    /// The first error of writing since the last flush told of one.
    pub(super) write_error: Option<std::io::Error>,
    /// Pages that were written and are not known to be on the medium: no `fdatasync` that began later went well.
    pub(super) unsynced: FixedBitSet,
    /// Pages that left memory before a `fdatasync` failed that was to bring them to the medium. Nobody can write them again.
    pub(super) uncertain: u64,
    pagemap: Pagemap,
    started: Instant,
    pub(super) stall_limit: Duration,
    /// Faults on pages that are on their way, and whether one of them is a write.
    waiting: Waiting,
    starved: Vec<Starved>,
    pub(super) max_pages: u64,
    pub(super) min_mark: u64,
    peak_pages: u64,
    fixed_bytes: usize,
}

impl Core {
    pub(super) fn new(
        engine: Engine,
        memory: Memory,
        group: MemcgId,
        stall_limit: Duration,
        fixed_bytes: usize,
    ) -> std::io::Result<Core> {
        Ok(Core {
            max_pages: engine.managed_pages(),
            min_mark: engine.zones().map(|(.., marks)| marks.min).sum(),
            engine,
            unsynced: FixedBitSet::with_capacity(memory.state.len()),
            memory,
            group,
            write_error: None,
            uncertain: 0,
            pagemap: Pagemap::open()?,
            started: Instant::now(),
            stall_limit,
            waiting: Waiting::default(),
            starved: Vec::new(),
            peak_pages: 0,
            fixed_bytes,
        })
    }

    /// Time goes on.
    pub(super) fn tick(&mut self) {
        self.engine.set_now_ns(self.started.elapsed().as_nanos() as u64);
    }

    /// Someone touched a page that is not in place, or wrote to one that is protected.
    pub(super) fn fault(&mut self, page: u32, write: bool) {
        self.memory.counts.faults += 1;
        self.serve(page, write, Instant::now(), false);
    }

    /// `forced`: even if there is next to no room.
    fn serve(&mut self, page: u32, write: bool, since: Instant, forced: bool) {
        match self.memory.state[page as usize] {
            // Whoever tries again gets the signal.
            State::Lost => self.wake(page),
            State::Reading => self.waiting.add(page, write),
            State::Writing if write => self.waiting.add(page, write),
            State::Absent if !forced && self.is_short() => self.starve(page, write, since),
            State::Absent => self.touch(page, write, since),
            State::Clean | State::Dirty if write => {
                self.memory.counts.dirtied += u64::from(self.memory.state[page as usize] == State::Clean);
                self.touch(page, write, since);
            }
            State::Clean | State::Dirty | State::Writing => self.wake_present(page),
        }
        self.note_peak();
    }

    fn starve(&mut self, page: u32, write: bool, since: Instant) {
        self.memory.counts.starved += 1;
        self.starved.push(Starved { page, write, since });
    }

    /// Reclaim is at work, and what is left is for it.
    fn is_short(&self) -> bool {
        self.memory.kswapd_awake && self.engine.free_pages() <= self.min_mark
    }

    fn touch(&mut self, page: u32, write: bool, since: Instant) {
        let touch = if write { Touch::MapWrite } else { Touch::MapRead };
        match self.engine.access(&mut self.memory, PageId(page), touch) {
            Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh => {
                let there = match self.memory.state[page as usize] {
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
            Outcome::Throttled => self.starve(page, write, since),
            Outcome::Failed => self.lose(page, "it could not be read"),
            Outcome::Oom(_) => self.lose(page, "there is no room for it, and nothing to reclaim"),
        }
    }

    /// Brings a page in that nobody waits for. False: there is no room.
    pub(super) fn bring(&mut self, page: u32) -> bool {
        if self.memory.state[page as usize] != State::Absent {
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

    /// A fault on a page that is in place: it was served meanwhile. If it is not there after all, someone changed the mapping behind
    /// the pager, and what was there is lost.
    fn wake_present(&mut self, page: u32) {
        match self.pagemap.populated(self.memory.address(page), 1) {
            Ok(there) if there[0] => self.wake(page),
            Ok(_) => self.lose(page, "its memory was changed by madvise, mremap or munmap"),
            Err(e) => fatal(&format!("reading /proc/self/pagemap: {e}")),
        }
    }

    fn wake(&mut self, page: u32) {
        if let Err(e) = self.memory.uffd.wake(self.memory.address(page), PAGE) {
            // It would wait for ever.
            fatal(&format!("whoever waits for a page cannot be woken: {e}"));
        }
    }

    /// The page cannot be had: whoever touches it gets a signal.
    fn lose(&mut self, page: u32, why: &str) {
        let address = self.memory.address(page);
        self.memory.counts.lost += 1;
        if self.memory.counts.lost <= MAX_MESSAGES {
            eprintln!("refault: page {page} of the file that is mapped at {:#x} is lost: {why}", self.memory.start);
        }
        if matches!(self.memory.state[page as usize], State::Clean | State::Dirty | State::Writing) {
            fatal("a page of a file is in place and cannot be used");
        }
        self.memory.state[page as usize] = State::Lost;
        // SAFETY: the page is of the mapping, which is watched.
        if let Err(e) = unsafe { self.memory.uffd.poison_for_certain(address) } {
            // Whoever touches it would wait for ever.
            fatal(&format!("a page that is lost cannot be marked: {e}"));
        }
        self.wake(page);
    }

    /// A page was read, to that place of the buffer, or could not be.
    pub(super) fn arrive(&mut self, page: u32, content: Result<usize, String>) {
        let id = PageId(page);
        let waiting = self.waiting.remove(page);
        let write = waiting.unwrap_or(false);
        match content {
            Ok(content) => {
                self.memory.counts.reads += 1;
                self.engine.read_done(&mut self.memory, id, true);
                self.memory.arrived = Some(content);
                self.touch(page, write, Instant::now());
                self.memory.arrived = None;
            }
            // It was read ahead. Whoever needs it may have better luck.
            Err(_) if waiting.is_none() => {
                self.memory.state[page as usize] = State::Absent;
                self.engine.read_done(&mut self.memory, id, false);
            }
            Err(e) => {
                self.memory.counts.read_errors += 1;
                self.engine.read_done(&mut self.memory, id, false);
                self.lose(page, &e);
            }
        }
    }

    /// Pages to be written now, side by side in the file and in memory. Nobody can write to them until [`Core::settle_writes`].
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

    /// What became of them.
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
                self.serve(page, write, Instant::now(), false);
            }
        }
    }

    /// The pages that a `fdatasync` which begins now is to bring to the medium.
    pub(super) fn take_unsynced(&mut self) -> FixedBitSet {
        let none = FixedBitSet::with_capacity(self.unsynced.len());
        std::mem::replace(&mut self.unsynced, none)
    }

    /// `fdatasync` failed. The kernel takes what it could not write for written, so the next one may go well without it: what was written
    /// before is dirty again. What is not in memory any more cannot be written again, and so is not known to be on the medium.
    pub(super) fn sync_failed(&mut self, pages: &FixedBitSet) {
        self.tick();
        for page in pages.ones().map(|page| page as u32) {
            if self.memory.state[page as usize] == State::Clean {
                self.touch(page, true, Instant::now());
            }
            // Dirty: it is written again. Writing: it is being written again, and synced after that.
            let again = matches!(self.memory.state[page as usize], State::Dirty | State::Writing);
            self.uncertain += u64::from(!again);
        }
    }

    /// Pages that were lost can be read again. How many there were.
    pub(super) fn forget_lost(&mut self, pages: Range<u32>) -> std::io::Result<u64> {
        let mut n = 0;
        for page in pages {
            if self.memory.state[page as usize] != State::Lost {
                continue;
            }
            if self.memory.unplaced.contains(&page) && !self.forget_unplaced(page) {
                continue;
            }
            // SAFETY: nothing is there but the mark of a page that is lost; whoever touches it faults, and waits for the lock.
            unsafe { calls::discard(self.memory.address(page), PAGE)? };
            self.memory.state[page as usize] = State::Absent;
            n += 1;
        }
        Ok(n)
    }

    /// A page that was read and could not be put in its place is in memory, mapped and perhaps dirty, for all that the engine knows. Whether
    /// it is that no more.
    fn forget_unplaced(&mut self, page: u32) -> bool {
        // What is dirty goes only when it is written; there is nothing to be written.
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
        if self.memory.kswapd_awake && self.engine.kswapd_step(&mut self.memory) == KswapdStep::Sleep {
            self.memory.kswapd_awake = false;
        }
    }

    /// Faults that found no room try again.
    pub(super) fn retry_starved(&mut self) {
        for s in std::mem::take(&mut self.starved) {
            if s.since.elapsed() > self.stall_limit {
                self.lose(s.page, "there was no room for it for too long");
            } else {
                self.serve(s.page, s.write, s.since, !self.memory.kswapd_awake);
            }
        }
    }

    pub(super) fn is_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    /// Whether the writer has anything to do.
    pub(super) fn has_work(&self) -> bool {
        let m = &self.memory;
        m.kswapd_awake || m.flusher_due || !m.writes.is_empty() || !self.starved.is_empty()
    }

    /// What the pager takes is taken from the memory.
    pub(super) fn charge_overhead(&mut self) {
        self.engine.set_external_pages(self.own_bytes().div_ceil(PAGE) as u64);
        self.note_peak();
    }

    pub(super) fn own_bytes(&self) -> usize {
        let (folios, nodes, swap) = self.engine.memory_bytes();
        // While it is synced, what is written meanwhile is noted in another set.
        let unsynced = 2 * self.unsynced.len() / 8;
        self.fixed_bytes + folios + nodes + swap + self.memory.table_bytes() + unsynced
    }

    fn note_peak(&mut self) {
        self.peak_pages = self.peak_pages.max(self.max_pages - self.engine.free_pages());
    }

    pub(super) fn stats(&self) -> FileStats {
        FileStats {
            counts: self.memory.counts,
            max_pages: self.max_pages,
            memory_pages: self.max_pages - self.engine.free_pages(),
            peak_pages: self.peak_pages,
            own_bytes: self.own_bytes() as u64,
            dirty_pages: self.memory.dirty.len() as u64,
            writeback_pages: self.memory.writing.len() as u64,
            awake: CpuLatencyQosStats::default(),
            vmstat: self.engine.vmstat().iter().collect(),
        }
    }

    /// The invariants: those of the engine, and that states, lists and page tables agree.
    pub(super) fn validate(&self) -> Result<(), String> {
        self.engine.validate()?;
        let m = &self.memory;
        let count = |state: State| m.state.iter().filter(|&&s| s == state).count();
        for (state, listed) in [(State::Dirty, &m.dirty), (State::Writing, &m.writing)] {
            if count(state) != listed.len() || !listed.iter().all(|&p| m.state[p as usize] == state) {
                return Err(format!("{} pages are {state:?}, {} listed", count(state), listed.len()));
            }
        }
        let there = self.pagemap.populated(m.start, m.state.len()).map_err(|e| e.to_string())?;
        for (page, (&state, there)) in m.state.iter().zip(there).enumerate() {
            // A page that is lost has a mark in the page tables.
            let should = matches!(state, State::Clean | State::Dirty | State::Writing);
            if should != there && state != State::Lost {
                return Err(format!("page {page} is {state:?}; in the page tables: {there}"));
            }
        }
        match m.counts.inconsistent {
            0 => Ok(()),
            n => Err(format!("{n} orders did not fit the state of their page")),
        }
    }
}
