//! Slots and the nodes that carry them: charging, the list of nodes with nothing but shadows, and
//! its shrinker.
//!
//! Mechanism: `docs/mechanisms.md#shadow-nodes-and-their-shrinker`.

use std::ops::Range;

use crate::charged::Charged;
use crate::folio::mapping::{Fill, NONE};
use crate::folio::slot::Slot;
use crate::ids::{FolioId, LruvecId, MemcgId, PageId, XaNodeId};
use crate::lru::pages::Pages;
use crate::memcg::group::{NODE_CHARGE_BYTES, PAGE_BYTES};
use crate::stat::Counter;

/// Nodes that one call of the shrinker takes.
const SHRINK_BATCH: u64 = 128;

/// A node may hold shadows for one page in eight: `pages >> 3` nodes of 64 slots.
const NODES_PER_PAGE_SHIFT: u32 = 3;

impl Pages {
    /// Nodes from the leaf of a page upwards that do not exist.
    pub(crate) fn missing_nodes(&self, page: PageId) -> u64 {
        let up = |&n: &u32| Some(self.space.nodes[n as usize].parent).filter(|&p| p != NONE);
        let chain = std::iter::successors(Some(self.folios.node_of(page).0), up);
        chain.take_while(|&n| self.space.fill[n as usize].count == 0).count() as u64
    }

    /// The same for all pages of an aligned range of at most 512, which have all but their leaves
    /// in common.
    pub(crate) fn missing_range_nodes(&self, pages: Range<u32>) -> u64 {
        let mut leaves = pages.clone().step_by(64).map(|p| self.folios.node_of(PageId(p)));
        let missing = leaves.clone().filter(|n| self.space.fill[n.index()].count == 0).count() as u64;
        match leaves.any(|n| self.space.fill[n.index()].count > 0) {
            true => missing,
            false => missing + self.missing_nodes(PageId(pages.start)) - 1,
        }
    }

    #[cold]
    pub(crate) fn relist_node(&mut self, n: XaNodeId, shadows_only: bool) {
        let node = &self.space.nodes[n.index()];
        let v = self.lruvec_of(node.memcg, node.nid);
        let list = &mut self.lruvecs[v.index()].shadow_nodes;
        match shadows_only {
            true => list.push(&mut self.space, n),
            false => list.remove(&mut self.space, n),
        }
    }

    /// Shadow nodes beyond what the pages of the memcg on that memory node justify.
    pub(crate) fn excess_shadow_nodes(&self, v: LruvecId) -> u64 {
        let v = &self.lruvecs[v.index()];
        let slab = v.xa_nodes * NODE_CHARGE_BYTES / PAGE_BYTES;
        v.shadow_nodes.len.saturating_sub((v.lru_pages() + slab) >> NODES_PER_PAGE_SHIFT)
    }
}

