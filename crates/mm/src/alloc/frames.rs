//! Frames: the fast path, direct reclaim, its throttling, and what is out of memory (7.1, 7.3 to 7.5).

use crate::engine::Engine;
use crate::ids::{MemcgId, NodeId};
use crate::lru::lruvec::UNEVICTABLE;
use crate::node::node::{Mark, Node, Watermarks};
use crate::node::nodes::ZoneId;
use crate::reclaim::kswapd::KswapdStep;
use crate::reclaim::scan::ScanControl;
use crate::stat::{Counter, Work};
use crate::world::{Ack, Effect, ThrottleReason, World};

/// Rounds without progress before an allocation is given up.
const MAX_RECLAIM_RETRIES: u32 = 16;

/// So many writes that failed in a row, and those under way are no hope any more.
const HOPELESS_WRITES: u64 = 4096;

/// A timer tick, at 250 a second.
const TICK_NS: u64 = 4_000_000;
/// How long at most a task waits in each case (7.4).
pub(crate) const WRITEBACK_WAIT_NS: u64 = 100_000_000;
const EXHAUSTED_WAIT_NS: u64 = 1_000_000_000;

impl Engine {
    /// Frames for a charge, where the node has a size. The error is the root: nothing is left to reclaim.
    #[inline]
    pub(crate) fn take_frames<W: World>(&mut self, w: &mut W, nr: u64) -> Result<ZoneId, MemcgId> {
        if !self.frames.nodes.is_limited() {
            return Ok(ZoneId::default());
        }
        match self.frames.nodes.take(self.frames.nid, nr, Mark::Low) {
            Some(zone) => Ok(zone),
            None => self.take_frames_slow(w, nr),
        }
    }

    #[cold]
    fn take_frames_slow<W: World>(&mut self, w: &mut W, nr: u64) -> Result<ZoneId, MemcgId> {
        self.wake_all_kswapds(w);
        let mark = if self.frames.memalloc { Mark::None } else { Mark::Min };
        if let Some(zone) = self.frames.nodes.take(self.frames.nid, nr, mark) {
            return Ok(zone);
        }
        let mut fruitless = 0;
        while fruitless < MAX_RECLAIM_RETRIES {
            if self.throttle_exhausted(w) {
                return Err(MemcgId::ROOT);
            }
            // Reclaim may say more than it freed, so that a run ends.
            let before = self.pages.work.reclaimed;
            self.reclaim_memcg(w, MemcgId::ROOT, nr);
            let reclaimed = self.pages.work.reclaimed - before;
            if let Some(zone) = self.frames.nodes.take(self.frames.nid, nr, Mark::Min) {
                return Ok(zone);
            }
            if self.frames.reclaim_blocked {
                break;
            }
            // What waits in batches cannot be found on a list.
            self.drain_all();
            fruitless = if reclaimed > 0 { 0 } else { fruitless + 1 };
            if !self
                .frames
                .nodes
                .ids()
                .any(|nid| self.frames.nodes.get(nid).could_meet_min(self.reclaimable_pages(nid), nr))
            {
                break;
            }
        }
        if !self.is_io_pending(MemcgId::ROOT) {
            w.effect(Effect::Oom { memcg: MemcgId::ROOT });
        }
        Err(MemcgId::ROOT)
    }

    /// No node has what an allocation wants: all are to make some.
    pub(crate) fn wake_all_kswapds<W: World>(&mut self, w: &mut W) {
        for i in 0..self.frames.nodes.all.len() {
            self.wake_kswapd(w, self.frames.nodes.zonelist(self.frames.nid)[i]);
        }
    }

    fn reclaimable_pages(&self, nid: NodeId) -> u64 {
        let sizes = self.tree_sizes(MemcgId::ROOT, nid);
        let file = sizes[2] + sizes[3];
        file + if self.can_reclaim_anon(MemcgId::ROOT, nid) {
            sizes[..UNEVICTABLE].iter().sum::<u64>() - file
        } else {
            0
        }
    }

