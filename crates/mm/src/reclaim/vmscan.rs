//! Reclaim for a memcg at its limit: priorities, the walk over the tree, shadow-node shrinking (2.8, 7.3).

use crate::config::MemcgSelection;
use crate::engine::Engine;
use crate::ids::{MemcgId, NodeId};
use crate::lru::lruvec::{ACTIVE_FILE, ANON, FILE, INACTIVE_ANON, INACTIVE_FILE, is_low};
use crate::lru::multi_gen::MIN_LRU_BATCH;
use crate::memcg::memcg_lru::Rotation;
use crate::memcg::protection::Shield;
use crate::reclaim::scan::{DEF_PRIORITY, ScanControl};
use crate::stat::Counter;
use crate::world::World;

impl Engine {
    /// Frees at least `nr` pages of a memcg and its descendants if it can; returns how many it freed.
    pub(crate) fn reclaim_memcg<W: World>(&mut self, w: &mut W, memcg: MemcgId, nr: u64) -> u64 {
        let nr = nr.max(self.cfg.swap_cluster_max);
        let mut sc = ScanControl::for_memcg(memcg, nr, None);
        if !sc.is_cgroup_reclaim() {
            self.count_machine(Counter::Allocstall, 1);
        }
        self.try_to_free(w, &mut sc)
    }

    /// Direct reclaim as `sc` says: all priorities, again with less restraint if that frees nothing; returns how many it freed.
    pub(crate) fn try_to_free<W: World>(&mut self, w: &mut W, sc: &mut ScanControl) -> u64 {
        loop {
            self.run_priorities(w, sc);
            self.snapshot_refaults(sc.target);
            self.frames.reclaim_blocked = sc.blocked;
            if sc.nr_reclaimed > 0 || sc.blocked {
                return sc.nr_reclaimed;
            }
            // Zero progress: once with the whole tree, once more with deactivation forced, once beyond `memory.low`.
            if !sc.memcg_full_walk {
                sc.memcg_full_walk = true;
            } else if sc.skipped_deactivate {
                sc.force_deactivate = true;
                sc.skipped_deactivate = false;
            } else if sc.low_skipped {
                (sc.low_reclaim, sc.low_skipped, sc.force_deactivate) = (true, false, false);
            } else {
                return 0;
            }
        }
    }

    /// Asked before a batch: whether swap takes more writes. Who asks for reclaim and cannot wait is not held up, nor is what zswap takes.
    pub(crate) fn look_at_queue<W: World>(&self, w: &W, sc: &mut ScanControl) {
        sc.queue_full = (!sc.proactive || sc.held_up) && self.cfg.zswap.is_none() && w.is_write_queue_full();
    }

    fn run_priorities<W: World>(&mut self, w: &mut W, sc: &mut ScanControl) {
        sc.quiet_since = 0;
        for priority in (0..=DEF_PRIORITY).rev() {
            sc.priority = priority;
            sc.nr_scanned = 0;
            self.shrink_zones(w, sc);
            if sc.nr_reclaimed >= sc.nr_to_reclaim || sc.blocked {
                return;
            }
        }
    }

    /// A pass over every node, the nearest first.
    fn shrink_zones<W: World>(&mut self, w: &mut W, sc: &mut ScanControl) {
        for i in 0..self.frames.nodes.all.len() {
            sc.nid = self.frames.nodes.zonelist(self.frames.nid)[i];
            self.shrink_node(w, sc);
            if sc.blocked {
                return;
            }
        }
    }

    /// One pass at one priority over the target's subtree on one node; it stops at the target unless a full walk is asked for.
    pub(crate) fn shrink_node<W: World>(&mut self, w: &mut W, sc: &mut ScanControl) {
        let memcg_lru = self.cfg.memcgs == MemcgSelection::MemcgLru;
        if self.is_multi_gen() {
            if memcg_lru {
                self.set_initial_priority(sc);
            }
        } else {
            self.prepare_scan_control(sc);
        }
        // With the memcg LRU every pass of kswapd is measured by itself.
        let carried =
            if self.is_multi_gen() && memcg_lru && sc.kswapd { std::mem::take(&mut sc.nr_reclaimed) } else { 0 };
        let before = sc.nr_reclaimed;
        #[cfg(test)]
        self.groups.visits.push(None);
        self.shrink_memcgs(w, sc);
        let reclaimed = sc.nr_reclaimed - before;
        sc.nr_reclaimed += carried;
        self.note_pass(w, sc, reclaimed);
    }

