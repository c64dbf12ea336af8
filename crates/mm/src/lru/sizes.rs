//! Sizes of lists: of a group, of its whole tree, and as reclaim knows them, which may be old.
//!
//! Mechanism: `docs/mechanisms.md#statistics-that-lag`.

use crate::config::lru::ReclaimCost;
use crate::ids::{LruvecId, MemcgId, NodeId};
use crate::lru::lru_list::{ANON, FILE, UNEVICTABLE};
use crate::lru::lruvec::Lruvec;
use crate::lru::pages::ResidentPages;
use crate::lru::policy::LruPolicy;
use crate::memcg::groups::Groups;
use crate::memcg::stat_flush::FlushedStats;

impl ResidentPages {
    /// Pages on the lists of a memcg, of all nodes.
    pub(crate) fn lru_sizes(&self, id: MemcgId) -> [u64; 5] {
        let sizes = self.lruvecs_of(id).map(|v| self.lruvecs[v.index()].size);
        sizes.fold([0; 5], |sum, size| std::array::from_fn(|l| sum[l] + size[l]))
    }

    /// Adds up the counts of a group and of each of its descendants.
    #[cold]
    pub(crate) fn flush_stats(&mut self, groups: &Groups, of: MemcgId) {
        for id in groups.memcgs.subtree(of).collect::<Vec<_>>().into_iter().rev() {
            // Children come after their parents: from the end on, the descendants of a group are
            // done when its turn comes.
            for nid in self.node_ids() {
                let v = self.lruvec_of(id, nid);
                let own = &self.lruvecs[v.index()];
                let mut sum = FlushedStats { size: own.size, activations: own.activated };
                for child in groups.memcgs.children(id) {
                    let below = self.lruvecs[self.lruvec_of(child, nid).index()].flushed;
                    (0..5).for_each(|l| sum.size[l] += below.size[l]);
                    (0..2).for_each(|t| sum.activations[t] += below.activations[t]);
                }
                self.lruvecs[v.index()].flushed = sum;
            }
        }
    }

    /// Pages on the lists of a memcg and its descendants on a node, as reclaim knows them.
    #[inline(always)]
    pub(crate) fn known_sizes(&self, groups: &Groups, id: MemcgId, nid: NodeId) -> [u64; 5] {
        if groups.stats_lag() {
            self.lruvecs[self.lruvec_of(id, nid).index()].flushed.size
        } else {
            self.tree_sizes(groups, id, nid)
        }
    }

    /// `workingset_activate` of a type on a node, descendants included, as reclaim knows it.
    #[inline]
    pub(crate) fn known_activations(&self, groups: &Groups, id: MemcgId, nid: NodeId, t: usize) -> u64 {
        match groups.stats_lag() {
            true => self.lruvecs[self.lruvec_of(id, nid).index()].flushed.activations[t],
            false => self.activations(groups, id, nid, t),
        }
    }

    /// Pages on the lists of one lruvec and its descendants, as reclaim knows them.
    #[inline(always)]
    pub(crate) fn known_lruvec_sizes(&self, groups: &Groups, v: LruvecId) -> [u64; 5] {
        let Lruvec { memcg, nid, .. } = self.lruvecs[v.index()];
        self.known_sizes(groups, memcg, nid)
    }

    /// `lru_note_cost`: for this lruvec and all its ancestors.
    pub(crate) fn note_cost(&mut self, groups: &Groups, v: LruvecId, t: usize, nr_io: u64, nr_rotated: u64) {
        let cost = match self.cfg.cost {
            ReclaimCost::IoAndRotation => nr_io * self.cfg.swap_cluster_max + nr_rotated,
            ReclaimCost::Io => nr_io,
        };
        if cost == 0 {
            return;
        }
        let mut at = Some(v);
        while let Some(v) = at {
            let pages = self.known_lruvec_sizes(groups, v)[..UNEVICTABLE].iter().sum();
            let v = &mut self.lruvecs[v.index()];
            v.note_cost(t, cost, pages);
            at = v.parent;
        }
    }

    /// Pages on the lists of a memcg and its descendants on a node.
    #[inline(always)]
    pub(crate) fn tree_sizes(&self, groups: &Groups, memcg: MemcgId, nid: NodeId) -> [u64; 5] {
        if memcg == MemcgId::ROOT {
            return self.node_sizes[nid.index()];
        }
        match groups.memcgs.has_children(memcg) {
            true => self.sum_of_sizes(groups, memcg, nid),
            false => self.lruvecs[self.lruvec_of(memcg, nid).index()].size,
        }
    }

    fn sum_of_sizes(&self, groups: &Groups, memcg: MemcgId, nid: NodeId) -> [u64; 5] {
        let sizes = groups.memcgs.subtree(memcg).map(|m| self.lruvecs[self.lruvec_of(m, nid).index()].size);
        sizes.fold([0; 5], |sum, size| std::array::from_fn(|l| sum[l] + size[l]))
    }

    /// `workingset_activate` of a type on a node, descendants included.
    #[inline]
    pub(crate) fn activations(&self, groups: &Groups, memcg: MemcgId, nid: NodeId, t: usize) -> u64 {
        if memcg == MemcgId::ROOT {
            return self.node_activations[nid.index()][t];
        }
        match groups.memcgs.has_children(memcg) {
            true => self.sum_of_activations(groups, memcg, nid, t),
            false => self.lruvecs[self.lruvec_of(memcg, nid).index()].activated[t],
        }
    }

    #[inline(never)]
    fn sum_of_activations(&self, groups: &Groups, memcg: MemcgId, nid: NodeId, t: usize) -> u64 {
        let own = |m: MemcgId| self.lruvecs[self.lruvec_of(m, nid).index()].activated[t];
        groups.memcgs.subtree(memcg).map(own).sum()
    }

    pub(crate) fn snapshot_refaults(&mut self, groups: &Groups, memcg: MemcgId) {
        if !by_policy!(self.cfg.kind, P => P::COMPARES_REFAULTS) {
            return;
        }
        for nid in self.node_ids() {
            self.snapshot_refaults_on(groups, memcg, nid);
        }
    }

    pub(crate) fn snapshot_refaults_on(&mut self, groups: &Groups, memcg: MemcgId, nid: NodeId) {
        if !by_policy!(self.cfg.kind, P => P::COMPARES_REFAULTS) {
            return;
        }
        let now = [ANON, FILE].map(|t| self.known_activations(groups, memcg, nid, t));
        let (v, divisor) = (self.lruvec_of(memcg, nid), self.cfg.batch_divisor);
        let v = &mut self.lruvecs[v.index()];
        v.runs += 1;
        if v.runs >= divisor {
            v.refaulted_before = [ANON, FILE].map(|t| v.refaults[t] != now[t]);
            (v.refaults, v.runs) = (now, 0);
        }
    }

    /// Whether refaults of a type were activated in the last run of reclaim. With divided batches:
    /// in the last runs that make up a whole batch, as fewer runs would seldom have a refault.
    pub(crate) fn refaulted_lately(&self, groups: &Groups, memcg: MemcgId, nid: NodeId, t: usize) -> bool {
        let v = &self.lruvecs[self.lruvec_of(memcg, nid).index()];
        match self.cfg.batch_divisor {
            1 => self.known_activations(groups, memcg, nid, t) != v.refaults[t],
            _ => v.refaulted_before[t],
        }
    }
}
