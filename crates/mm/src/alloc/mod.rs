//! Getting memory: frames and charges, with reclaim where there is no room.
//!
//! | file | what is in it |
//! |---|---|
//! | `frames` | frames: the fast path, direct reclaim |
//! | `charge` | charges to groups, page tables and tree nodes |
//! | `large` | frames and charges of large folios |
//! | `zswap_worker` | emptying the pool of zswap, for which it needs memory |
//!
//! It may call: `reclaim` and what is below it. It is called by: `fault`, `cgroupfs`.

use crate::memory::Memory;
use crate::page_io::PageIo;
use crate::reclaim::Reclaim;
use crate::scan::ScanControl;

pub(crate) mod charge;
pub(crate) mod frames;
pub(crate) mod large;
pub(crate) mod zswap_worker;

/// Access to all of the memory to get frames and charges: reclaim may change any part of it.
pub(crate) struct Alloc<'a, W> {
    pub(crate) mem: &'a mut Memory,
    pub(crate) world: &'a mut W,
}

impl<W> Alloc<'_, W> {
    /// A reclaim that aims at what `sc` says.
    #[inline(always)]
    pub(crate) fn reclaim_with(&mut self, sc: ScanControl) -> Reclaim<'_, W> {
        Reclaim { mem: self.mem, world: self.world, sc }
    }

    /// See [`PageIo`].
    #[inline(always)]
    pub(crate) fn page_io(&mut self) -> PageIo<'_, W> {
        PageIo { mem: self.mem, world: self.world }
    }
}
