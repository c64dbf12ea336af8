//! Throttling: which tasks wait for reclaim, for which reason, and when they go on.

use crate::config::Config;
use crate::node::frames::Frames;
use crate::scan::ScanControl;
use crate::world::{Ack, Effect, ThrottleReason, World};

/// A timer tick, at 250 a second.
pub(crate) const TICK_NS: u64 = 4_000_000;
/// The longest wait of a task for writeback, and where memory is exhausted (reclaim throttling).
pub(crate) const WRITEBACK_WAIT_NS: u64 = 100_000_000;
pub(crate) const EXHAUSTED_WAIT_NS: u64 = 1_000_000_000;

/// Tasks that wait for reclaim, by reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Throttled {
    pub(crate) waiters: [u64; ThrottleReason::ALL.len()],
    /// Pages marked for reclaim that were written since the first task waited.
    pub(crate) written: u64,
}

impl Frames {
    /// Next to nothing is free near the CPU, and kswapd is about to change that.
    pub(crate) fn is_kswapd_first(&self) -> bool {
        let node = self.nodes.get(self.nid);
        node.is_exhausted() && node.kswapd.awake
    }

    pub(crate) fn throttle<W: World>(&mut self, w: &mut W, reason: ThrottleReason, max_wait_ns: u64) {
        if w.effect(Effect::Throttle { reason, max_wait_ns }) == Ack::Pending {
            if reason == ThrottleReason::Writeback && self.throttled.waiters[reason as usize] == 0 {
                self.throttled.written = 0;
            }
            self.throttled.waiters[reason as usize] += 1;
        }
    }

    /// A throttled task waited long enough by itself.
    pub(crate) fn throttle_ended(&mut self, reason: ThrottleReason) {
        let n = &mut self.throttled.waiters[reason as usize];
        *n = n.saturating_sub(1);
    }

    fn unthrottle<W: World>(&mut self, w: &mut W, reason: ThrottleReason) {
        if std::mem::take(&mut self.throttled.waiters[reason as usize]) > 0 {
            w.effect(Effect::Unthrottle { reason });
        }
    }

    /// kswapd goes to sleep: nobody has anything to wait for.
    pub(crate) fn unthrottle_all<W: World>(&mut self, w: &mut W) {
        ThrottleReason::ALL
            .into_iter()
            .filter(|r| !matches!(r, ThrottleReason::Dirty | ThrottleReason::High))
            .for_each(|reason| self.unthrottle(w, reason));
    }

    /// After a pass of kswapd: wakes tasks that made no progress if the pass freed more than an
    /// eighth of the pages it scanned, and tasks throttled by exhausted memory once there is room.
    pub(crate) fn relieve_throttled<W: World>(&mut self, w: &mut W, sc: &ScanControl) {
        if sc.nr_reclaimed > sc.nr_scanned >> 3 {
            self.unthrottle(w, ThrottleReason::NoProgress);
        }
        if !self.nodes.get(sc.nid).is_exhausted() {
            self.unthrottle(w, ThrottleReason::Exhausted);
        }
    }

    /// Pages that reclaim waits for were written: 32 a waiter are enough to go on.
    pub(crate) fn note_reclaim_written<W: World>(&mut self, cfg: &Config, w: &mut W, nr: u64) {
        let waiting = self.throttled.waiters[ThrottleReason::Writeback as usize];
        self.throttled.written += nr;
        if waiting > 0 && self.throttled.written > waiting * cfg.lru.swap_cluster_max {
            self.throttled.written = 0;
            self.unthrottle(w, ThrottleReason::Writeback);
        }
    }

    /// A task that dirties pages faster than they can be written waits (see `dirty`).
    pub(crate) fn throttle_dirtier<W: World>(&mut self, w: &mut W) {
        self.throttle(w, ThrottleReason::Dirty, WRITEBACK_WAIT_NS);
    }

    /// Whether anyone waits for dirty pages to be written.
    pub(crate) fn is_dirtier_waiting(&self) -> bool {
        self.throttled.waiters[ThrottleReason::Dirty as usize] > 0
    }

    /// Dirty pages are few again.
    pub(crate) fn relieve_dirtiers<W: World>(&mut self, w: &mut W) {
        self.unthrottle(w, ThrottleReason::Dirty);
    }
}
