//! Reclaim for a memcg at its limit: priorities, the walk over the tree, shadow-node shrinking.
//!
//! Mechanism: `docs/mechanisms.md#reclaim`, `docs/mechanisms.md#direct-reclaim`.

use crate::config::lru::{Deactivation, Lru};
use crate::config::memcg::MemcgWalk;
use crate::ids::MemcgId;
use crate::lru::lru_list::{ACTIVE_FILE, ANON, FILE, INACTIVE_ANON, INACTIVE_FILE, is_low};
use crate::lru::multi_gen::MIN_LRU_BATCH;
use crate::memcg::group::MemcgState;
use crate::memcg::protection::BelowProtection;
use crate::node::throttle::{TICK_NS, WRITEBACK_WAIT_NS};
use crate::reclaim::Reclaim;
use crate::reclaim::policy::ReclaimPolicy;
use crate::scan::{DEF_PRIORITY, PassStart};
use crate::world::{ThrottleReason, World};

impl<W: World> Reclaim<'_, W> {
    /// Reclaim throttling, after a pass over the node: what it met decides about its flags and who
    /// waits.
    fn note_pass(&mut self, reclaimed: u64) {
        let seen = std::mem::take(&mut self.sc.seen);
        if self.sc.kswapd {
            let node = self.mem.frames.nodes.get_mut(self.sc.nid);
            node.writeback |= seen.writeback > 0 && seen.writeback == seen.taken;
            node.dirty |= seen.file_taken > 0 && seen.unqueued_dirty == seen.file_taken;
            if seen.immediate > 0 {
                self.mem.frames.throttle(self.world, ThrottleReason::Writeback, WRITEBACK_WAIT_NS);
            }
        }
        let revival = self.mem.cfg.lru.kswapd_revival;
        let node = self.mem.frames.nodes.get_mut(self.sc.nid);
        // Runs of kswapd itself are looked at when they end.
        if reclaimed > 0 && !self.sc.kswapd {
            node.revive_kswapd(revival, self.sc.reclaim_idx);
        }
        if self.sc.is_cgroup_reclaim() {
            return;
        }
        node.congested |= seen.dirty > 0 && seen.dirty == seen.congested;
        if reclaimed == 0 {
            self.sc.trim_pass_failed |= self.sc.cache_trim_mode;
        }
        if !self.sc.kswapd && !node.kswapd.is_hopeless() {
            if node.congested && seen.dirty > 0 {
                self.mem.frames.throttle(self.world, ThrottleReason::Congested, TICK_NS);
            } else if self.sc.priority == 1 && self.sc.nr_reclaimed == 0 {
                self.mem.frames.throttle(self.world, ThrottleReason::NoProgress, TICK_NS);
            }
        }
    }

    /// Direct reclaim as `sc` says: all priorities, again with less restraint if that frees
    /// nothing; returns how many it freed.
    pub(crate) fn try_to_free(&mut self) -> u64 {
        loop {
            self.run_priorities();
            if self.sc.interrupted {
                self.mem.frames.reclaim_blocked = true;
                self.mem.frames.paused = Some(Box::new(self.sc.clone()));
                return self.sc.nr_reclaimed;
            }
            self.mem.pages.snapshot_refaults(&self.mem.groups, self.sc.target);
            self.mem.frames.reclaim_blocked = self.sc.blocked;
            if self.sc.nr_reclaimed > 0 || self.sc.blocked {
                return self.sc.nr_reclaimed;
            }
            // Zero progress: once with the whole tree, once more with deactivation forced, once
            // beyond `memory.low`.
            if !self.sc.memcg_full_walk {
                self.sc.memcg_full_walk = true;
            } else if self.sc.skipped_deactivate {
                self.sc.force_deactivate = true;
                self.sc.skipped_deactivate = false;
            } else if self.sc.low_skipped {
                (self.sc.low_reclaim, self.sc.low_skipped, self.sc.force_deactivate) = (true, false, false);
            } else {
                return 0;
            }
        }
    }

    /// Asked before a batch: whether swap takes more writes. A request for reclaim that cannot wait
    /// is not held up, nor are pages that zswap takes.
    pub(crate) fn check_write_queue(&mut self) {
        self.sc.queue_full = (!self.sc.proactive || self.sc.waits_for_queue)
            && self.mem.cfg.zswap.is_none()
            && self.world.is_write_queue_full();
    }

    /// Passes at lower and lower priorities. A run that paused goes on with the pass it was at, or
    /// with the next one.
    fn run_priorities(&mut self) {
        // Since the run paused anything may have happened.
        (self.sc.empty_since, self.sc.held) = (0, None);
        let first = match (std::mem::take(&mut self.sc.interrupted), self.sc.at.is_some()) {
            (false, _) => DEF_PRIORITY,
            (true, true) => self.sc.priority,
            (true, false) => self.sc.priority - 1,
        };
        for priority in (0..=first).rev() {
            if self.sc.at.is_none() {
                self.sc.priority = priority;
                self.sc.nr_scanned = 0;
            }
            self.shrink_zones();
            if self.sc.interrupted || self.sc.nr_reclaimed >= self.sc.nr_to_reclaim || self.sc.blocked {
                return;
            }
            if self.sc.priority > 0 && self.pauses() {
                self.sc.interrupted = true;
                return;
            }
        }
    }

    /// A pass over every node, the nearest first; or the rest of one, from the group on at which it
    /// paused.
    fn shrink_zones(&mut self) {
        for i in 0..self.mem.frames.nodes.all.len() {
            let nid = self.mem.frames.nodes.zonelist(self.mem.frames.nid)[i];
            if self.sc.at.is_some() && nid != self.sc.nid {
                continue;
            }
            self.sc.nid = nid;
            self.shrink_node();
            if self.sc.blocked || self.sc.interrupted {
                return;
            }
            self.sc.at = None;
        }
    }

    /// Whether the run of a task pauses, so that writes end before it goes on. Where all writes
    /// fail there is nothing to wait for.
    fn pauses(&mut self) -> bool {
        self.sc.may_pause
            && !self.sc.blocked
            && self.mem.writeback.is_hopeful()
            && self.world.reclaim_pauses(&self.mem.pages.work)
    }

    /// Between two batches: whether somebody else is to have the processor (`cond_resched`), or
    /// time is to go on. A task pauses in the middle of a pass where that is over one group.
    #[inline]
    pub(crate) fn yields(&mut self) -> bool {
        if self.sc.kswapd {
            return !self.sc.blocked && self.world.kswapd_yields(&self.mem.pages.work);
        }
        self.sc.may_pause
            && self.sc.is_cgroup_reclaim()
            && !self.mem.groups.memcgs.has_children(self.sc.target)
            && self.pauses()
    }

    /// One pass at one priority over the target's subtree on one node; it stops at the target
    /// unless a full walk is asked for.
    pub(crate) fn shrink_node(&mut self) {
        let start = match &self.sc.at {
            Some(at) => at.start,
            None => self.prepare_pass(),
        };
        self.shrink_memcgs();
        if self.sc.interrupted {
            self.sc.interrupt().start = start;
            return;
        }
        let reclaimed = self.sc.nr_reclaimed - start.nr_reclaimed;
        self.sc.nr_reclaimed += start.carried;
        self.note_vmpressure(self.sc.nr_scanned - start.nr_scanned);
        self.note_pass(reclaimed);
    }

    /// Returns the totals before the pass that begins. If the pass counts for itself, pages
    /// reclaimed so far are set aside.
    fn prepare_pass(&mut self) -> PassStart {
        let kind = self.mem.cfg.lru.kind;
        by_policy!(kind, P => P::prepare(self));
        let measured = self.sc.kswapd && by_policy!(kind, P => P::measures_passes(self.mem.cfg.memcg.selection));
        let carried = if measured { std::mem::take(&mut self.sc.nr_reclaimed) } else { 0 };
        #[cfg(test)]
        self.mem.groups.visits.push(None);
        PassStart { carried, nr_reclaimed: self.sc.nr_reclaimed, nr_scanned: self.sc.nr_scanned }
    }

    /// Tells vmpressure how many pages a pass over the machine scanned. Multi-gen LRU does not.
    fn note_vmpressure(&mut self, scanned: u64) {
        let tells = !self.sc.is_cgroup_reclaim() && self.mem.cfg.lru.kind != Lru::MultiGen;
        if tells && self.mem.groups.vmpressure.note(scanned) {
            self.world.wake_vmpressure();
        }
    }

    fn shrink_memcgs(&mut self) {
        if by_policy!(self.mem.cfg.lru.kind, P => P::shrink_memcgs(self)) {
            return;
        }
        if let Some(at) = &self.sc.at {
            return self.resume_walk(at.memcg);
        }
        if !self.mem.groups.memcgs.has_children(self.sc.target) {
            // The common case of a single group needs no walk.
            return self.shrink_one(self.sc.target);
        }
        let target = self.sc.target;
        let full = self.sc.memcg_full_walk || self.sc.kswapd || self.mem.cfg.memcg.walk == MemcgWalk::Whole;
        let start = if full { target } else { self.mem.groups.memcgs.resume(target, self.sc.nid) };
        let mut at = Some(start);
        // A protected group counts events. A request that has enough stops at the first group.
        let may_know = self.mem.cfg.lru.kind == Lru::TwoList
            && !self.mem.groups.memcgs.any_protected
            && self.sc.nr_reclaimed < self.sc.nr_to_reclaim;
        if let Some(memcgs) = self.mem.groups.empty.knows_all(&self.sc).filter(|_| may_know && start == target) {
            self.mem.pages.work.memcgs += memcgs;
            at = None;
        }
        let (mut memcgs, mut lowest) = (0, (start == target && at.is_some()).then_some(0));
        while let Some(m) = at {
            let known = if may_know { self.known_empty(m) } else { None };
            (memcgs, lowest) = (memcgs + 1, lowest.zip(known).map(|(all, one): (u32, u32)| all.max(one)));
            let shrunk = match known {
                Some(_) => {
                    self.note_visit(m);
                    true
                }
                None => self.shrink_unprotected(m),
            };
            if self.sc.blocked || self.sc.interrupted {
                return;
            }
            if !full && shrunk && self.sc.nr_reclaimed >= self.sc.nr_to_reclaim {
                return self.mem.groups.memcgs.set_cursor(target, self.sc.nid, Some(m));
            }
            at = self.mem.groups.memcgs.next_in(target, m);
        }
        if let Some(lowest) = lowest {
            self.sc.empty_pass = Some(self.mem.groups.empty.note_pass(self.sc.nid, lowest, memcgs));
        }
        if !full {
            self.mem.groups.memcgs.set_cursor(target, self.sc.nid, None);
        }
    }

    /// Finishes a walk of kswapd that was interrupted at a group. If the group is gone, the walk
    /// ends: the next pass sees all groups.
    fn resume_walk(&mut self, memcg: MemcgId) {
        if self.mem.groups.memcgs.get(memcg).state == MemcgState::Gone {
            return;
        }
        self.shrink_lists_of(memcg);
        let mut at = memcg;
        while !(self.sc.blocked || self.sc.interrupted) {
            let Some(next) = self.mem.groups.memcgs.next_in(self.sc.target, at) else { return };
            self.shrink_unprotected(next);
            at = next;
        }
    }

    /// Shrinks one group. Returns false, and does nothing, if its protection forbids that.
    fn shrink_unprotected(&mut self, memcg: MemcgId) -> bool {
        match self.mem.groups.memcgs.below_protection(self.sc.target, memcg) {
            BelowProtection::Min => return false,
            BelowProtection::Low if !self.sc.low_reclaim => {
                self.sc.low_skipped = true;
                return false;
            }
            BelowProtection::Low => self.mem.groups.memcgs.event(memcg, |e| &mut e.low),
            BelowProtection::None => {}
        }
        self.shrink_one(memcg);
        true
    }

    /// Multi-gen eviction: sets a priority at which one pass may meet the target.
    pub(crate) fn set_initial_priority(&mut self) {
        if self.sc.is_cgroup_reclaim() || self.sc.priority != DEF_PRIORITY || self.sc.nr_to_reclaim < MIN_LRU_BATCH {
            return;
        }
        let sizes = self.mem.pages.tree_sizes(&self.mem.groups, self.sc.target, self.sc.nid);
        let anon = if self.mem.swap.can_reclaim_anon(
            &self.mem.cfg,
            &self.mem.groups,
            &self.mem.frames,
            self.sc.target,
            self.sc.nid,
        ) {
            sizes[INACTIVE_ANON]
        } else {
            0
        };
        let bits = |n: u64| u64::BITS - n.leading_zeros();
        let estimate = bits(sizes[INACTIVE_FILE] + anon).saturating_sub(1 + bits(self.sc.nr_to_reclaim - 1));
        self.sc.priority = estimate.clamp(DEF_PRIORITY / 2, DEF_PRIORITY);
    }

    /// Multi-gen eviction: whether reclaim of the whole machine stops: it has the pages it wants,
    /// or, for kswapd, every zone is safe.
    pub(crate) fn should_abort_scan(&self) -> bool {
        if self.sc.blocked {
            return true;
        }
        if self.sc.is_cgroup_reclaim() {
            return false;
        }
        self.sc.nr_reclaimed >= self.sc.nr_to_reclaim.max(2)
            || (self.sc.kswapd
                && self.mem.cfg.memcg.stop_at_high_mark
                && self.mem.frames.nodes.get(self.sc.nid).is_safe(MIN_LRU_BATCH, self.sc.reclaim_idx))
    }

    pub(crate) fn note_visit(&mut self, memcg: MemcgId) {
        self.mem.pages.work.memcgs += 1;
        self.mem.groups.note_visit(memcg);
    }

    fn shrink_one(&mut self, memcg: MemcgId) {
        self.note_visit(memcg);
        self.shrink_lists_of(memcg);
    }

    fn shrink_lists_of(&mut self, memcg: MemcgId) {
        let v = self.mem.pages.lruvec_of(memcg, self.sc.nid);
        by_policy!(self.mem.cfg.lru.kind, P => P::shrink_lruvec(self, v));
        if self.sc.interrupted {
            self.sc.interrupt().memcg = memcg;
            return;
        }
        let priority = self.sc.priority;
        self.mem.memcontrol().shrink_slab(v, priority);
    }

    /// Balance of active and inactive: what this pass may deactivate, and whether there is easy
    /// cache to trim.
    pub(crate) fn prepare_scan_control(&mut self) {
        let v = &self.mem.pages.lruvecs[self.mem.pages.lruvec_of(self.sc.target, self.sc.nid).index()];
        let size = self.mem.pages.known_sizes(&self.mem.groups, self.sc.target, self.sc.nid);
        self.sc.cost = v.cost;
        for t in [ANON, FILE] {
            // The kernels before working-set detection had no refaults to challenge the active list
            // with, and kept file lists at 1 : 1.
            let old = !self.mem.pages.refaults_challenge_active();
            let refaulted = !old && self.mem.pages.refaulted_lately(&self.mem.groups, self.sc.target, self.sc.nid, t);
            let is_low = match self.mem.cfg.lru.inactive_ratio {
                ratio if ratio > 0 && t == FILE => size[INACTIVE_FILE] * ratio < size[ACTIVE_FILE],
                _ => is_low(&size, t, (!old || t != FILE).then_some(self.mem.cfg.lru.gib_pages)),
            };
            let coupled = self.mem.cfg.lru.deactivation == Deactivation::WithInactive && t == FILE;
            self.sc.may_deactivate[t] = self.sc.force_deactivate || refaulted || is_low || coupled;
        }
        self.sc.cache_trim_mode = self.mem.cfg.lru.whole(size[INACTIVE_FILE]) >> self.sc.priority > 0
            && !self.sc.may_deactivate[FILE]
            && !self.sc.cache_trim_mode_failed;
        // The node counts its own pages exactly.
        let size = if self.sc.is_cgroup_reclaim() {
            size
        } else {
            self.mem.pages.tree_sizes(&self.mem.groups, self.sc.target, self.sc.nid)
        };
        // The whole node: with next to no cache left only anon can make room.
        let file = size[INACTIVE_FILE] + size[ACTIVE_FILE];
        self.sc.file_is_tiny = !self.sc.is_cgroup_reclaim()
            && file + self.mem.frames.nodes.get(self.sc.nid).free_pages()
                <= self.mem.frames.nodes.get(self.sc.nid).high_pages()
            && !self.sc.may_deactivate[ANON]
            && self.mem.cfg.lru.whole(size[INACTIVE_ANON]) >> self.sc.priority > 0;
    }
}