    fn shrink_memcgs<W: World>(&mut self, w: &mut W, sc: &mut ScanControl) {
        if self.is_multi_gen() && self.cfg.memcgs != MemcgSelection::MemcgLru {
            return self.shrink_proportionally(w, sc);
        }
        if self.is_multi_gen() && !sc.is_cgroup_reclaim() {
            return self.shrink_many(w, sc);
        }
        if !self.groups.memcgs.has_children(sc.target) {
            // The common case of a single group needs no walk.
            return self.shrink_one(w, sc.target, sc);
        }
        let target = sc.target;
        let full = sc.memcg_full_walk || sc.kswapd;
        let mut at = Some(if full { target } else { self.groups.memcgs.resume(target, sc.nid) });
        while let Some(m) = at {
            let shrunk = self.shrink_unprotected(w, m, sc);
            if sc.blocked {
                return;
            }
            if !full && shrunk && sc.nr_reclaimed >= sc.nr_to_reclaim {
                return self.groups.memcgs.set_cursor(target, sc.nid, Some(m));
            }
            at = self.groups.memcgs.next_in(target, m);
        }
        if !full {
            self.groups.memcgs.set_cursor(target, sc.nid, None);
        }
    }

    /// Shrinks one group, unless its protection forbids it. False: it does.
    fn shrink_unprotected<W: World>(&mut self, w: &mut W, memcg: MemcgId, sc: &mut ScanControl) -> bool {
        match self.groups.memcgs.shield(sc.target, memcg) {
            Shield::Min => return false,
            Shield::Low if !sc.low_reclaim => {
                sc.low_skipped = true;
                return false;
            }
            Shield::Low => self.groups.memcgs.event(memcg, |e| &mut e.low),
            Shield::None => {}
        }
        self.shrink_one(w, memcg, sc);
        true
    }

    /// That of the request, or of the group, or of the machine.
    pub(crate) fn swappiness(&self, memcg: MemcgId, sc: &ScanControl) -> u32 {
        sc.swappiness.or(self.groups.memcgs.get(memcg).swappiness).unwrap_or(self.cfg.swappiness)
    }

    /// 4.6: a priority from which the target may be met in one go.
    fn set_initial_priority(&self, sc: &mut ScanControl) {
        if sc.is_cgroup_reclaim() || sc.priority != DEF_PRIORITY || sc.nr_to_reclaim < MIN_LRU_BATCH {
            return;
        }
        let sizes = self.tree_sizes(sc.target, sc.nid);
        let anon = if self.can_reclaim_anon(sc.target, sc.nid) { sizes[INACTIVE_ANON] } else { 0 };
        let bits = |n: u64| u64::BITS - n.leading_zeros();
        let estimate = bits(sizes[INACTIVE_FILE] + anon).saturating_sub(1 + bits(sc.nr_to_reclaim - 1));
        sc.priority = estimate.clamp(DEF_PRIORITY / 2, DEF_PRIORITY);
    }

    /// 4.6: reclaim of the whole machine stops when it has what it wants, kswapd also when every zone is safe.
    pub(crate) fn should_abort_scan(&self, sc: &ScanControl) -> bool {
        if sc.blocked {
            return true;
        }
        if sc.is_cgroup_reclaim() {
            return false;
        }
        sc.nr_reclaimed >= sc.nr_to_reclaim.max(2)
            || (sc.kswapd && self.frames.nodes.get(sc.nid).is_safe(MIN_LRU_BATCH))
    }

    /// The lists of a memcg and its descendants on a node.
    #[inline(always)]
    pub(crate) fn tree_sizes(&self, memcg: MemcgId, nid: NodeId) -> [u64; 5] {
        if memcg == MemcgId::ROOT {
            return self.frames.nodes.get(nid).size;
        }
        match self.groups.memcgs.has_children(memcg) {
            true => self.sum_of_sizes(memcg, nid),
            false => self.pages.lruvecs[self.lruvec_of(memcg, nid).index()].size,
        }
    }