    /// Whether room may come from I/O that is under way: then it is too early for a verdict.
    pub(crate) fn is_io_pending(&self, over: MemcgId) -> bool {
        self.pages.reads_pending > 0
            || !self.frames.migrating.is_empty()
            || self.swap.slots.discards_pending()
            || self.is_write_pending(over)
    }

    /// Whether pages of a memcg or its descendants are being written, and there is hope that they will be.
    pub fn is_write_pending(&self, over: MemcgId) -> bool {
        let writes = self.groups.memcgs.subtree(over).any(|m| self.groups.memcgs.get(m).writeback > 0);
        writes && self.writeback.writes_failed < HOPELESS_WRITES
    }

    /// 7.3: direct reclaim stays out while kswapd works on a node that is as good as empty.
    fn throttle_exhausted<W: World>(&mut self, w: &mut W) -> bool {
        let node = self.frames.nodes.get(self.frames.nid);
        if !self.is_kswapd_first() || node.kswapd.is_hopeless() {
            return false;
        }
        self.count_machine(Counter::PgscanDirectThrottle, 1);
        self.throttle(w, ThrottleReason::Exhausted, EXHAUSTED_WAIT_NS);
        true
    }

    /// Next to nothing is free near the CPU, and kswapd is about to change that.
    pub(crate) fn is_kswapd_first(&self) -> bool {
        let node = self.frames.nodes.get(self.frames.nid);
        node.is_exhausted() && node.kswapd.awake
    }

    pub(crate) fn throttle<W: World>(&mut self, w: &mut W, reason: ThrottleReason, max_wait_ns: u64) {
        if w.effect(Effect::Throttle { reason, max_wait_ns }) == Ack::Pending {
            if reason == ThrottleReason::Writeback && self.frames.throttled.waiters[reason as usize] == 0 {
                self.frames.throttled.written = 0;
            }
            self.frames.throttled.waiters[reason as usize] += 1;
        }
    }

    /// A throttled task waited long enough by itself.
    pub fn throttle_ended(&mut self, reason: ThrottleReason) {
        let n = &mut self.frames.throttled.waiters[reason as usize];
        *n = n.saturating_sub(1);
    }

