//! Accesses that are more than a hit: faults, reads ahead, advice, and memory that is given up.
//!
//! | file | what is in it |
//! |---|---|
//! | `access` | what an access meets |
//! | `file_folio` | new folios in the page cache, large ones too |
//! | `io` | reads, and I/O that has ended |
//! | `swap_in`, `swap_in_uncached` | anonymous folios from swap, and large ones |
//! | `readahead` | reading ahead |
//! | `context_readahead`, `cursor`, `window` | reading ahead by what is in the page cache: when, how pages are counted, in which folios |
//! | `read_around` | reading around faults on mapped files |
//! | `advise` | `madvise` and `fadvise` |
//! | `zap` | memory that its owner gives up |
//! | `invalidate` | clean pages of files that leave memory because somebody asks for it |
//! | `hint` | hint faults |
//! | `swapoff` | taking a swap device away |
//!
//! It may call: `alloc` and what is below it. It is called by: the driver.

use crate::alloc::Alloc;
use crate::memory::Memory;
use crate::reclaim::Reclaim;
use crate::scan::ScanControl;

pub(crate) mod access;
pub(crate) mod advise;
mod context_readahead;
mod cursor;
mod file_folio;
pub(crate) mod hint;
mod invalidate;
pub(crate) mod io;
mod read_around;
pub(crate) mod readahead;
pub(crate) mod swap_in;
pub(crate) mod swap_in_uncached;
pub(crate) mod swapoff;
mod window;
pub(crate) mod zap;

/// Access to all of the memory for faults: reclaim may change any part of it.
pub(crate) struct FaultContext<'a, W> {
    pub(crate) mem: &'a mut Memory,
    pub(crate) world: &'a mut W,
}

impl<W> FaultContext<'_, W> {
    /// A reclaim that aims at what `sc` says.
    #[inline(always)]
    pub(crate) fn reclaim_with(&mut self, sc: ScanControl) -> Reclaim<'_, W> {
        Reclaim { mem: self.mem, world: self.world, sc }
    }

    /// See [`Alloc`].
    #[inline(always)]
    pub(crate) fn alloc(&mut self) -> Alloc<'_, W> {
        Alloc { mem: self.mem, world: self.world }
    }
}
