//! The calls on the memory of a region.

use std::ops::Range;
use std::sync::Arc;

use super::waiters::Waiters;
use crate::calls;
use crate::core::{FillMode, Operations, Progress, Source, Stopped, WINDOW};
use crate::mem::AnonymousMapping;
use crate::pagemap::Pagemap;
use crate::store::PageBuf;
use crate::threads::{fatal, say};
use crate::uffd::{PAGE, Uffd};

static ZEROS: [PageBuf; WINDOW] = [const { PageBuf([0; PAGE]) }; WINDOW];

/// The memory of a region, and its staging places.
pub(super) struct RegionMemory {
    pub(super) uffd: Arc<Uffd>,
    pub(super) start: usize,
    pub(super) staging: AnonymousMapping,
    pub(super) pagemap: Pagemap,
    /// Tells which pages were written since the last walk; `None`: this kernel does not tell.
    pub(super) writes: Option<Pagemap>,
    /// Threads that serve their own faults, and wait; `None`: threads of the region serve faults,
    /// and the kernel wakes who waits.
    pub(super) waiters: Option<Waiters>,
}

impl RegionMemory {
    pub(super) fn address(&self, page: u32) -> usize {
        self.start + page as usize * PAGE
    }

    pub(super) fn place_address(&self, place: u32) -> usize {
        self.staging.start() + place as usize * PAGE
    }

    fn is_populated(&self, address: usize) -> bool {
        match self.pagemap.populated(address, 1) {
            Ok(there) => there[0],
            Err(e) => fatal(&format!("reading /proc/self/pagemap: {e}")),
        }
    }
}

impl Operations for RegionMemory {
    fn fill(&self, first: u32, pages: usize, source: Source<'_>, mode: FillMode) -> usize {
        let (to, len) = (self.address(first), pages * PAGE);
        // A thread that serves itself looks whether its page is there.
        let mode = FillMode { quiet: mode.quiet || self.waiters.is_some(), ..mode };
        let from = match source {
            Source::ZeroPage => None,
            Source::Zeros => Some(ZEROS[..pages].as_ptr().addr()),
            Source::Places(place) => Some(self.place_address(place)),
            Source::Content(content) => Some(content[..pages].as_ptr().addr()),
        };
        // SAFETY: the source is that many pages: zeros, a buffer, or staging places that are filled
        // (the core names those of pages whose content is there, and they stay so while its lock is
        // held). The destination is pages of the region, which is watched.
        let done = unsafe { fill(&self.uffd, to, len, from, mode) };
        if let Some(waiters) = self.waiters.as_ref().filter(|_| done > 0) {
            waiters.wake();
        }
        done
    }

    fn move_out(&self, first: u32, place: u32, pages: usize) -> Progress {
        let (from, to) = (self.address(first), self.place_address(place));
        // SAFETY: the source pages are of the region, whose faults are served; the places were free
        // and are watched.
        let done = unsafe { self.uffd.move_pages(to, from, pages * PAGE) };
        let stopped = match done.errno {
            0 => None,
            libc::EAGAIN => Some(Stopped::Again),
            libc::EBUSY => Some(Stopped::Busy),
            _ => Some(Stopped::Error),
        };
        Progress { pages: done.bytes / PAGE, stopped }
    }

    fn take_written(&self, pages: Range<u32>, found: &mut Vec<Range<u32>>) {
        let Some(map) = &self.writes else { return };
        let (mut at, end) = (self.address(pages.start), self.address(pages.end));
        let mut ranges = Vec::new();
        while at < end {
            match map.take_written(at..end, &mut ranges) {
                Ok(to) if to > at => at = to,
                _ => break,
            }
        }
        let page = |address: usize| ((address - self.start) / PAGE) as u32;
        found.extend(ranges.into_iter().map(|r| page(r.start)..page(r.end)));
    }

    fn was_written(&self, page: u32) -> Option<bool> {
        self.writes.as_ref()?.is_written(self.address(page)).ok()
    }

    fn wake(&self, page: u32) {
        if let Some(waiters) = &self.waiters {
            return waiters.wake();
        }
        if let Err(e) = self.uffd.wake(self.address(page), PAGE) {
            // It would wait for ever.
            fatal(&format!("the thread that waits for a page cannot be woken: {e}"));
        }
    }

    fn poison(&self, page: u32, why: Option<&str>) {
        if let Some(why) = why {
            say(&format!("page {page} of the region at {:#x} is lost: {why}", self.start));
        }
        // SAFETY: the page is of the region, which is watched.
        if let Err(e) = unsafe { self.uffd.poison_for_certain(self.address(page)) } {
            // A thread that touches it would wait for ever.
            fatal(&format!("a page that is lost cannot be marked: {e}"));
        }
    }

    fn discard(&self, first: u32, pages: usize) -> std::io::Result<()> {
        // SAFETY: the range is of the region, and what it holds is of no use or was given up;
        // the thread that touches it faults, and waits for the lock under which this is done.
        unsafe { calls::discard(self.address(first), pages * PAGE) }
    }

    fn is_present(&self, page: u32) -> bool {
        self.is_populated(self.address(page))
    }

    fn is_filled(&self, place: u32) -> bool {
        self.is_populated(self.place_address(place))
    }

    fn fatal(&self, what: &str) -> ! {
        fatal(what)
    }
}

impl RegionMemory {
    /// Puts a page that was read in its place, without the lock: in state Reading nobody else does
    /// anything about it, and it stays in that state until the engine has mapped it. Nobody is
    /// woken before. False: that is left to the holder of the lock.
    pub(super) fn put_in_place(&self, page: u32, content: &PageBuf) -> bool {
        let mode = FillMode { quiet: true, protected: false };
        // SAFETY: the buffer is a page; the destination is one of the region, which is watched.
        unsafe { fill(&self.uffd, self.address(page), PAGE, Some(content.0.as_ptr().addr()), mode) == 1 }
    }
}

/// Fills missing pages; how many.
///
/// # Safety
/// The source (`None`: zeros) can be read and is that long; the destination is watched.
unsafe fn fill(uffd: &Uffd, to: usize, len: usize, from: Option<usize>, mode: FillMode) -> usize {
    for attempt in 0..8 {
        let done = match from {
            // SAFETY: the caller's contract.
            Some(from) => unsafe { uffd.copy_in_mode(to, from as *const u8, len, mode) },
            // SAFETY: as above.
            None if mode.quiet => unsafe { uffd.zero_quietly(to, len) },
            // SAFETY: as above.
            None => unsafe { uffd.zero(to, len) },
        };
        match done.errno {
            0 if done.bytes >= PAGE => return done.bytes / PAGE,
            // Something is there that nobody put there: it may be older than what was to go there.
            libc::EEXIST => fatal("a page that is out of memory is in the page tables"),
            0 | libc::EAGAIN => {}
            libc::ENOMEM => std::thread::sleep(std::time::Duration::from_millis(1 << attempt)),
            _ => break,
        }
    }
    0
}
