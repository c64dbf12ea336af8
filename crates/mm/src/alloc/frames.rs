//! Frames: the fast path, direct reclaim, its throttling, and what is out of memory.
//!
//! Mechanism: `docs/mechanisms.md#zones-and-watermarks`, `docs/mechanisms.md#direct-reclaim`,
//! `docs/mechanisms.md#reclaim-throttling`, `docs/mechanisms.md#out-of-memory`.

use crate::alloc::Alloc;
use crate::ids::{MemcgId, NodeId, ZoneId};
use crate::lru::lruvec::UNEVICTABLE;
use crate::node::throttle::EXHAUSTED_WAIT_NS;
use crate::node::zones::Mark;
use crate::scan::MAX_RECLAIM_RETRIES;
use crate::stat::Counter;
use crate::world::{Effect, ThrottleReason, World};

impl<W: World> Alloc<'_, W> {
    /// Frames for a charge, where the node has a size. The error is the root: nothing is left to
    /// reclaim.
    #[inline]
    pub(crate) fn take_frames(&mut self, nr: u64) -> Result<ZoneId, MemcgId> {
        if !self.frames.nodes.is_limited() {
            return Ok(ZoneId::default());
        }
        match self.frames.nodes.take(self.frames.nid, nr, Mark::Low) {
            Some(zone) => Ok(zone),
            None => self.take_frames_slow(nr),
        }
    }

    #[cold]
    fn take_frames_slow(&mut self, nr: u64) -> Result<ZoneId, MemcgId> {
        self.frames.wake_all_kswapds(self.pages, self.now_ns, self.world);
        let mark = if self.frames.memalloc { Mark::None } else { Mark::Min };
        if let Some(zone) = self.frames.nodes.take(self.frames.nid, nr, mark) {
            return Ok(zone);
        }
        let mut fruitless = 0;
        while fruitless < MAX_RECLAIM_RETRIES {
            if self.throttle_exhausted() {
                return Err(MemcgId::ROOT);
            }
            // Reclaim may say more than it freed, so that a run ends.
            let before = self.pages.work.reclaimed;
            self.reclaim_memcg(MemcgId::ROOT, nr);
            let reclaimed = self.pages.work.reclaimed - before;
            if let Some(zone) = self.frames.nodes.take(self.frames.nid, nr, Mark::Min) {
                return Ok(zone);
            }
            if self.frames.reclaim_blocked {
                break;
            }
            // What other CPUs keep for themselves is of use to nobody else.
            self.frames.nodes.drain_pcp();
            if let Some(zone) = self.frames.nodes.take(self.frames.nid, nr, Mark::Min) {
                return Ok(zone);
            }
            // What waits in batches cannot be found on a list.
            self.pages.drain_all();
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
            self.world.effect(Effect::Oom { memcg: MemcgId::ROOT });
        }
        Err(MemcgId::ROOT)
    }

    fn reclaimable_pages(&self, nid: NodeId) -> u64 {
        let sizes = self.pages.tree_sizes(self.groups, MemcgId::ROOT, nid);
        let file = sizes[2] + sizes[3];
        file + if self.swap.can_reclaim_anon(self.cfg, self.groups, self.frames, MemcgId::ROOT, nid) {
            sizes[..UNEVICTABLE].iter().sum::<u64>() - file
        } else {
            0
        }
    }

    /// Direct reclaim: direct reclaim stays out while kswapd works on a node that is as good as
    /// empty.
    fn throttle_exhausted(&mut self) -> bool {
        let node = self.frames.nodes.get(self.frames.nid);
        if !self.frames.is_kswapd_first() || node.kswapd.is_hopeless() {
            return false;
        }
        self.pages.count_machine(Counter::PgscanDirectThrottle, 1);
        self.frames.throttle(self.world, ThrottleReason::Exhausted, EXHAUSTED_WAIT_NS);
        true
    }

    /// Whether room may come from I/O that is under way: then it is too early for a verdict.
    pub(crate) fn is_io_pending(&self, over: MemcgId) -> bool {
        self.pages.reads_pending > 0
            || !self.frames.migrating.is_empty()
            || self.swap.slots.discards_pending()
            || self.writeback.is_write_pending(self.groups, over)
    }
}
