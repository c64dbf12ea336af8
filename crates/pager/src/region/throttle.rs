//! `memory.high` of a region.

use std::time::Duration;

use refault_mm::ThrottleReason;

use super::core::Core;
use crate::high::{MOST_LEAVING, Released};

impl Core {
    /// Orders out what was charged beyond `memory.high`, or frees what was written of it.
    pub(super) fn reclaim_high(&mut self) {
        self.memory.high.most_leaving = MOST_LEAVING;
        self.engine.reclaim_over_high(&mut self.memory);
        self.memory.high.most_leaving = usize::MAX;
    }

    /// The threads whose faults were served go on, or wait if their group went beyond `memory.high`.
    pub(super) fn release_held(&mut self) {
        if self.engine.is_over_high() {
            self.memory.high.most_leaving = MOST_LEAVING;
            self.engine.return_to_user(&mut self.memory);
            self.memory.high.most_leaving = usize::MAX;
        }
        match self.memory.high.release() {
            Released::Now(pages) => pages.into_iter().for_each(|p| self.wake(p)),
            Released::Later(n, ns) => {
                self.memory.counts.throttled += n;
                self.memory.counts.throttled_ns += ns;
            }
        }
    }

    /// Those whose time has come go on. Returns how long it is until the next.
    pub(super) fn wake_sleepers(&mut self) -> Option<Duration> {
        for pages in self.memory.high.take_due() {
            self.engine.throttle_ended(ThrottleReason::High);
            pages.into_iter().for_each(|p| self.wake(p));
        }
        self.memory.high.next()
    }

    /// All of them do: a limit was changed.
    pub(super) fn wake_all_sleepers(&mut self) {
        self.memory.high.end_all();
        self.wake_sleepers();
    }
}
