//! Reclaim for a memcg at its limit: priorities, the walk over the tree, shadow-node shrinking (2.8, 7.3).

use crate::Engine;
use crate::ids::MemcgId;
use crate::lruvec::{ANON, FILE, INACTIVE_FILE};
use crate::scan::{DEF_PRIORITY, ScanControl};
use crate::stat::Counter;
use crate::world::World;

impl Engine {
    /// Frees at least `nr` pages of a memcg and its descendants if it can; returns how many it freed.
    pub(crate) fn reclaim_memcg<W: World>(&mut self, w: &mut W, memcg: MemcgId, nr: u64) -> u64 {
        let nr = nr.max(self.cfg.swap_cluster_max);
        let mut sc = ScanControl::for_memcg(memcg, nr, self.cfg.swappiness);
        if !sc.is_cgroup_reclaim() {
            self.memcgs.get_mut(memcg).stat.add(Counter::Allocstall, 1);
        }
        loop {
            self.run_priorities(w, &mut sc);
            self.snapshot_refaults(memcg);
            if sc.nr_reclaimed > 0 {
                return sc.nr_reclaimed;
            }
            // Zero progress: once with the whole tree, once more with deactivation forced.
            if !sc.memcg_full_walk {
                sc.memcg_full_walk = true;
            } else if sc.skipped_deactivate {
                sc.force_deactivate = true;
                sc.skipped_deactivate = false;
            } else {
                return 0;
            }
        }
    }

    fn run_priorities<W: World>(&mut self, w: &mut W, sc: &mut ScanControl) {
        for priority in (0..=DEF_PRIORITY).rev() {
            sc.priority = priority;
            sc.nr_scanned = 0;
            self.shrink_node(w, sc);
            if sc.nr_reclaimed >= sc.nr_to_reclaim {
                return;
            }
        }
    }

    /// One pass at one priority over the target's subtree; it stops at the target unless a full walk is asked for.
    fn shrink_node<W: World>(&mut self, w: &mut W, sc: &mut ScanControl) {
        if !self.is_multi_gen() {
            self.prepare_scan_control(sc);
        }
        if self.memcgs.all.len() == 2 && sc.is_cgroup_reclaim() {
            // The common case of a single group needs no walk.
            return self.shrink_one(w, sc.target, sc);
        }
        for m in self.memcgs.subtree(sc.target) {
            self.shrink_one(w, m, sc);
            if !sc.memcg_full_walk && sc.nr_reclaimed >= sc.nr_to_reclaim {
                return;
            }
        }
    }

    fn shrink_one<W: World>(&mut self, w: &mut W, memcg: MemcgId, sc: &mut ScanControl) {
        let v = self.memcgs.get(memcg).lruvec;
        if self.is_multi_gen() {
            self.shrink_lruvec_gen(w, v, sc);
        } else {
            self.shrink_lruvec_two_list(w, v, sc);
        }
        self.shrink_shadow_nodes(memcg, sc.priority);
    }

    /// 2.6, 2.7: what this pass may deactivate, and whether there is easy cache to trim.
    fn prepare_scan_control(&mut self, sc: &mut ScanControl) {
        let m = self.memcgs.get(sc.target);
        let v = &self.lruvecs[m.lruvec.index()];
        sc.cost = v.cost;
        for t in [ANON, FILE] {
            // The kernels before working-set detection had no refaults to challenge the active list with, and kept
            // file lists at 1 : 1.
            let old = !self.refaults_challenge_active();
            let refaulted = !old && self.activations(sc.target, t) != v.refaults[t];
            sc.may_deactivate[t] = sc.force_deactivate || refaulted || v.inactive_is_low(t, old && t == FILE);
        }
        sc.cache_trim_mode = v.size[INACTIVE_FILE] >> sc.priority > 0 && !sc.may_deactivate[FILE];
    }

    /// `workingset_activate` of a type, descendants included.
    fn activations(&self, memcg: MemcgId, t: usize) -> u64 {
        let own = |m: MemcgId| self.memcgs.get(m).stat.get(Counter::activate(t));
        if self.memcgs.all.len() == 2 && memcg != MemcgId::ROOT {
            return own(memcg);
        }
        self.memcgs.subtree(memcg).into_iter().map(own).sum()
    }

    fn snapshot_refaults(&mut self, memcg: MemcgId) {
        let now = [self.activations(memcg, ANON), self.activations(memcg, FILE)];
        let v = self.memcgs.get(memcg).lruvec;
        self.lruvecs[v.index()].refaults = now;
    }
}
