//! Places for pages that are on their way out of memory: windows of 64 pages beside the region.
//!
//! `core/places.rs` knows which of the places are free.

use crate::calls;
use crate::threads::fatal;
use crate::uffd::PAGE;

pub(crate) use crate::core::WINDOW;

/// Empties places of the windows at `base`, neighbours by one call: each interrupts other CPUs.
///
/// # Safety
/// The places were given out, and nobody refers to their content.
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