impl Charged<'_> {
    /// Stores a shadow, or nothing, into the slot of a file and keeps the counts of its node. Of a
    /// folio only its release may follow.
    #[inline]
    pub(crate) fn replace_slot(&mut self, page: PageId, new: Slot) {
        let old = self.pages.folios.slot(page);
        self.pages.folios.replace(page, new);
        self.note_slot(self.pages.folios.node_of(page), old, new);
    }

    /// Keeps the counts of the node of a page whose folio left a shadow, or nothing.
    #[inline(always)]
    pub(crate) fn note_evicted(&mut self, page: PageId, left: Slot) {
        let n = self.pages.folios.node_of(page);
        if left.is_empty() {
            return self.note_slot(n, Slot::resident(FolioId(page.0)), left);
        }
        let fill = &mut self.pages.space.fill[n.index()];
        fill.nr_values += 1;
        if fill.is_shadows_only() {
            self.pages.relist_node(n, true);
        }
    }

    /// Keeps the counts of a leaf node of which a page gets a folio where this was.
    #[inline(always)]
    pub(crate) fn note_filled(&mut self, n: XaNodeId, old: Slot) {
        if old.is_empty() {
            let was = self.pages.space.fill[n.index()];
            return self.note_fill(n, was, Fill { count: was.count + 1, ..was });
        }
        let fill = &mut self.pages.space.fill[n.index()];
        let was_shadows_only = fill.is_shadows_only();
        fill.nr_values -= 1;
        if was_shadows_only {
            self.pages.relist_node(n, false);
        }
    }

    /// Keeps the counts of the node of a slot that changed.
    #[inline(always)]
    fn note_slot(&mut self, n: XaNodeId, old: Slot, new: Slot) {
        let was = self.pages.space.fill[n.index()];
        debug_assert_ne!(was, Fill::ANON);
        let is = Fill {
            count: was.count + u8::from(!new.is_empty()) - u8::from(!old.is_empty()),
            nr_values: was.nr_values + u8::from(new.as_value().is_some()) - u8::from(old.as_value().is_some()),
        };
        self.note_fill(n, was, is);
    }

    #[inline(always)]
    fn note_fill(&mut self, n: XaNodeId, was: Fill, is: Fill) {
        if was.count == 0 || is.count == 0 || is.is_shadows_only() != was.is_shadows_only() {
            return self.note_node(n, was, is);
        }
        self.pages.space.fill[n.index()] = is;
    }

    /// A node comes or goes, or starts or ceases to hold nothing but shadows.
    #[inline(never)]
    fn note_node(&mut self, n: XaNodeId, was: Fill, is: Fill) {
        if was.count == 0 && is.count > 0 {
            self.enter_node(n);
        }
        self.pages.space.fill[n.index()] = is;
        if is.is_shadows_only() != was.is_shadows_only() {
            self.pages.relist_node(n, is.is_shadows_only());
        }
        if is.count == 0 && was.count > 0 {
            self.free_node(n);
        }
    }

    /// The first entry is coming: the node exists from now on, and its parents.
    #[cold]
    fn enter_node(&mut self, n: XaNodeId) {
        let memcg = self.pages.space.mappings
            [self.pages.space.mapping_of(self.pages.space.nodes[n.index()].first).index()]
        .memcg;
        let mut at = n.0;
        loop {
            let node = &mut self.pages.space.nodes[at as usize];
            (node.memcg, node.nid) = (memcg, self.frames.nid);
            let parent = node.parent;
            self.groups.memcgs.get_mut(memcg).nodes += 1;
            let v = self.pages.lruvec_of(memcg, self.frames.nid);
            self.pages.lruvecs[v.index()].xa_nodes += 1;
            if parent == NONE {
                return;
            }
            let p = &mut self.pages.space.fill[parent as usize];
            p.count += 1;
            if p.count > 1 {
                return;
            }
            at = parent;
        }
    }

    /// The last entry is gone: the node is freed, and its parents that have no other child.
    fn free_node(&mut self, n: XaNodeId) {
        let mut at = n.0;
        loop {
            let (memcg, parent) =
                (self.pages.space.nodes[at as usize].memcg, self.pages.space.nodes[at as usize].parent);
            self.groups.memcgs.get_mut(memcg).nodes -= 1;
            let v = self.pages.lruvec_of(memcg, self.pages.space.nodes[at as usize].nid);
            self.pages.lruvecs[v.index()].xa_nodes -= 1;
            if self.cfg.memcg.charge_kernel {
                self.free_node_object(memcg);
            }
            if parent == NONE {
                return;
            }
            let p = &mut self.pages.space.fill[parent as usize];
            p.count -= 1;
            if p.count > 0 {
                return;
            }
            at = parent;
        }
    }

    pub(crate) fn free_node_object(&mut self, memcg: MemcgId) {
        let pages = self.groups.memcgs.free_object(memcg, NODE_CHARGE_BYTES);
        self.frames.nodes.free_slab(pages);
    }

    /// One pass of the shrinker: half of the excess at any priority, in batches; what is less than
    /// a batch is deferred.
    pub(crate) fn shrink_shadow_nodes(&mut self, v: LruvecId, priority: u32) {
        let (freeable, batch) = (self.pages.excess_shadow_nodes(v), self.cfg.lru.part(SHRINK_BATCH));
        if freeable == 0 {
            return;
        }
        let deferred = self.pages.lruvecs[v.index()].deferred_shadow_nodes;
        let delta = freeable / 2;
        let mut total = ((deferred >> priority) + delta).min(2 * freeable);
        let mut scanned = 0;
        while total >= batch || total >= freeable {
            let nr = batch.min(total);
            if nr == 0 || !self.reclaim_shadow_nodes(v, nr) {
                break;
            }
            total -= nr;
            scanned += nr;
        }
        self.pages.lruvecs[v.index()].deferred_shadow_nodes =
            (deferred + delta).saturating_sub(scanned).min(2 * freeable);
    }

    /// Deletes the shadows of the `nr` oldest shadow nodes.
    fn reclaim_shadow_nodes(&mut self, v: LruvecId, nr: u64) -> bool {
        for _ in 0..nr {
            let Some(n) = self.pages.lruvecs[v.index()].shadow_nodes.oldest() else {
                return false;
            };
            let node = &self.pages.space.nodes[n.index()];
            let pages = node.first.0..node.first.0 + u32::from(node.len);
            for page in pages.map(PageId) {
                if self.pages.folios.slot(page).as_value().is_some() {
                    self.replace_slot(page, Slot::EMPTY);
                }
            }
            self.pages.count_lruvec(v, Counter::WorkingsetNodereclaim, 1);
        }
        true
    }
}
