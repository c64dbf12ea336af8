//! What a program says about the pages of a region.

use std::ops::Range;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use refault_mm::{Advice, HugeAdvice, Outcome, PageId, Touch, World};

use super::core::Core;
use super::world::State;
use super::{Region, Shared, WINDOW};
use crate::calls;
use crate::error::Error;
use crate::patience::Patience;
use crate::threads::fatal;
use crate::uffd::PAGE;

/// Pages for which the lock is held at a time.
const CHUNK: u32 = WINDOW as u32;
const PAUSE: Duration = Duration::from_micros(100);

impl Region {
    /// `MADV_WILLNEED`: brings pages that are out of memory back in, at most half of what fits, while there is room to be had. Returns
    /// how many pages of the range are in place. A page that is in part in the range is in it.
    pub fn will_need(&self, range: Range<usize>) -> Result<u64, Error> {
        let pages = self.pages_of(range)?;
        Ok(self.shared.bring_in(pages, false))
    }

    /// `MADV_POPULATE_READ`: as [`Region::will_need`], and pages that were never touched come, too. System calls that are handed
    /// memory which is in place never fail.
    pub fn populate(&self, range: Range<usize>) -> Result<u64, Error> {
        let pages = self.pages_of(range)?;
        Ok(self.shared.bring_in(pages, true))
    }

    /// `MADV_COLD`: these pages are the next to go when there is need.
    pub fn cold(&self, range: Range<usize>) -> Result<(), Error> {
        let pages = self.pages_of(range)?;
        let mut core = self.shared.lock();
        // What they were accessed for before is forgotten, too.
        core.memory.collect_writes(pages.clone());
        pages.clone().for_each(|p| _ = core.memory.test_and_clear_young(PageId(p)));
        core.engine.advise_range(PageId(pages.start), pages.len() as u32, Advice::Cold);
        Ok(())
    }

    /// `MADV_PAGEOUT`: moves these pages out now. Returns how many of the range are not in place afterwards. The memory of those that
    /// were written just now is given up when it is needed; until then a touch brings them back without a read.
    pub fn page_out(&self, range: Range<usize>) -> Result<u64, Error> {
        let pages = self.pages_of(range)?;
        let mut out = 0;
        for chunk in chunks(pages) {
            let mut core = self.shared.lock();
            core.tick();
            let Core { engine, memory, .. } = &mut *core;
            engine.page_out(memory, PageId(chunk.start), chunk.len() as u32);
            core = self.shared.evict_round(core);
            core = self.shared.finish(core);
            out += chunk.filter(|&p| core.memory.state[p as usize] != State::Mapped).count() as u64;
        }
        Ok(out)
    }

    /// `MADV_DONTNEED`: gives up what these pages hold. They read as zeros afterwards, and take neither memory nor swap; pages that
    /// were lost can be used again. The range must be of whole pages.
    pub fn dont_need(&mut self, range: Range<usize>) -> Result<(), Error> {
        // SAFETY: nobody else refers to the region.
        unsafe { self.dont_need_shared(range) }
    }

    /// As [`Region::dont_need`], of a region that others use at the same time.
    ///
    /// # Safety
    /// There is no reference to these bytes. Whoever reads them by a pointer at the same time finds what was there, or zeros; what is
    /// written to them at the same time may be gone.
    pub unsafe fn dont_need_shared(&self, range: Range<usize>) -> Result<(), Error> {
        let whole = |at: usize| at.is_multiple_of(PAGE) || at == self.len();
        if !whole(range.start) || !whole(range.end) {
            let (a, b) = (range.start, range.end);
            return Err(Error::Range(format!("bytes {a} to {b} are not whole pages of 4096 bytes")));
        }
        let pages = self.pages_of(range)?;
        self.shared.give_up(pages);
        Ok(())
    }

