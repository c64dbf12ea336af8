//! Places for pages that are on their way out of memory: windows of 64 pages beside the region.
//!
//! Which of them are free is [`Places`]'s affair.

use std::io;

use crate::calls;
use crate::core::Places;
use crate::mem::Mapping;
use crate::threads::fatal;
use crate::uffd::PAGE;

pub(crate) use crate::core::WINDOW;

/// Empties places of the windows at `base`, neighbours by one call: each interrupts other CPUs.
///
/// # Safety
/// They were given out, and nobody refers to what is in them.
pub(crate) unsafe fn empty(base: usize, places: &mut [u32]) {
    places.sort_unstable();
    for run in places.chunk_by(|a, b| a + 1 == *b) {
        let (start, len) = (base + run[0] as usize * PAGE, run.len() * PAGE);
        // SAFETY: that nobody is surprised is the caller's contract.
        if let Err(e) = unsafe { calls::discard(start, len) } {
            fatal(&format!("discarding memory: {e}"));
        }
    }
}

/// The windows, and which places of them are free.
#[derive(Debug)]
pub(crate) struct Staging {
    mapping: Mapping,
    places: Places,
}

impl Staging {
    pub(crate) fn new(windows: usize) -> io::Result<Staging> {
        Ok(Staging { mapping: Mapping::new(windows * WINDOW * PAGE)?, places: Places::new(windows) })
    }

    pub(crate) fn address(&self, place: u32) -> usize {
        self.mapping.start() + place as usize * PAGE
    }

    /// As [`Places::take`].
    pub(crate) fn take(&mut self, n: usize) -> Vec<u32> {
        self.places.take(n)
    }

    /// As [`Places::give_back`].
    pub(crate) fn give_back(&mut self, place: u32) {
        self.places.give_back(place);
    }

    /// Places that are not free.
    pub(crate) fn in_use(&self) -> u64 {
        self.places.in_use()
    }
}
