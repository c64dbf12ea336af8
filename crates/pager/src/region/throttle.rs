//! `memory.high`: faults that are served, and wait. The engine says for how long.
//!
//! A page is put in its place without waking who faulted on it. When the engine has reclaimed and said how long to sleep, that
//! thread goes on, at once or later. It sleeps in its fault, so no other thread is held up, nor does the pager spend one on it.

use std::time::{Duration, Instant};

use refault_mm::ThrottleReason;

use super::core::Core;

/// Pages that may be ordered out for one return: a batch of charges.
const MOST_LEAVING: usize = 64;

impl Core {
    /// Faults were served whose threads do not go on yet.
    pub(super) fn has_held(&self) -> bool {
        !self.memory.control.held.is_empty()
    }

    /// Orders out what was charged beyond `memory.high`, or frees what was written of it.
    pub(super) fn reclaim_high(&mut self) {
        self.memory.control.most_leaving = MOST_LEAVING;
        self.engine.reclaim_over_high(&mut self.memory);
        self.memory.control.most_leaving = usize::MAX;
    }

    /// The threads whose faults were served go on, or wait if their group went beyond `memory.high`.
    pub(super) fn release_held(&mut self) {
        if self.engine.is_over_high() {
            self.memory.control.most_leaving = MOST_LEAVING;
            self.engine.return_to_user(&mut self.memory);
            self.memory.control.most_leaving = usize::MAX;
        }
        let pages = std::mem::take(&mut self.memory.control.held);
        match std::mem::take(&mut self.memory.control.sleep_ns) {
            0 => pages.into_iter().for_each(|p| self.wake(p)),
            ns => {
                self.memory.counts.throttled += pages.len() as u64;
                self.memory.counts.throttled_ns += ns;
                let control = &mut self.memory.control;
                control.sleepers.push((Instant::now() + Duration::from_nanos(ns), pages));
                control.new_sleepers = true;
            }
        }
    }

    /// Those whose time has come go on. Returns how long it is until the next.
    pub(super) fn wake_sleepers(&mut self) -> Option<Duration> {
        self.memory.control.new_sleepers = false;
        if self.memory.control.sleepers.is_empty() {
            return None;
        }
        let now = Instant::now();
        let due: Vec<_> = self.memory.control.sleepers.extract_if(.., |(until, _)| *until <= now).collect();
        for (_, pages) in due {
            self.engine.throttle_ended(ThrottleReason::High);
            pages.into_iter().for_each(|p| self.wake(p));
        }
        self.memory.control.sleepers.iter().map(|(until, _)| until.saturating_duration_since(now)).min()
    }

    /// All of them do: a limit was changed.
    pub(super) fn wake_all_sleepers(&mut self) {
        self.memory.control.sleepers.iter_mut().for_each(|(until, _)| *until = Instant::now());
        self.wake_sleepers();
    }
}
