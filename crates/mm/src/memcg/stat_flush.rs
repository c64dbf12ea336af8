//! Statistics of memory cgroups that lag: Linux adds up what CPUs counted for a group and its descendants every 2 s, and two-list
//! reclaim and the refault tests by distance read the sums.

use crate::config::RefaultTest;
use crate::engine::Engine;
use crate::ids::{LruvecId, MemcgId, NodeId};

/// What was added up last, of a group and its descendants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flushed {
    /// Pages on lists.
    size: [u64; 5],
    /// `workingset_activate`, anon and file.
    activations: [u64; 2],
}

impl Engine {
    /// Whether sums are made. The kernels before mainline's refault test had exact counts of the machine.
    fn stats_are_added_up(&self) -> bool {
        self.cfg.stat_flush_interval_ns > 0
            && matches!(self.cfg.refault, RefaultTest::Mainline | RefaultTest::ShadowPosition)
    }

    /// Whether sums are read, which may be old. Without any group, as where the memory controller is off, the counts of the nodes are read instead:
    /// these are exact.
    fn stats_lag(&self) -> bool {
        self.stats_are_added_up() && self.groups.memcgs.has_children(MemcgId::ROOT)
    }

    /// Time went on: adds up if it is time to.
    #[cold]
    pub(crate) fn flush_stats(&mut self) {
        let interval = self.cfg.stat_flush_interval_ns;
        self.clock.next_flush_ns = match self.stats_are_added_up() {
            true => (self.clock.now_ns / interval + 1).saturating_mul(interval),
            false => u64::MAX,
        };
        if !self.stats_are_added_up() {
            return;
        }
        for id in self.groups.memcgs.subtree(MemcgId::ROOT).collect::<Vec<_>>().into_iter().rev() {
            // Children come after their parents, so from the end each has its descendants when it is its turn.
            for nid in self.frames.nodes.ids() {
                let v = self.lruvec_of(id, nid);
                let own = &self.pages.lruvecs[v.index()];
                let mut sum = Flushed { size: own.size, activations: own.activated };
                for child in self.groups.memcgs.children(id) {
                    let below = self.pages.lruvecs[self.lruvec_of(child, nid).index()].flushed;
                    (0..5).for_each(|l| sum.size[l] += below.size[l]);
                    (0..2).for_each(|t| sum.activations[t] += below.activations[t]);
                }
                self.pages.lruvecs[v.index()].flushed = sum;
            }
        }
    }

    /// The lists of a memcg and its descendants on a node, as reclaim knows them.
    #[inline(always)]
    pub(crate) fn known_sizes(&self, id: MemcgId, nid: NodeId) -> [u64; 5] {
        if self.stats_lag() {
            self.pages.lruvecs[self.lruvec_of(id, nid).index()].flushed.size
        } else {
            self.tree_sizes(id, nid)
        }
    }

    /// `workingset_activate` of a type on a node, descendants included, as reclaim knows it.
    pub(crate) fn known_activations(&self, id: MemcgId, nid: NodeId, t: usize) -> u64 {
        match self.stats_lag() {
            true => self.pages.lruvecs[self.lruvec_of(id, nid).index()].flushed.activations[t],
            false => self.activations(id, nid, t),
        }
    }

    /// The lists of one lruvec, as reclaim knows them; with lag those of its descendants are in it, as in Linux.
    #[inline(always)]
    pub(crate) fn known_lruvec_sizes(&self, v: LruvecId) -> [u64; 5] {
        let v = &self.pages.lruvecs[v.index()];
        if self.stats_lag() { v.flushed.size } else { v.size }
    }
}
