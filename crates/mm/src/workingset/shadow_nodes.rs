//! Slots and the tree nodes that carry them: which nodes exist, and the list of nodes with nothing
//! but shadows.
//!
//! Mechanism: `docs/mechanisms.md#shadow-nodes-and-their-shrinker`,
//! `docs/mechanisms.md#files-of-one-page-and-inodes`.

use std::ops::Range;

use crate::folio::mapping::{Fill, NONE};
use crate::folio::slot::Slot;
use crate::ids::{FolioId, LruvecId, MemcgId, PageId, XaNodeId};
use crate::lru::pages::ResidentPages;
use crate::memcg::group::{NODE_CHARGE_BYTES, PAGE_BYTES};
use crate::memcontrol::Memcontrol;

/// A node may hold shadows for one page in eight: `pages >> 3` nodes of 64 slots.
const NODES_PER_PAGE_SHIFT: u32 = 3;

impl ResidentPages {
    /// Nodes from the leaf of a page upwards that do not exist, and are needed for it.
    pub(crate) fn missing_nodes(&self, page: PageId) -> u64 {
        let n = self.folios.node_of(page);
        let (node, fill) = (&self.space.nodes[n.index()], self.space.fill[n.index()]);
        let is_head = page == node.first && (fill.count == 0 || node.is_head);
        if is_head && self.space.may_be_head(&self.folios, n) { 0 } else { self.missing_above(n) }
    }

    fn missing_above(&self, leaf: XaNodeId) -> u64 {
        let up = |&n: &u32| Some(self.space.nodes[n as usize].parent).filter(|&p| p != NONE);
        let chain = std::iter::successors(Some(leaf.0), up);
        chain.take_while(|&n| !self.space.has_node(XaNodeId(n))).count() as u64
    }

    /// Number of missing nodes for an aligned range of 2 to 512 pages, which share all nodes but
    /// the leaves.
    pub(crate) fn missing_range_nodes(&self, pages: Range<u32>) -> u64 {
        let mut leaves = pages.clone().step_by(64).map(|p| self.folios.node_of(PageId(p)));
        let missing = leaves.clone().filter(|&n| !self.space.has_node(n)).count() as u64;
        match leaves.any(|n| self.space.has_node(n)) {
            true => missing,
            false => missing + self.missing_above(self.folios.node_of(PageId(pages.start))) - 1,
        }
    }

    /// A node starts or ceases to hold nothing but shadows. A shadow that lies in the mapping
    /// itself is on no list: it goes with the inode.
    #[cold]
    pub(crate) fn relist_node(&mut self, n: XaNodeId, shadows_only: bool) {
        let node = &self.space.nodes[n.index()];
        if node.is_head {
            if shadows_only {
                self.note_shrinkable(n);
            }
            return;
        }
        let v = self.lruvec_of(node.memcg, node.nid);
        let list = &mut self.lruvecs[v.index()].shadow_nodes;
        match shadows_only {
            true => list.push(&mut self.space, n),
            false => list.remove(&mut self.space, n),
        }
    }

    /// Number of shadow nodes beyond the share of the memcg's pages on this memory node: pages on
    /// all lists, and of kernel objects.
    pub(crate) fn excess_shadow_nodes(&self, v: LruvecId) -> u64 {
        let v = &self.lruvecs[v.index()];
        let slab = v.xa_nodes * NODE_CHARGE_BYTES / PAGE_BYTES;
        let pages = v.size.iter().sum::<u64>() + slab + v.external;
        v.shadow_nodes.len.saturating_sub(pages >> NODES_PER_PAGE_SHIFT)
    }
}

