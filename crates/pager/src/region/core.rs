//! The engine with the memory it decides about: what a fault, a read, a move and a write lead to.

use std::time::{Duration, Instant};

use refault_mm::{Advice, Engine, KswapdStep, MappingId, MemcgId, Outcome, PageId, Touch};

use super::WINDOW;
use super::frames::Frames;
use super::limits::Limits;
use super::sample::Sampling;
use super::stats::RegionStats;
use super::world::{Memory, State};
use crate::pagemap::Pagemap;
use crate::store::{PageBuf, StoreError};
use crate::threads::{fatal, say};
use crate::uffd::PAGE;
use crate::waiting::{Starved, Waiting};

/// Discarding waits until there are so many places, for each call costs a flush of other CPUs.
pub(super) const DISCARD_BATCH: usize = 32;
/// After so many steps that led to nothing, a pool before a file is asked for memory.
const ROOM_STEPS: u32 = 20;
/// Messages about lost pages.
const MAX_MESSAGES: u64 = 16;

/// What became of a page that was to be moved out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moved {
    /// It is in its staging place.
    Out,
    /// It is where it was.
    Busy,
    /// It is where it was, and something is in the place that was held to be free: that place is not used again.
    PlaceTaken,
    /// It is in neither place.
    Lost,
}

pub(super) struct Core {
    pub(super) engine: Engine,
    pub(super) memory: Memory,
    /// The memcg of the region.
    pub(super) group: MemcgId,
    /// Its pages.
    pub(super) mapping: MappingId,
    pub(super) limits: Limits,
    pagemap: Pagemap,
    started: Instant,
    /// When time last went on.
    now: Instant,
    pub(super) stall_limit: Duration,
    /// Faults on pages that are between two states, and whether one of them is a write.
    pub(super) waiting: Waiting,
    starved: Vec<Starved>,
    /// Steps that led to nothing while faults waited for room, and pages that had been moved out and in before them.
    fruitless: (u32, u64),
    /// Pages in staging places that stay there without being written.
    pub(super) standby_pages: u64,
    pub(super) sampling: Sampling,
    pub(super) max_pages: u64,
    pub(super) min_mark: u64,
    peak_pages: u64,
    /// Bytes that the pager takes beyond what it can ask for.
    fixed_bytes: usize,
    /// What the pager itself takes at most: with tables that are as large as they can get.
    pub(super) most_own_bytes: usize,
    /// It is not taken from the memory.
    pub(super) overhead_beside: bool,
    /// The evictor sleeps until it is told of work.
    pub(super) evictor_sleeps: bool,
    /// Someone is at work on background reclaim.
    pub(super) evicting: bool,
    /// Pages that are being written.
    pub(super) writing_pages: u64,
    pub(super) frames: Frames,
}

impl Core {
    pub(super) fn new(
        engine: Engine,
        memory: Memory,
        group: MemcgId,
        limits: Limits,
        standby_pages: u64,
        stall_limit: Duration,
        fixed_bytes: usize,
    ) -> std::io::Result<Core> {
        let min_mark = engine.zones().map(|(.., marks)| marks.min).sum();
        Ok(Core {
            max_pages: engine.managed_pages(),
            engine,
            memory,
            group,
            mapping: MappingId(0),
            limits,
            pagemap: Pagemap::open()?,
            started: Instant::now(),
            now: Instant::now(),
            stall_limit,
            waiting: Waiting::default(),
            starved: Vec::new(),
            fruitless: (0, 0),
            standby_pages,
            sampling: Sampling::new(0),
            min_mark,
            peak_pages: 0,
            fixed_bytes,
            most_own_bytes: 0,
            overhead_beside: false,
            evictor_sleeps: false,
            evicting: false,
            writing_pages: 0,
            frames: Frames::default(),
        })
    }

    /// Time goes on.
    pub(super) fn tick(&mut self) {
        self.now = Instant::now();
        self.engine.set_now_ns(self.now.duration_since(self.started).as_nanos() as u64);
    }

    /// Someone touched a page that is not in place.
    pub(super) fn fault(&mut self, page: u32, write: bool) {
        self.memory.counts.faults += 1;
        self.serve(page, write, self.now, false);
    }

