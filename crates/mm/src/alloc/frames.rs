//! Frames: the fast path, direct reclaim and its throttling, and the out-of-memory verdict.
//!
//! Mechanism: `docs/mechanisms.md#zones-and-watermarks`, `docs/mechanisms.md#direct-reclaim`,
//! `docs/mechanisms.md#reclaim-throttling`, `docs/mechanisms.md#out-of-memory`.

use crate::alloc::Alloc;
use crate::ids::{MemcgId, NodeId, ZoneId};
use crate::lru::lru_list::UNEVICTABLE;
use crate::node::page_blocks::MigrateType;
use crate::node::throttle::EXHAUSTED_WAIT_NS;
use crate::node::zones::AllocWatermark;
use crate::scan::MAX_RECLAIM_RETRIES;
use crate::stat::Counter;
use crate::world::{Effect, ThrottleReason, World};

impl<W: World> Alloc<'_, W> {
    /// Takes `nr` frames for pages of a migratetype, where the node has a size. If that boosts the
    /// watermarks, kswapd is told. The error is the root memcg: no frame can be had now.
    #[inline(always)]
    pub(crate) fn take_frames(&mut self, nr: u64, kind: MigrateType) -> Result<ZoneId, MemcgId> {
        if !self.mem.frames.nodes.is_limited() {
            return Ok(ZoneId::default());
        }
        let zone = match self.mem.frames.nodes.take_for(self.mem.frames.nid, nr, AllocWatermark::Low, kind) {
            Some(zone) => zone,
            None => self.take_frames_slow(nr, kind)?,
        };
        self.mem.frames.pass_on_boost(&mut self.mem.pages, self.mem.now_ns, self.world, zone);
        Ok(zone)
    }

    #[cold]
    fn take_frames_slow(&mut self, nr: u64, kind: MigrateType) -> Result<ZoneId, MemcgId> {
        self.mem.frames.yielded = false;
        self.mem.frames.wake_all_kswapds(&mut self.mem.pages, self.mem.now_ns, self.world);
        let mark = if self.mem.frames.memalloc { AllocWatermark::None } else { AllocWatermark::Min };
        if let Some(zone) = self.mem.frames.nodes.take_for(self.mem.frames.nid, nr, mark, kind) {
            return Ok(zone);
        }
        let mut fruitless = 0;
        while fruitless < MAX_RECLAIM_RETRIES {
            if self.throttle_exhausted() {
                return Err(MemcgId::ROOT);
            }
            if self.world.task_yields() {
                self.mem.frames.yielded = true;
                return Err(MemcgId::ROOT);
            }
            // Reclaim may say more than it freed, so that a run ends.
            let before = self.mem.pages.work.reclaimed;
            self.reclaim_memcg(MemcgId::ROOT, nr);
            let reclaimed = self.mem.pages.work.reclaimed - before;
            if let Some(zone) = self.mem.frames.nodes.take_for(self.mem.frames.nid, nr, AllocWatermark::Min, kind) {
                return Ok(zone);
            }
            if self.mem.frames.reclaim_blocked {
                break;
            }
            // Free pages on per-CPU lists serve no other CPU: they go back to the zones.
            self.mem.frames.nodes.drain_pcp();
            if let Some(zone) = self.mem.frames.nodes.take_for(self.mem.frames.nid, nr, AllocWatermark::Min, kind) {
                return Ok(zone);
            }
            // Folios that wait in batches cannot be found on a list.
            self.mem.pages.drain_all();
            fruitless = if reclaimed > 0 { 0 } else { fruitless + 1 };
            if !self
                .mem
                .frames
                .nodes
                .ids()
                .any(|nid| self.mem.frames.nodes.get(nid).could_meet_min(self.reclaimable_pages(nid), nr))
            {
                break;
            }
        }
        // Nobody is killed for what nobody has asked for (`__GFP_NORETRY` of readahead).
        if !self.mem.frames.nofs && !self.is_io_pending(MemcgId::ROOT) {
            self.world.effect(Effect::Oom { memcg: MemcgId::ROOT });
        }
        Err(MemcgId::ROOT)
    }

    fn reclaimable_pages(&self, nid: NodeId) -> u64 {
        let sizes = self.mem.pages.tree_sizes(&self.mem.groups, MemcgId::ROOT, nid);
        let file = sizes[2] + sizes[3];
        file + if self.mem.swap.can_reclaim_anon(&self.mem.cfg, &self.mem.groups, &self.mem.frames, MemcgId::ROOT, nid)
        {
            sizes[..UNEVICTABLE].iter().sum::<u64>() - file
        } else {
            0
        }
    }

    /// Keeps a task out of direct reclaim while kswapd works on a node that is as good as empty.
    /// True: the task is throttled.
    fn throttle_exhausted(&mut self) -> bool {
        let node = self.mem.frames.nodes.get(self.mem.frames.nid);
        if !self.mem.frames.is_kswapd_first() || node.kswapd.is_hopeless() {
            return false;
        }
        self.mem.pages.count_machine(Counter::PgscanDirectThrottle, 1);
        self.mem.frames.throttle(self.world, ThrottleReason::Exhausted, EXHAUSTED_WAIT_NS);
        true
    }

    /// Whether the flusher was woken for dirty pages of a group that has no dirty limit of its own,
    /// and has not come to them yet.
    fn is_flusher_awaited(&self, over: MemcgId) -> bool {
        let (dirty, groups) = (&self.mem.cfg.dirty, &self.mem.groups);
        dirty.waits_for_flusher
            && !dirty.cgroup_writeback
            && self.mem.writeback.flush_all
            && over != MemcgId::ROOT
            && groups.memcgs.subtree(over).any(|m| groups.memcgs.get(m).dirty > 0)
    }

    /// Whether room may come from I/O that is under way, or from a run of reclaim that paused: then
    /// it is too early to call the group out of memory.
    pub(crate) fn is_io_pending(&self, over: MemcgId) -> bool {
        self.mem.frames.paused.is_some()
            || self.mem.pages.reads_pending > 0
            || !self.mem.frames.migrating.is_empty()
            || self.mem.swap.slots.discards_pending()
            || self.mem.writeback.is_write_pending(&self.mem.groups, over)
            || self.is_flusher_awaited(over)
    }
}
