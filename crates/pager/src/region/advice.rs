//! Advice of a program about the pages of a region.

use std::ops::Range;
use std::time::Duration;

use refault_mm::{AccessAdvice, HugeAdvice};

use super::core::Core;
use super::{Region, Shared};
use crate::core::{ProgressGuard, State, WINDOW};
use crate::error::Error;
use crate::sync::MutexGuard;
use crate::uffd::PAGE;

/// Pages for which the lock is held at a time.
const CHUNK: u32 = WINDOW as u32;
const PAUSE: Duration = Duration::from_micros(100);

impl Region {
    /// `MADV_WILLNEED`: brings pages that are out of memory back in, at most half of what fits,
    /// while there is room to be had. Returns how many pages of the range are in place. A page that
    /// is in part in the range is in it.
    pub fn will_need(&self, range: Range<usize>) -> Result<u64, Error> {
        let pages = self.pages_of(range)?;
        Ok(self.shared.bring_in(pages, false))
    }

    /// `MADV_POPULATE_READ`: as [`Region::will_need`], and pages that were never touched come, too.
    /// System calls that are handed memory which is in place never fail.
    pub fn populate(&self, range: Range<usize>) -> Result<u64, Error> {
        let pages = self.pages_of(range)?;
        Ok(self.shared.bring_in(pages, true))
    }

    /// `MADV_COLD`: these pages are the next to go when there is need.
    pub fn cold(&self, range: Range<usize>) -> Result<(), Error> {
        let pages = self.pages_of(range)?;
        let mut core = self.shared.lock();
        // Accesses from before are forgotten, too.
        core.advise_cold(pages);
        Ok(())
    }

    /// `MADV_PAGEOUT`: moves these pages out now. Returns how many pages of the range are not in
    /// place afterwards. Memory of pages written just now is given up when it is needed; until then
    /// a touch brings them back without a read.
    pub fn page_out(&self, range: Range<usize>) -> Result<u64, Error> {
        let pages = self.pages_of(range)?;
        let mut out = 0;
        for chunk in chunks(pages) {
            let mut core = self.shared.lock_now();
            core.page_out(chunk.clone());
            core = self.shared.evict_round(core);
            core = self.shared.finish(core);
            out += chunk.filter(|&p| core.memory.state(p) != State::Mapped).count() as u64;
        }
        Ok(out)
    }

    /// `MADV_DONTNEED`: gives up what these pages hold. They read as zeros afterwards, and take
    /// neither memory nor swap; pages that were lost can be used again. The range must be of whole
    /// pages.
    pub fn dont_need(&mut self, range: Range<usize>) -> Result<(), Error> {
        // SAFETY: nobody else refers to the region.
        unsafe { self.dont_need_shared(range) }
    }

    /// As [`Region::dont_need`], of a region that others use at the same time.
    ///
    /// # Safety
    /// There is no reference to these bytes. A thread that reads them by a pointer at the same time
    /// finds what was there, or zeros; what is written to them at the same time may be gone.
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

    /// `MADV_FREE`: what these pages hold may be given up. It is, at once: the region does not
    /// learn of writes, so it could not tell later whether that still holds. As
    /// [`Region::dont_need`].
    pub fn free(&mut self, range: Range<usize>) -> Result<(), Error> {
        self.dont_need(range)
    }

    /// `MADV_HUGEPAGE` or `MADV_NOHUGEPAGE` for the whole region: which of the sizes of
    /// [`RegionConfig::thp`](super::RegionConfig::thp) its folios may have. It holds for pages that
    /// are touched for the first time, or read, from now on.
    pub fn advise_huge(&self, advice: HugeAdvice) {
        let mut core = self.shared.lock();
        let mapping = core.mapping;
        core.engine.advise_huge(mapping, advice);
    }

    /// `MADV_RANDOM` or `MADV_SEQUENTIAL` for the whole region: that its pages are touched does not
    /// keep them in memory.
    pub fn advise_access(&self, advice: AccessAdvice) {
        let mut core = self.shared.lock();
        let mapping = core.mapping;
        core.engine.advise_access(mapping, advice);
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

impl Shared {
    fn bring_in(&self, pages: Range<u32>, fresh: bool) -> u64 {
        let mut core = self.lock();
        let mut room = core.budget.max_pages / 2;
        let mut in_place = 0;
        for chunk in chunks(pages) {
            self.tick(&mut core);
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
            in_place += chunk.filter(|&p| core.memory.state(p) == State::Mapped).count() as u64;
            if core.has_work() || core.memory.kswapd_awake {
                self.work.notify_one();
            }
            // A thread that faults comes first.
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
        let mut guard = ProgressGuard::new(core.stall_limit_ns, core.now_ns);
        while core.wants(page, fresh) && !core.bring(page) {
            let moving = core.memory.state(page).is_moving();
            if !guard.goes_on(1, moving || core.is_writing(), core.now_ns) {
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
            self.tick(&mut core);
        }
        (core, true)
    }

    fn give_up(&self, pages: Range<u32>) {
        for chunk in chunks(pages) {
            let mut core = self.lock_now();
            while !core.give_up(chunk.clone()) {
                // Some are on their way, in or out: they are given up when they have arrived.
                core = self.evict_round(core);
                core = self.finish(core);
                drop(core);
                std::thread::yield_now();
                core = self.lock_now();
            }
            drop(self.finish_giving_up(core));
        }
    }

    fn finish_giving_up<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core.memory.free_slots();
        self.finish(core)
    }
}