    /// `forced`: even if there is next to no room.
    pub(super) fn serve(&mut self, page: u32, write: bool, since: Instant, forced: bool) {
        match self.memory.state[page as usize] {
            State::Mapped => self.wake_mapped(page),
            // Whoever tries again gets the signal.
            State::Poisoned => self.wake(page),
            State::Leaving | State::Writing | State::Reading => self.waiting.add(page, write),
            State::Empty | State::Stored if !forced && self.is_short() => {
                self.starved.push(Starved { page, write, since });
            }
            state => {
                let begun = (state == State::Staged).then(Instant::now);
                match state {
                    State::Staged => self.call_off(page, write, since),
                    _ => self.touch(page, write, since),
                }
                match state {
                    State::Staged | State::Written => {
                        self.memory.counts.rescued += 1;
                        let unit = self.unit(page);
                        self.engine.advise_range(PageId(unit.start), unit.len() as u32, Advice::InUse);
                        if let Some(begun) = begun {
                            self.sample_seen(begun, unit.len() as u64);
                        }
                    }
                    State::Empty if self.memory.state[page as usize] == State::Mapped => {
                        self.memory.counts.first_touches += 1;
                    }
                    _ => {}
                }
            }
        }
        self.note_peak();
    }

    /// Reclaim is at work, and what is left is for it.
    pub(super) fn is_short(&self) -> bool {
        self.memory.kswapd_awake && self.engine.free_pages() <= self.min_mark
    }

    pub(super) fn touch(&mut self, page: u32, write: bool, since: Instant) {
        self.memory.write = write;
        let touch = if write { Touch::MapWrite } else { Touch::MapRead };
        let outcome = self.access(page, touch);
        match outcome {
            Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh => {
                if !matches!(self.memory.state[page as usize], State::Mapped | State::Poisoned) {
                    self.poison(page, "the kernel could not put it in its place");
                }
            }
            Outcome::Waiting => self.waiting.add(page, write),
            Outcome::Throttled => self.starved.push(Starved { page, write, since }),
            Outcome::Failed => self.poison(page, "it could not be read"),
            // The verdict is about the new limit, which is not in force.
            Outcome::Oom(_) if self.memory.lowering => self.starved.push(Starved { page, write, since }),
            Outcome::Oom(_) if self.memory.area.ask_for_room() => self.starved.push(Starved { page, write, since }),
            Outcome::Oom(_) => self.poison(page, "there is no room for it, and nothing to reclaim"),
        }
    }

    /// The engine learns of a touch, and what it maps is put in place. If it reclaims for it, it stops when a window of pages is to leave:
    /// none of them is free before it is written, and it would order out all there is.
    pub(super) fn access(&mut self, page: u32, touch: Touch) -> Outcome {
        self.memory.high.most_leaving = self.memory.leaving.len() + WINDOW;
        let outcome = self.engine.access(&mut self.memory, PageId(page), touch);
        self.memory.high.most_leaving = usize::MAX;
        self.map_all();
        outcome
    }

    /// A fault on a page that is in place: it was served meanwhile. If it is not there after all, someone changed the memory
    /// of the region behind the pager, and what was there is lost.
    fn wake_mapped(&mut self, page: u32) {
        match self.pagemap.populated(self.memory.address(page), 1) {
            // Who faulted first has to wait for it, and so has who comes after.
            Ok(there) if there[0] && self.memory.high.is_asleep(&page) => {}
            Ok(there) if there[0] => self.wake(page),
            Ok(_) => self.poison(page, "its memory was changed by madvise, mremap or munmap"),
            Err(e) => fatal(&format!("reading /proc/self/pagemap: {e}")),
        }
    }

    pub(super) fn wake(&mut self, page: u32) {
        if let Some(waiters) = &self.memory.waiters {
            return waiters.wake();
        }
        if let Err(e) = self.memory.uffd.wake(self.memory.address(page), PAGE) {
            // It would wait for ever.
            fatal(&format!("whoever waits for a page cannot be woken: {e}"));
        }
    }