impl Memcontrol<'_> {
    /// Stores a shadow, or nothing, into the slot of a file and keeps the counts of its node. After
    /// a folio is replaced only its release may follow.
    #[inline]
    pub(crate) fn replace_slot(&mut self, page: PageId, new: Slot) {
        let old = self.pages.folios.slot(page);
        self.pages.folios.replace(page, new);
        self.note_slot(page, old, new);
    }

    /// Updates the counts of a page's tree node after its folio left a shadow, or nothing.
    #[inline(always)]
    pub(crate) fn note_evicted(&mut self, page: PageId, left: Slot) {
        if left.is_empty() {
            return self.note_slot(page, Slot::resident(FolioId(page.0)), left);
        }
        let n = self.pages.folios.node_of(page);
        let fill = &mut self.pages.space.fill[n.index()];
        fill.nr_values += 1;
        if fill.is_shadows_only() {
            self.pages.relist_node(n, true);
        }
    }

    /// Keeps the counts of the leaf node of a page that gets a folio where this was.
    #[inline(always)]
    pub(crate) fn note_filled(&mut self, page: PageId, n: XaNodeId, old: Slot) {
        let fill = &mut self.pages.space.fill[n.index()];
        if old.is_empty() {
            let (was, is) = (*fill, Fill { count: fill.count + 1, ..*fill });
            if was.count == was.nr_values {
                self.pages.look_up_inode(n);
            }
            return self.note_fill(page, n, was, is);
        }
        let was_shadows_only = fill.is_shadows_only();
        fill.nr_values -= 1;
        if was_shadows_only {
            self.pages.relist_node(n, false);
            self.pages.look_up_inode(n);
        }
    }

    /// Keeps the counts of the node of a slot that changed.
    #[inline(always)]
    fn note_slot(&mut self, page: PageId, old: Slot, new: Slot) {
        let n = self.pages.folios.node_of(page);
        let was = self.pages.space.fill[n.index()];
        debug_assert_ne!(was, Fill::ANON);
        let is = Fill {
            count: was.count + u8::from(!new.is_empty()) - u8::from(!old.is_empty()),
            nr_values: was.nr_values + u8::from(new.as_value().is_some()) - u8::from(old.as_value().is_some()),
        };
        self.note_fill(page, n, was, is);
    }

    #[inline(always)]
    fn note_fill(&mut self, page: PageId, n: XaNodeId, was: Fill, is: Fill) {
        if was.count.min(is.count) <= 1 || is.is_shadows_only() != was.is_shadows_only() {
            return self.note_node(page, n, was, is);
        }
        self.pages.space.fill[n.index()] = is;
    }

    /// A node comes or goes by the entry of a page, or starts or ceases to hold nothing but
    /// shadows.
    #[inline(never)]
    fn note_node(&mut self, page: PageId, n: XaNodeId, was: Fill, is: Fill) {
        let was_head = self.pages.space.nodes[n.index()].is_head;
        let is_head = self.is_head(page, n, was, is);
        let (had_node, has_node) = (was.count > 0 && !was_head, is.count > 0 && !is_head);
        let (was_listed, is_listed) = (was.is_shadows_only() && had_node, is.is_shadows_only() && has_node);
        if was_listed && !is_listed {
            self.pages.relist_node(n, false);
        }
        if has_node && !had_node {
            self.enter_node(n);
        } else if was.count == 0 && is_head {
            self.own_node(n.0);
        }
        self.pages.space.fill[n.index()] = is;
        self.pages.space.nodes[n.index()].is_head = is_head;
        let is_shrinkable = is_head && is.is_shadows_only() && !(was_head && was.is_shadows_only());
        if is_listed && !was_listed || is_shrinkable {
            self.pages.relist_node(n, true);
        }
        if had_node && !has_node {
            self.free_node(n);
        }
        if is.count == 0 {
            self.pages.note_shrinkable(n);
        }
    }

    /// Whether the only entry of a tree, after that of a page changed, is its first: that lies in
    /// the mapping itself.
    fn is_head(&self, page: PageId, n: XaNodeId, was: Fill, is: Fill) -> bool {
        let (node, space) = (&self.pages.space.nodes[n.index()], &self.pages.space);
        if is.count != 1 || !space.may_be_head(&self.pages.folios, n) {
            return false;
        }
        match was.count {
            0 => page == node.first,
            1 => node.is_head,
            _ => page != node.first && !self.pages.folios.slot(node.first).is_empty(),
        }
    }

    /// Assigns a tree node to the mapping's memcg and to the memory node at hand; returns the
    /// memcg.
    fn own_node(&mut self, at: u32) -> MemcgId {
        let space = &mut self.pages.space;
        let memcg = space.mappings[space.mapping_of(space.nodes[at as usize].first).index()].memcg;
        let node = &mut space.nodes[at as usize];
        (node.memcg, node.nid) = (memcg, self.frames.nid);
        memcg
    }

    /// The node exists from now on, and its parents.
    #[cold]
    fn enter_node(&mut self, n: XaNodeId) {
        let mut at = n.0;
        loop {
            let memcg = self.own_node(at);
            let parent = self.pages.space.nodes[at as usize].parent;
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
}