    fn unthrottle<W: World>(&mut self, w: &mut W, reason: ThrottleReason) {
        if std::mem::take(&mut self.frames.throttled.waiters[reason as usize]) > 0 {
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

    /// After a pass of kswapd: those who found nothing try again once it is worth it, those who were kept out once there is
    /// room.
    pub(crate) fn relieve_throttled<W: World>(&mut self, w: &mut W, sc: &ScanControl) {
        if sc.nr_reclaimed > sc.nr_scanned >> 3 {
            self.unthrottle(w, ThrottleReason::NoProgress);
        }
        if !self.frames.nodes.get(sc.nid).is_exhausted() {
            self.unthrottle(w, ThrottleReason::Exhausted);
        }
    }

    /// 7.4, after a pass over the node: what it met decides about its flags and who waits.
    pub(crate) fn note_pass<W: World>(&mut self, w: &mut W, sc: &mut ScanControl, reclaimed: u64) {
        let seen = std::mem::take(&mut sc.seen);
        if sc.kswapd {
            let node = self.frames.nodes.get_mut(sc.nid);
            node.writeback |= seen.writeback > 0 && seen.writeback == seen.taken;
            node.dirty |= seen.file_taken > 0 && seen.unqueued_dirty == seen.file_taken;
            if seen.immediate > 0 {
                self.throttle(w, ThrottleReason::Writeback, WRITEBACK_WAIT_NS);
            }
        }
        if sc.is_cgroup_reclaim() {
            return;
        }
        let node = self.frames.nodes.get_mut(sc.nid);
        node.congested |= seen.dirty > 0 && seen.dirty == seen.congested;
        if reclaimed > 0 {
            // Runs of kswapd itself are looked at when they end.
            if !sc.kswapd {
                node.kswapd.failures = 0;
            }
        } else {
            sc.trim_failed |= sc.cache_trim_mode;
        }
        if !sc.kswapd && !node.kswapd.is_hopeless() {
            if node.congested && seen.dirty > 0 {
                self.throttle(w, ThrottleReason::Congested, TICK_NS);
            } else if sc.priority == 1 && sc.nr_reclaimed == 0 {
                self.throttle(w, ThrottleReason::NoProgress, TICK_NS);
            }
        }
    }

    /// Pages that reclaim waits for were written: 32 a waiter are enough to go on.
    pub(crate) fn note_reclaim_written<W: World>(&mut self, w: &mut W, nr: u64) {
        let waiting = self.frames.throttled.waiters[ThrottleReason::Writeback as usize];
        self.frames.throttled.written += nr;
        if waiting > 0 && self.frames.throttled.written > waiting * self.cfg.swap_cluster_max {
            self.frames.throttled.written = 0;
            self.unthrottle(w, ThrottleReason::Writeback);
        }
    }

    /// A task that dirties pages faster than they can be written waits (see `dirty`).
    pub(crate) fn throttle_dirtier<W: World>(&mut self, w: &mut W) {
        self.throttle(w, ThrottleReason::Dirty, WRITEBACK_WAIT_NS);
    }

    /// Whether anyone waits for dirty pages to be written.
    pub(crate) fn is_dirtier_waiting(&self) -> bool {
        self.frames.throttled.waiters[ThrottleReason::Dirty as usize] > 0
    }

    /// Dirty pages are few again.
    pub(crate) fn relieve_dirtiers<W: World>(&mut self, w: &mut W) {
        self.unthrottle(w, ThrottleReason::Dirty);
    }

    /// What reclaim did since the last call.
    pub fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.pages.work)
    }

    /// Frames that the driver itself uses of the node (a compressed swap device in memory). They are taken even below the
    /// marks, since reclaim needs them; false: there are not so many.
    pub fn set_external_pages(&mut self, pages: u64) -> bool {
        self.frames.nodes.set_external(pages)
    }

    /// Whether the accesses that follow are of a task that reclaim waits for: it may take what is kept below the min mark, to the last frame, as
    /// a task of Linux with `PF_MEMALLOC`.
    pub fn set_memalloc(&mut self, memalloc: bool) {
        self.frames.memalloc = memalloc;
    }

    /// Free pages of all nodes; 0 without a size.
    pub fn free_pages(&self) -> u64 {
        self.frames.nodes.free_pages()
    }

    /// Free pages of a node.
    pub fn node_free_pages(&self, node: NodeId) -> u64 {
        self.frames.nodes.all.get(node.index()).map_or(0, Node::free_pages)
    }

    /// Zones of all nodes with their watermarks: (name, managed pages, free pages, marks).
    pub fn zones(&self) -> impl Iterator<Item = (&'static str, u64, u64, Watermarks)> + '_ {
        self.frames.nodes.ids().flat_map(|nid| self.node_zones(nid))
    }

    /// The same of one node, as `/proc/zoneinfo` has them.
    pub fn node_zones(&self, node: NodeId) -> impl Iterator<Item = (&'static str, u64, u64, Watermarks)> + '_ {
        let zones = self.frames.nodes.all.get(node.index()).into_iter().flat_map(|n| &n.zones);
        zones.map(|z| (z.name, z.managed, z.free, z.marks))
    }
}

/// kswapd run to its end at once, for drivers and tests without time.
impl Engine {
    /// Steps the kswapds of all nodes until they sleep; each at most `steps` times. True: all sleep.
    pub fn run_kswapd<W: World>(&mut self, w: &mut W, steps: usize) -> bool {
        let mut all_sleep = true;
        for nid in self.frames.nodes.ids() {
            all_sleep &= (0..steps).any(|_| self.kswapd_node_step(w, nid) == KswapdStep::Sleep);
        }
        all_sleep
    }
}