    /// The page cannot be had: whoever touches it gets a signal.
    pub(super) fn poison(&mut self, page: u32, why: &str) {
        let address = self.memory.address(page);
        match self.memory.state[page as usize] {
            State::Staged | State::Written => self.memory.leave_place(page, State::Poisoned),
            _ => self.memory.state[page as usize] = State::Poisoned,
        }
        self.memory.counts.poisoned += 1;
        if self.memory.counts.poisoned <= MAX_MESSAGES {
            say(&format!("page {page} of the region at {:#x} is lost: {why}", self.memory.start));
        }
        // SAFETY: the page is of the region, which is watched.
        if let Err(e) = unsafe { self.memory.uffd.poison_for_certain(address) } {
            // Whoever touches it would wait for ever.
            fatal(&format!("a page that is lost cannot be marked: {e}"));
        }
        self.wake(page);
    }

    /// A page was read, or could not be; its read began then. `placed`: it is in place already, which nobody but who put it there knows yet;
    /// then the content may be only there.
    pub(super) fn arrive(
        &mut self,
        page: u32,
        content: Result<Option<Box<PageBuf>>, StoreError>,
        begun: Instant,
        placed: bool,
    ) {
        let id = PageId(page);
        let waiting = self.waiting.remove(page);
        let write = waiting.unwrap_or(false);
        match content {
            Ok(content) => {
                self.memory.counts.swapped_in += 1;
                self.engine.read_done(&mut self.memory, id, true);
                self.memory.arrived = content;
                self.memory.placed = placed.then_some(page);
                self.touch(page, write, self.now);
                self.memory.spare.extend(self.memory.arrived.take());
                if self.memory.placed.take().is_some() {
                    // It could free what it does not know to be in use.
                    fatal("a page is in place, and the engine did not map it");
                }
                if waiting.is_some() {
                    self.memory.area.fault_served(begun.elapsed().as_nanos() as u64);
                }
            }
            // It was read ahead. Whoever needs it may have better luck.
            Err(_) if waiting.is_none() => {
                self.memory.state[page as usize] = State::Stored;
                self.engine.read_done(&mut self.memory, id, false);
            }
            Err(e) => {
                self.memory.counts.read_errors += 1;
                self.engine.read_done(&mut self.memory, id, false);
                self.poison(page, &format!("reading it from swap: {e}"));
            }
        }
    }

    pub(super) fn serve_waiting(&mut self, page: u32) {
        if let Some(write) = self.waiting.remove(page) {
            self.serve(page, write, self.now, false);
        }
    }

    /// Pages that the next steps of background reclaim may ask the kernel about.
    pub(super) fn pages_to_look_up(&mut self) -> Vec<u32> {
        let awake = self.memory.kswapd_awake;
        if awake { self.memory.pages_to_look_up(&self.engine, self.group, self.now) } else { Vec::new() }
    }

    /// What came of that: whether each was written.
    pub(super) fn set_looked_up(&mut self, answers: Vec<(u32, bool)>) {
        self.memory.set_looked_up(answers, self.now);
    }

    /// One step of background reclaim.
    pub(super) fn kswapd_step(&mut self) {
        if self.memory.kswapd_awake && self.engine.kswapd_step(&mut self.memory) == KswapdStep::Sleep {
            self.memory.kswapd_awake = false;
        }
    }

    /// After a step of reclaim, by whoever it was: where faults wait for room and nothing is on its way out, again and again, a pool before a
    /// file is asked for memory. Background reclaim may go on for long before it finds that there is nothing.
    pub(super) fn note_step(&mut self) {
        let m = &self.memory;
        let under_way = m.staged_pages > self.standby_pages || self.writing_pages > 0 || !m.leaving.is_empty();
        let moved = m.counts.swapped_out + m.counts.swapped_in;
        if self.starved.is_empty() || under_way || moved != self.fruitless.1 {
            self.fruitless = (0, moved);
            return;
        }
        self.fruitless.0 += 1;
        // Where swap is used up, more steps would find no more.
        let used_up = self.engine.swap_used_pages() as usize >= self.limits.swap_max / PAGE;
        if self.fruitless.0 >= if used_up { 1 } else { ROOM_STEPS } {
            self.fruitless.0 = 0;
            m.area.ask_for_room();
        }
    }

    /// Faults that found no room try again. Without anyone who makes room, they reclaim for themselves.
    pub(super) fn retry_starved(&mut self) {
        for s in std::mem::take(&mut self.starved) {
            if s.since.elapsed() > self.stall_limit {
                self.poison(s.page, "there was no room for it for too long");
            } else {
                self.serve(s.page, s.write, s.since, !self.memory.kswapd_awake);
            }
        }
    }