    /// `MADV_FREE`: what these pages hold may be given up. It is, at once: the region does not learn of writes, so it could not tell
    /// later whether that still holds. As [`Region::dont_need`].
    pub fn free(&mut self, range: Range<usize>) -> Result<(), Error> {
        self.dont_need(range)
    }

    /// `MADV_HUGEPAGE` or `MADV_NOHUGEPAGE` for the whole region: which of the sizes of [`RegionConfig::thp`](super::RegionConfig::thp)
    /// its folios may have. It holds for pages that are touched for the first time, or read, from now on.
    pub fn advise_huge(&self, advice: HugeAdvice) {
        let mut core = self.shared.lock();
        let mapping = core.mapping;
        core.engine.advise_huge(mapping, advice);
    }

    /// The pages that a range of bytes touches.
    fn pages_of(&self, range: Range<usize>) -> Result<Range<u32>, Error> {
        if range.start > range.end || range.end > self.len() {
            let (a, b, len) = (range.start, range.end, self.len());
            return Err(Error::Range(format!("there are no bytes {a} to {b} in a region of {len}")));
        }
        if range.is_empty() {
            return Ok(0..0);
        }
        Ok((range.start / PAGE) as u32..range.end.div_ceil(PAGE) as u32)
    }
}

fn chunks(pages: Range<u32>) -> impl Iterator<Item = Range<u32>> {
    // They end where a folio does.
    let first = pages.start / CHUNK * CHUNK;
    (first..pages.end).step_by(CHUNK as usize).map(move |p| p.max(pages.start)..pages.end.min(p.saturating_add(CHUNK)))
}

fn is_moving(state: State) -> bool {
    matches!(state, State::Leaving | State::Writing | State::Reading)
}

impl Shared {
    fn bring_in(&self, pages: Range<u32>, fresh: bool) -> u64 {
        let mut core = self.lock();
        let mut room = core.max_pages / 2;
        let mut in_place = 0;
        for chunk in chunks(pages) {
            core.tick();
            for page in chunk.clone() {
                if room > 0 && core.wants(page, fresh) {
                    let read = |core: &Core| core.memory.counts.swapped_in + core.memory.pages_to_read();
                    let before = read(&core);
                    let came;
                    (core, came) = self.bring_page(core, page, fresh);
                    // The engine may read on.
                    // Reads that failed are counted no more.
                    let more = read(&core).saturating_sub(before).max(1);
                    room = if came { room.saturating_sub(more) } else { 0 };
                }
            }
            core = self.finish(core);
            in_place += chunk.filter(|&p| core.memory.state[p as usize] == State::Mapped).count() as u64;
            if core.has_work() || core.memory.kswapd_awake {
                self.work.notify_one();
            }
            // Whoever faults comes first.
            drop(core);
            core = self.lock();
        }
        in_place
    }

    /// Brings a page in, reclaiming for it. False: there is no room, or it took too long.
    fn bring_page<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        page: u32,
        fresh: bool,
    ) -> (MutexGuard<'a, Core>, bool) {
        let mut patience = Patience::new(core.stall_limit);
        while core.wants(page, fresh) && !core.bring(page) {
            let moving = is_moving(core.memory.state[page as usize]);
            if !patience.goes_on(1, moving || core.is_writing()) {
                return (core, false);
            }
            core.kswapd_step();
            core = self.evict_round(core);
            core = self.finish(core);
            if moving || core.is_short() {
                // Others are at work on it.
                self.work.notify_one();
                drop(core);
                std::thread::sleep(PAUSE);
                core = self.lock();
            }
            core.tick();
        }
        (core, true)
    }

    fn give_up(&self, pages: Range<u32>) {
        for chunk in chunks(pages) {
            let mut core = self.lock();
            core.tick();
            while !core.give_up(chunk.clone()) {
                // Some are on their way, in or out: they are given up when they have arrived.
                core = self.evict_round(core);
                core = self.finish(core);
                drop(core);
                std::thread::yield_now();
                core = self.lock();
                core.tick();
            }
            drop(self.finish_giving_up(core));
        }
    }

    fn finish_giving_up<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core.free_slots();
        self.finish(core)
    }
}

