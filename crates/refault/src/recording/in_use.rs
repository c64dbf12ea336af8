//! Pages that programs have mapped, and may be using.
//!
//! A recording has the fault that maps a page, and no touch after it: code that runs all the time
//! looks like code that ran once. The recorded kernel may have kept such pages for their use, or
//! have had no need of their room. Replayed once without touches and once with all that there can
//! be, a change has bounds. Programs are between; where both differ on the recorded machine, its
//! kernel says where.

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

/// Share of the accesses that a run of the recorded machine may be off for other reasons: as far as
/// `size` and `whatif` trust a recording as a whole.
const OFF: f64 = 0.005;

/// Misses of the recorded machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedMisses {
    /// Misses without touches of what is mapped.
    pub(crate) idle: f64,
    /// Misses with touches of all of it.
    pub(crate) in_use: f64,
    /// Misses of the kernel.
    pub(crate) kernel: f64,
    /// Accesses.
    pub(crate) accesses: f64,
}

impl RecordedMisses {
    /// The largest share of the way from idle to in use that the kernel leaves open, 0 to 1.
    pub(crate) fn most_in_use(self) -> f64 {
        let off = OFF * self.accesses;
        let way = self.in_use - self.idle;
        if way.abs() <= off {
            return 1.0;
        }
        ((self.kernel - self.idle + off * way.signum()) / way).clamp(0.0, 1.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_much_may_be_in_use() {
        let of =
            |in_use: f64, kernel: f64| RecordedMisses { idle: 100.0, in_use, kernel, accesses: 2000.0 }.most_in_use();
        // Ten misses of distance are allowed.
        assert_eq!([of(200.0, 100.0), of(200.0, 140.0), of(200.0, 195.0), of(200.0, 50.0)], [0.1, 0.5, 1.0, 0.0]);
        assert_eq!([of(110.0, 100.0), of(92.0, 300.0)], [1.0, 1.0], "today's machine does not tell");
        assert_eq!(of(50.0, 75.0), 0.7, "fewer misses with more in use");
    }
}
