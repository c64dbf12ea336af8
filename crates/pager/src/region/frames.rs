//! Frames of pages that have left are reused for pages that come in, where that saves a copy and
//! the way through the kernel's allocator.
//!
//! A page that has been written lies in its staging place until the place is discarded. Instead,
//! the next page can be read into that frame, and the frame be moved into the region. A move
//! interrupts all processors that run threads of the process, which costs more than it saves. So it
//! is done while one thread makes all faults, and serves them itself.

use std::time::Instant;

use super::Shared;
use super::core::Core;
use crate::core::Moved;
use crate::store::Page;
use crate::sync::MutexGuard;
use crate::uffd::PAGE;

/// Faults of one thread in a row after which it counts as the only one.
const ALONE: u32 = 64;
/// Frames that are kept at most: one part in this many of the memory, and this number.
const PART: u64 = 256;
const MOST: u64 = 512;

/// Thread that made the last faults, and how many it made in a row.
#[derive(Default)]
pub(super) struct Frames {
    thread: libc::pthread_t,
    faults: u32,
}

impl Frames {
    /// A fault of a thread that serves it itself.
    fn fault_of(&mut self, thread: libc::pthread_t) {
        if self.thread != thread {
            (self.thread, self.faults) = (thread, 0);
        }
        self.faults = self.faults.saturating_add(1);
    }

    pub(super) fn is_alone(&self) -> bool {
        self.faults >= ALONE
    }
}

impl Core {
    /// Frames that may be kept: they are counted as the pager's own, whether they are there or not.
    /// None where others serve faults.
    pub(super) fn set_most_frames(&mut self) {
        let is_alone_ever = self.ops().waiters.is_some();
        self.most_frames = if is_alone_ever { (self.engine.managed_pages() / PART).min(MOST) as usize } else { 0 };
        self.keep_frames();
    }

    /// A fault of a thread that serves it itself.
    pub(super) fn fault_of(&mut self, thread: libc::pthread_t) {
        self.frames.fault_of(thread);
        self.keep_frames();
    }

    fn keep_frames(&mut self) {
        self.frames_to_keep = if self.frames.is_alone() { self.most_frames } else { 0 };
    }

    /// Takes a place whose frame is of no use any more, for a page that comes in.
    pub(super) fn take_frame(&mut self) -> Option<u32> {
        if self.frames.is_alone() { self.memory.discards.pop() } else { None }
    }
}

impl Shared {
    /// Reads a page into the frame of a place taken so, and moves it to where it belongs. If that
    /// fails, the place is given back and the page is to be read in another way.
    pub(super) fn read_into_frame<'a>(
        &'a self,
        core: MutexGuard<'a, Core>,
        page: u32,
        slot: u32,
        place: u32,
    ) -> Result<MutexGuard<'a, Core>, MutexGuard<'a, Core>> {
        let from = self.memory.place_address(place);
        drop(core);
        let begun = Instant::now();
        // SAFETY: the place is a page of memory that is filled and was taken from those to be
        // discarded: nobody else refers to it. Any bytes are a valid page. The reference ends
        // before the page moves.
        let read = unsafe { self.area.read(slot, page, &mut *(from as *mut Page)) };
        let outcome = if read.is_ok() { self.move_in(page, place) } else { Moved::Busy };
        let mut core = self.lock_now();
        match outcome {
            Moved::Out => {
                core.memory.places.give_back(place);
                core.memory.counts.frames_reused += 1;
                self.arrive(&mut core, page, Ok(None), begun, true);
                return Ok(core);
            }
            Moved::Busy | Moved::PlaceTaken => core.memory.discards.push(place),
            // The page that was read is in the slot still.
            Moved::Lost => core.memory.places.give_back(place),
        }
        Err(core)
    }

    /// Moves a page from its place; nobody is woken. Returns the outcome, as of a page that leaves
    /// its place.
    fn move_in(&self, page: u32, place: u32) -> Moved {
        let (to, from) = (self.memory.address(page), self.memory.place_address(place));
        // SAFETY: the place is the pager's, and nobody refers to it; the page of the region is
        // missing, and watched.
        let done = unsafe { self.uffd.move_pages(to, from, PAGE) };
        if done.bytes == PAGE {
            return Moved::Out;
        }
        // The content of both places decides, not the error.
        match Moved::look(&*self.memory, page, place) {
            Moved::Busy => Moved::Out,
            Moved::Out => Moved::Busy,
            other => other,
        }
    }
}