impl Core {
    /// Whether the page is to be brought in; `fresh`: even if it was never touched.
    fn wants(&self, page: u32, fresh: bool) -> bool {
        match self.memory.state[page as usize] {
            State::Empty => fresh,
            State::Mapped | State::Poisoned => false,
            _ => true,
        }
    }

    /// Brings a page in of its own accord. False: there is no room, or the page is on its way and must arrive first. What is beyond
    /// `memory.high` by it is reclaimed after each chunk.
    fn bring(&mut self, page: u32) -> bool {
        let i = page as usize;
        if self.is_short() || is_moving(self.memory.state[i]) {
            return false;
        }
        if self.memory.state[i] == State::Staged {
            self.engine.write_cancelled(&mut self.memory, PageId(page));
        }
        self.memory.write = false;
        match self.access(page, Touch::MapRead) {
            Outcome::Hit | Outcome::Minor | Outcome::Major | Outcome::Fresh => {
                if !matches!(self.memory.state[i], State::Mapped | State::Poisoned) {
                    self.poison(page, "the kernel could not put it in its place");
                }
                true
            }
            Outcome::Waiting => {
                self.waiting.add(page, false);
                true
            }
            Outcome::Throttled | Outcome::Failed | Outcome::Oom(_) => false,
        }
    }

    /// Gives up what these pages hold, but for those that are on their way. True: it was all of them.
    fn give_up(&mut self, pages: Range<u32>) -> bool {
        let moving = |p: u32| self.unit(p).any(|p| is_moving(self.memory.state[p as usize]));
        let all: Vec<(u32, bool)> = pages.map(|p| (p, moving(p))).collect();
        let mut done = true;
        for run in all.chunk_by(|a, b| a.1 == b.1) {
            match run[0] {
                (_, true) => done = false,
                (first, false) => self.give_up_run(first, run.len()),
            }
        }
        done
    }

    fn give_up_run(&mut self, first: u32, nr: usize) {
        let pages = first..first + nr as u32;
        let held = |s: &State| *s != State::Empty;
        self.memory.counts.given_up += pages.clone().filter(|&p| held(&self.memory.state[p as usize])).count() as u64;
        let cut = self.call_off_range(pages.clone());
        self.memory.dropping = true;
        self.engine.zap_range(&mut self.memory, PageId(first), nr as u32);
        self.memory.dropping = false;
        for page in pages {
            let state = &mut self.memory.state[page as usize];
            match state {
                State::Empty => {}
                State::Stored | State::Poisoned => *state = State::Empty,
                // The engine keeps what it was told to drop.
                _ => self.memory.counts.inconsistent += 1,
            }
        }
        for page in cut {
            // Of a folio that was cut: what is left of it stays.
            self.touch(page, false, Instant::now());
        }
        // SAFETY: the range is of the region. What it holds was given up, by those who may; whoever touches it faults, and waits for
        // this lock.
        if let Err(e) = unsafe { calls::discard(self.memory.address(first), nr * PAGE) } {
            fatal(&format!("discarding memory: {e}"));
        }
    }

    /// Pages of the range that wait to be written are not. Returns those that are of the same folios and not of the range.
    fn call_off_range(&mut self, pages: Range<u32>) -> Vec<u32> {
        let mut cut = Vec::new();
        let mut at = pages.start;
        while at < pages.end {
            let unit = self.unit(at);
            let is_staged = |p: &u32| self.memory.state[*p as usize] == State::Staged;
            if unit.clone().any(|p| is_staged(&p)) {
                cut.extend(unit.clone().filter(|p| !pages.contains(p)).filter(is_staged));
                self.engine.write_cancelled(&mut self.memory, PageId(at));
            }
            at = unit.end;
        }
        cut
    }
}
