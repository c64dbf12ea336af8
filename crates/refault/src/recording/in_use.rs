//! Pages that programs have mapped, and may be using.
//!
//! A recording has the fault that maps a page, and no touch after it: code that runs all the time
//! looks like code that ran once. The recorded kernel may have kept such pages for their use, or
//! have had no need of their room. Replayed once without touches and once with all that there can
//! be, a change has bounds.

use super::run::Run;
use crate::replay::machine::MAPPED;
use refault_mm::Counter;
use refault_trace::{PackedAccess, Via};

/// Touches between two evictions of the whole memory: more of them change nothing.
const TOUCHES_A_TURNOVER: u64 = 32;

/// Moments of touches.
pub(super) struct InUse {
    /// Evicted pages between two of them.
    every: u64,
    /// Evicted pages (`pgsteal_file`) at the next.
    next: u64,
}

impl InUse {
    /// Moments in a memory of so many pages.
    pub(super) fn new(memory_pages: u64) -> InUse {
        let every = (memory_pages / TOUCHES_A_TURNOVER).max(1);
        InUse { every, next: every }
    }
}

impl Run<'_> {
    /// Touches all pages that are mapped here and in memory in the recorded kernel, from time to
    /// time. They do not count as accesses.
    pub(super) fn touch_mapped(&mut self) {
        let stolen = self.cell.engine.vmstat().get(Counter::PgstealFile);
        let Some(in_use) = self.in_use.as_mut().filter(|in_use| stolen >= in_use.next) else { return };
        in_use.next = stolen + in_use.every;
        for id in 0..self.cell.machine.pte.len() as u32 {
            let is_mapped = self.cell.machine.pte[id as usize] & MAPPED != 0;
            if is_mapped && self.cache.has(id) && !self.elsewhere.contains(&id) {
                self.cell.step(PackedAccess::new(id, false, Via::Map, false));
            }
        }
    }
}