    fn sum_of_sizes(&self, memcg: MemcgId, nid: NodeId) -> [u64; 5] {
        let sizes = self.groups.memcgs.subtree(memcg).map(|m| self.pages.lruvecs[self.lruvec_of(m, nid).index()].size);
        sizes.fold([0; 5], |sum, size| std::array::from_fn(|l| sum[l] + size[l]))
    }

    fn shrink_one<W: World>(&mut self, w: &mut W, memcg: MemcgId, sc: &mut ScanControl) {
        self.note_visit(memcg);
        let v = self.lruvec_of(memcg, sc.nid);
        if self.is_multi_gen() {
            if self.shrink_lruvec_gen(w, v, sc) {
                // Aged: the machine has less to gain from it.
                self.groups.memcg_lru[sc.nid.index()].rotate(memcg, Rotation::Young);
            }
        } else {
            self.shrink_lruvec_two_list(w, v, sc);
        }
        self.shrink_shadow_nodes(v, sc.priority);
    }

    /// Tests want to know who was visited, at which priority.
    #[inline(always)]
    pub(crate) fn note_visit(&mut self, _memcg: MemcgId) {
        #[cfg(test)]
        self.groups.visits.push(Some(_memcg));
    }

    /// 2.6, 2.7: what this pass may deactivate, and whether there is easy cache to trim.
    fn prepare_scan_control(&mut self, sc: &mut ScanControl) {
        let v = &self.pages.lruvecs[self.lruvec_of(sc.target, sc.nid).index()];
        let size = self.known_sizes(sc.target, sc.nid);
        sc.cost = v.cost;
        for t in [ANON, FILE] {
            // The kernels before working-set detection had no refaults to challenge the active list with, and kept
            // file lists at 1 : 1.
            let old = !self.refaults_challenge_active();
            let refaulted = !old && self.known_activations(sc.target, sc.nid, t) != v.refaults[t];
            sc.may_deactivate[t] =
                sc.force_deactivate || refaulted || is_low(&size, t, (!old || t != FILE).then_some(self.cfg.gib_pages));
        }
        sc.cache_trim_mode = size[INACTIVE_FILE] >> sc.priority > 0 && !sc.may_deactivate[FILE] && !sc.no_trim;
        // The node counts its own pages exactly.
        let size = if sc.is_cgroup_reclaim() { size } else { self.tree_sizes(sc.target, sc.nid) };
        // The whole node: with next to no cache left only anon can make room.
        let file = size[INACTIVE_FILE] + size[ACTIVE_FILE];
        sc.file_is_tiny = !sc.is_cgroup_reclaim()
            && file + self.frames.nodes.get(sc.nid).free_pages() <= self.frames.nodes.get(sc.nid).high_pages()
            && !sc.may_deactivate[ANON]
            && size[INACTIVE_ANON] >> sc.priority > 0;
    }

    /// `workingset_activate` of a type on a node, descendants included.
    pub(crate) fn activations(&self, memcg: MemcgId, nid: NodeId, t: usize) -> u64 {
        let own = |m: MemcgId| self.pages.lruvecs[self.lruvec_of(m, nid).index()].activated[t];
        self.groups.memcgs.subtree(memcg).map(own).sum()
    }

    pub(crate) fn snapshot_refaults(&mut self, memcg: MemcgId) {
        if self.is_multi_gen() {
            return;
        }
        for nid in self.frames.nodes.ids() {
            self.snapshot_refaults_on(memcg, nid);
        }
    }

    pub(crate) fn snapshot_refaults_on(&mut self, memcg: MemcgId, nid: NodeId) {
        if self.is_multi_gen() {
            return;
        }
        let now = [ANON, FILE].map(|t| self.known_activations(memcg, nid, t));
        let v = self.lruvec_of(memcg, nid);
        self.pages.lruvecs[v.index()].refaults = now;
    }
}
