//! `memory.high` of whole programs.

use refault_mm::{MemcgLimits, ThrottleReason};

use super::Shared;
use super::core::Core;
use super::wake::wake_at;
use crate::core::{MOST_LEAVING, Released};
use crate::error::Error;
use crate::sync::MutexGuard;
use crate::uffd::PAGE;

/// Where somebody waits: the process and the address.
pub(super) type Place = (usize, usize);

impl Shared {
    /// Lets threads go on whose faults were served, now or later. Pages that reclaim orders out for
    /// `memory.high` have left and are free before the engine says how long to wait; else all
    /// threads would wait for pages that go soon.
    #[cold]
    pub(super) fn resume_faults<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        for _ in 0..2 {
            if !core.engine.is_over_high() {
                break;
            }
            core.memory.high.most_leaving = MOST_LEAVING;
            let core_now = &mut *core;
            core_now.engine.reclaim_over_high(&mut core_now.memory);
            core.memory.high.most_leaving = usize::MAX;
            core.fill_others();
            core = self.evict_round(core);
            self.tick(&mut core);
        }
        core.release_held();
        core.memory.free_slots();
        core
    }
}

impl Core {
    /// Sets `memory.high`.
    pub(super) fn set_high(&mut self, bytes: usize, swap_pages: u64) -> Result<(), Error> {
        self.high_pages = (bytes != usize::MAX).then_some((bytes / PAGE) as u64);
        self.memory.high.holds = self.high_pages.is_some();
        let high = self.high_pages.unwrap_or(u64::MAX);
        let limits = MemcgLimits { high, max: u64::MAX, swap_max: swap_pages, ..MemcgLimits::default() };
        self.engine.set_memcg_limits(&mut self.memory, self.group, &limits).map_err(Error::Config)
    }

    /// Lets the threads go on whose faults were served; they wait if their group is above
    /// `memory.high`.
    fn release_held(&mut self) {
        if self.engine.is_over_high() {
            self.memory.high.most_leaving = MOST_LEAVING;
            self.engine.return_to_user(&mut self.memory);
            self.memory.high.most_leaving = usize::MAX;
            self.fill_others();
        }
        match self.memory.high.release(self.now_ns) {
            Released::Now(places) => self.wake_all(places),
            Released::Later(n, ns) => {
                self.memory.counts.throttled += n;
                self.memory.counts.throttled_ns += ns;
            }
        }
    }

    fn wake_all(&self, places: Vec<Place>) {
        for (space, address) in places {
            if let Some(uffd) = self.uffd(space) {
                wake_at(&uffd, address, PAGE);
            }
        }
    }

    /// Lets threads go on whose sleep is over. Returns the nanoseconds until the next sleep ends.
    pub(super) fn wake_sleepers(&mut self) -> Option<u64> {
        for places in self.memory.high.take_due(self.now_ns) {
            self.engine.throttle_ended(ThrottleReason::High);
            self.wake_all(places);
        }
        self.memory.high.next(self.now_ns)
    }
}
