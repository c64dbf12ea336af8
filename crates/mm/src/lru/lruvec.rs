//! The lists of one (memcg, node): two lists a type, or generations, and what both keep beside
//! them.

use crate::folio::inode::InodeCache;
use crate::folio::list::List;
use crate::folio::mapping::{NONE, PageSpace};
use crate::folio::table::FolioTable;
use crate::ids::{LruvecId, MemcgId, NodeId, XaNodeId};
use crate::lru::lru_list::{ANON, FILE};
use crate::lru::multi_gen::MultiGen;
use crate::memcg::stat_flush::FlushedStats;
use crate::stat::Stats;

/// Nodes that hold nothing but shadows, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct ShadowNodes {
    oldest: u32,
    newest: u32,
    pub(crate) len: u64,
}

impl ShadowNodes {
    fn new() -> ShadowNodes {
        ShadowNodes { oldest: NONE, newest: NONE, len: 0 }
    }

    pub(crate) fn push(&mut self, space: &mut PageSpace, n: XaNodeId) {
        let node = &mut space.nodes[n.index()];
        (node.prev, node.next) = (self.newest, NONE);
        match self.newest {
            NONE => self.oldest = n.0,
            newest => space.nodes[newest as usize].next = n.0,
        }
        self.newest = n.0;
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, space: &mut PageSpace, n: XaNodeId) {
        let node = &mut space.nodes[n.index()];
        let (prev, next) = (node.prev, node.next);
        (node.prev, node.next) = (NONE, NONE);
        match prev {
            NONE => self.oldest = next,
            p => space.nodes[p as usize].next = next,
        }
        match next {
            NONE => self.newest = prev,
            x => space.nodes[x as usize].prev = prev,
        }
        self.len -= 1;
    }

    pub(crate) fn oldest(&self) -> Option<XaNodeId> {
        (self.oldest != NONE).then_some(XaNodeId(self.oldest))
    }

    fn validate(&self, space: &PageSpace) -> Result<(), String> {
        let (mut at, mut n, mut prev) = (self.oldest, 0, NONE);
        while at != NONE {
            let node = &space.nodes[at as usize];
            if node.prev != prev || !space.fill[at as usize].is_shadows_only() || n > self.len {
                return Err(format!("shadow nodes: broken at node {at}"));
            }
            (prev, at, n) = (at, node.next, n + 1);
        }
        if n != self.len || prev != self.newest {
            return Err(format!("shadow nodes: {} counted, {n} linked", self.len));
        }
        Ok(())
    }
}

/// The lists of one (memcg, node).
#[derive(Clone, Debug)]
pub(crate) struct Lruvec {
    pub(crate) memcg: MemcgId,
    pub(crate) nid: NodeId,
    /// The lruvec of the parent memcg on the same node.
    pub(crate) parent: Option<LruvecId>,
    /// The clock of the pages that are not resident.
    pub(crate) nonresident_age: u64,
    /// Cost of reclaiming anon and file.
    pub(crate) cost: [u64; 2],
    /// `workingset_activate` at the end of the last reclaim, anon and file.
    pub(crate) refaults: [u64; 2],
    /// Pages on each list (multi-gen: the two youngest generations count as active).
    pub(crate) size: [u64; 5],
    /// The two-list LRU; only the unevictable list is used under multi-gen LRU.
    pub(crate) lists: [List; 5],
    pub(crate) r#gen: MultiGen,
    pub(crate) shadow_nodes: ShadowNodes,
    /// Tree nodes of the memcg that lie on this memory node.
    pub(crate) xa_nodes: u64,
    /// Pages of the memcg that the engine does not see: anonymous memory and kernel objects.
    pub(crate) external: u64,
    /// Shadow nodes that the shrinker still has to take, fewer than a batch.
    pub(crate) deferred_shadow_nodes: u64,
    /// Names and inodes of files of the memcg.
    pub(crate) inodes: InodeCache,
    /// By list, in a sample: remainder of the pages to scan; carried to the next scan.
    pub(crate) carried_scan: [i64; 4],
    /// Runs of reclaim since `refaults` was noted, in a sample.
    pub(crate) runs: u64,
    /// Whether `refaults` had changed when it was last noted, anon and file, in a sample.
    pub(crate) refaulted_before: [bool; 2],
    /// `workingset_activate` of the two lists, anon and file.
    pub(crate) activated: [u64; 2],
    pub(crate) flushed: FlushedStats,
    /// Counters of the group on this node.
    pub(crate) stat: Stats,
}

impl Lruvec {
    pub(crate) fn new(folios: &mut FolioTable, memcg: MemcgId, nid: NodeId, seed: u64) -> Lruvec {
        folios.links.start_lruvec();
        Lruvec {
            memcg,
            nid,
            parent: None,
            nonresident_age: 0,
            cost: [0; 2],
            refaults: [0; 2],
            size: [0; 5],
            lists: std::array::from_fn(|_| folios.new_list()),
            r#gen: MultiGen::new(folios, seed),
            shadow_nodes: ShadowNodes::new(),
            xa_nodes: 0,
            external: 0,
            deferred_shadow_nodes: 0,
            inodes: InodeCache::default(),
            carried_scan: [0; 4],
            runs: 0,
            refaulted_before: [false; 2],
            activated: [0; 2],
            flushed: FlushedStats::default(),
            stat: Stats::default(),
        }
    }

    /// Resets the lruvec for another group: nothing is on its lists, and it has seen nothing.
    pub(crate) fn start_over(&mut self) {
        (self.nonresident_age, self.cost, self.refaults) = (0, [0; 2], [0; 2]);
        (self.external, self.inodes) = (0, InodeCache::default());
        (self.activated, self.deferred_shadow_nodes, self.flushed) = ([0; 2], 0, FlushedStats::default());
        (self.carried_scan, self.runs, self.refaulted_before) = ([0; 4], 0, [false; 2]);
        self.r#gen.start_over();
    }

    /// Adds to the cost of reclaiming a type. If the costs of both types outgrow a quarter of the
    /// pages on the lists, both are halved.
    #[inline]
    pub(crate) fn note_cost(&mut self, type_index: usize, cost: u64, lru_pages: u64) {
        self.cost[type_index] += cost;
        if self.cost[ANON] + self.cost[FILE] > lru_pages / 4 {
            self.cost[ANON] /= 2;
            self.cost[FILE] /= 2;
        }
    }

    pub(crate) fn validate(&self, space: &PageSpace) -> Result<(), String> {
        self.inodes.validate(|m| space.mappings[m.index()].inode)?;
        self.shadow_nodes.validate(space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lru::lru_list::INACTIVE_FILE;

    #[test]
    fn costs_are_halved_when_they_outgrow_a_quarter_of_the_lists() {
        let mut folios = FolioTable::default();
        let mut l = Lruvec::new(&mut folios, MemcgId(0), NodeId(0), 0);
        l.size[INACTIVE_FILE] = 400;
        l.note_cost(FILE, 100, 400);
        assert_eq!(l.cost, [0, 100]);
        l.note_cost(ANON, 10, 400);
        assert_eq!(l.cost, [5, 50]);
    }
}