    /// Whether there is work for the evictor, beside background reclaim, which is done by who serves faults.
    pub(super) fn has_work(&self) -> bool {
        let m = &self.memory;
        self.is_left_behind()
            || m.staged_pages > self.pages_to_keep()
            || self.has_discards()
            || !self.starved.is_empty()
            || m.high.new_sleepers
            || m.area.wants_tending()
    }

    /// Pages are to leave, and nobody is about to move them.
    pub(super) fn is_left_behind(&self) -> bool {
        !self.evicting && !self.memory.leaving.is_empty()
    }

    /// Pages in staging places that are to be written, or are being written.
    pub(super) fn pages_to_write(&self) -> u64 {
        self.memory.staged_pages.saturating_sub(self.pages_to_keep()) + self.writing_pages
    }

    pub(super) fn is_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    pub(super) fn is_page_starved(&self, page: u32) -> bool {
        self.starved.iter().any(|s| s.page == page)
    }

    /// Slots that the engine freed are free now: what was in them is in memory.
    pub(super) fn free_slots(&mut self) {
        for slot in self.memory.freed.drain(..) {
            self.memory.area.free(slot);
        }
    }

    /// What the pool and the pager take is taken from the memory.
    pub(super) fn charge_overhead(&mut self) {
        let pages = (self.own_bytes() + self.memory.area.stats().usage.memory_bytes as usize).div_ceil(PAGE);
        if self.overhead_beside {
            return;
        }
        // False: there is not so much free. What there is was taken, and reclaim sees to the rest.
        self.engine.set_external_pages(pages as u64);
        // And counts against `memory.high`. The group is there, so this does not fail.
        _ = self.engine.set_memcg_external_pages(self.group, pages as u64);
        self.note_peak();
    }

    pub(super) fn own_bytes(&self) -> usize {
        let (folios, nodes, swap) = self.engine.memory_bytes();
        let frames = self.most_frames() * PAGE;
        self.fixed_bytes + folios + nodes + swap + self.memory.table_bytes() + self.memory.high.bytes() + frames
    }

    fn note_peak(&mut self) {
        self.peak_pages = self.peak_pages.max(self.used_pages());
    }

    /// Pages of memory in use: for content, the store and the pager.
    pub(super) fn used_pages(&self) -> u64 {
        self.engine.managed_pages() - self.engine.free_pages()
    }

    pub(super) fn stats(&self) -> RegionStats {
        let area = self.memory.area.stats();
        RegionStats {
            counts: self.memory.counts,
            limits: self.limits,
            max_pages: self.max_pages,
            memory_pages: self.used_pages(),
            peak_pages: self.peak_pages,
            overhead_pages: (self.own_bytes() + area.usage.memory_bytes as usize).div_ceil(PAGE) as u64,
            own_bytes: self.own_bytes() as u64,
            store_bytes: area.usage.memory_bytes,
            staged_pages: self.memory.staging.in_use(),
            swap_pages: self.engine.swap_used_pages(),
            events: self.engine.memcg_events(self.group),
            area,
            awake: Default::default(),
            sizes: self.engine.size_stats().clone(),
            samples: self.sampling.stats(),
            vmstat: self.engine.vmstat().iter().collect(),
        }
    }

    /// The invariants: those of the engine, and that states, places and counts agree.
    pub(super) fn validate(&self) -> Result<(), String> {
        self.engine.validate()?;
        let m = &self.memory;
        let staged = m.state.iter().filter(|&&s| s == State::Staged).count() as u64;
        if staged != m.staged_pages {
            return Err(format!("{staged} pages are staged, {} counted", m.staged_pages));
        }
        let held =
            m.state.iter().filter(|s| matches!(s, State::Staged | State::Writing | State::Written)).count() as u64;
        if m.staging.in_use() < held + m.discards.len() as u64 {
            return Err(format!("{held} pages have a place, but {} are in use", m.staging.in_use()));
        }
        let writing = m.state.iter().filter(|&&s| s == State::Writing).count() as u64;
        if writing != self.writing_pages {
            return Err(format!("{writing} pages are being written, {} counted", self.writing_pages));
        }
        self.validate_folios()?;
        self.sampling.validate()?;
        if m.counts.inconsistent > 0 {
            return Err(format!("{} orders did not fit the state of their page", m.counts.inconsistent));
        }
        Ok(())
    }
}
