//! Shrinkers of kernel objects: tree nodes with nothing but shadows, and names and inodes of files,
//! with which the last shadow of a file may go.
//!
//! Mechanism: `docs/mechanisms.md#shadow-nodes-and-their-shrinker`,
//! `docs/mechanisms.md#files-of-one-page-and-inodes`.

use crate::folio::slot::Slot;
use crate::ids::{LruvecId, PageId};
use crate::lru::pages::ResidentPages;
use crate::memcontrol::Memcontrol;
use crate::stat::Counter;

/// Nodes that one call of the shrinker takes.
const NODE_BATCH: u64 = 128;

/// Names and inodes that one call of the shrinker of a file system scans.
const INODE_BATCH: u64 = 1024;

/// The work of a shrinker in a pass.
struct Pass {
    /// Objects that may be freed.
    freeable: u64,
    /// Objects scanned at a time.
    batch: u64,
    /// Objects still to be scanned.
    total: u64,
    /// Objects left for a later pass, if none is scanned now.
    owed: u64,
}

impl Pass {
    fn new(freeable: u64, deferred: u64, delta: u64, priority: u32, batch: u64) -> Pass {
        let total = ((deferred >> priority) + delta).min(2 * freeable);
        Pass { freeable, batch, total, owed: deferred + delta }
    }

    /// The next batch, in objects; none: fewer are left than one batch, and than all.
    fn next(&self) -> Option<u64> {
        let nr = self.batch.min(self.total);
        (nr > 0 && (self.total >= self.batch || self.total >= self.freeable)).then_some(nr)
    }

    fn scanned(&mut self, nr: u64) {
        self.total -= nr;
        self.owed = self.owed.saturating_sub(nr);
    }

    /// Objects that are left for later.
    fn deferred(&self) -> u64 {
        self.owed.min(2 * self.freeable)
    }
}

impl Memcontrol<'_> {
    /// One pass of the shrinkers over a group.
    pub(crate) fn shrink_slab(&mut self, v: LruvecId, priority: u32) {
        self.shrink_shadow_nodes(v, priority);
        if self.pages.lruvecs[v.index()].inodes.objects() > 0 {
            self.shrink_inodes(v, priority);
        }
    }

    /// Half of the excess at any priority, in batches; less than a batch is deferred.
    fn shrink_shadow_nodes(&mut self, v: LruvecId, priority: u32) {
        let freeable = self.pages.excess_shadow_nodes(v);
        if freeable == 0 {
            return;
        }
        let deferred = self.pages.lruvecs[v.index()].deferred_shadow_nodes;
        let mut pass = Pass::new(freeable, deferred, freeable / 2, priority, self.cfg.lru.part(NODE_BATCH));
        while let Some(nr) = pass.next() {
            if !self.reclaim_shadow_nodes(v, nr) {
                break;
            }
            pass.scanned(nr);
        }
        self.pages.lruvecs[v.index()].deferred_shadow_nodes = pass.deferred();
    }

    /// Deletes the shadows of the `nr` oldest shadow nodes.
    fn reclaim_shadow_nodes(&mut self, v: LruvecId, nr: u64) -> bool {
        for _ in 0..nr {
            let Some(n) = self.pages.lruvecs[v.index()].shadow_nodes.oldest() else {
                return false;
            };
            let node = &self.pages.space.nodes[n.index()];
            // Backwards: else its last shadow might come to lie in the mapping itself.
            let pages = (node.first.0..node.first.0 + u32::from(node.len)).rev();
            for page in pages.map(PageId) {
                if self.pages.folios.slot(page).as_value().is_some() {
                    self.replace_slot(page, Slot::EMPTY);
                }
            }
            self.pages.count_lruvec(v, Counter::WorkingsetNodereclaim, 1);
        }
        true
    }

    /// Two objects of every `1 << priority`, in batches, names and inodes by their numbers. They
    /// cost a read each to bring back (`DEFAULT_SEEKS`).
    fn shrink_inodes(&mut self, v: LruvecId, priority: u32) {
        let cache = &self.pages.lruvecs[v.index()].inodes;
        let freeable = cache.objects() * self.cfg.vfs_cache_pressure / 100;
        let deferred = cache.deferred;
        let delta = 2 * (freeable >> priority);
        let mut pass = Pass::new(freeable, deferred, delta, priority, self.cfg.lru.part(INODE_BATCH));
        while let Some(nr) = pass.next().filter(|_| !self.frames.nofs) {
            let cache = &self.pages.lruvecs[v.index()].inodes;
            let total = cache.objects() + 1;
            let [names, inodes] = [&cache.names, &cache.inodes].map(|list| nr * list.len() as u64 / total + 1);
            self.pages.scan_names(v, names);
            self.scan_inodes(v, inodes);
            pass.scanned(nr);
        }
        self.pages.lruvecs[v.index()].inodes.deferred = pass.deferred();
    }

    /// The oldest inodes: one that is wanted again gets another pass, one that has pages or a name
    /// leaves the list. The shadow that another still has goes first, and takes a turn.
    fn scan_inodes(&mut self, v: LruvecId, nr: u64) {
        for _ in 0..nr {
            let Some(&m) = self.pages.lruvecs[v.index()].inodes.inodes.front() else { return };
            let mapping = &self.pages.space.mappings[m.index()];
            let (inode, first) = (mapping.inode, mapping.first);
            let is_shrinkable = self.pages.is_shrinkable(m);
            if is_shrinkable && !inode.has_name && !inode.is_referenced && self.pages.has_shadow(first) {
                self.replace_slot(first, Slot::EMPTY);
                continue;
            }
            let ResidentPages { lruvecs, space, .. } = &mut *self.pages;
            let (list, inode) = (&mut lruvecs[v.index()].inodes.inodes, &mut space.mappings[m.index()].inode);
            list.pop_front();
            if is_shrinkable && !inode.has_name && inode.is_referenced {
                list.push_back(m);
                inode.is_referenced = false;
            } else {
                (inode.is_listed, inode.is_referenced) = (false, false);
            }
        }
    }
}
