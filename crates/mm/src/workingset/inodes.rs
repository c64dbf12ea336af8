//! Names and inodes of files: looked up when a page comes, and able to go when none is left.
//!
//! Mechanism: `docs/mechanisms.md#files-of-one-page-and-inodes`.

use crate::folio::mapping::NONE;
use crate::ids::{LruvecId, MappingId, PageId, XaNodeId};
use crate::lru::pages::ResidentPages;

impl ResidentPages {
    /// A page comes to a leaf that had none: its file is open, and has a name.
    #[cold]
    pub(crate) fn look_up_inode(&mut self, n: XaNodeId) {
        let m = self.space.mapping_of(self.space.nodes[n.index()].first);
        let mapping = &mut self.space.mappings[m.index()];
        let inode = &mut mapping.inode;
        if inode.has_name {
            inode.is_name_referenced = true;
            return;
        }
        inode.has_name = true;
        self.new_names += 1;
        let v = self.file_lists(m);
        self.lruvecs[v.index()].inodes.names.push_back(m);
    }

    /// The tree of this node holds no page any more: its inode may go, but for its name.
    #[cold]
    pub(crate) fn note_shrinkable(&mut self, n: XaNodeId) {
        if self.space.nodes[n.index()].parent == NONE {
            let m = self.space.mapping_of(self.space.nodes[n.index()].first);
            self.list_inode(m, false);
        }
    }

    /// The oldest names: one that was looked up again gets another pass; with another goes what
    /// held its inode.
    pub(crate) fn scan_names(&mut self, v: LruvecId, nr: u64) {
        for _ in 0..nr {
            let Some(m) = self.lruvecs[v.index()].inodes.names.pop_front() else { return };
            let inode = &mut self.space.mappings[m.index()].inode;
            if std::mem::take(&mut inode.is_name_referenced) {
                self.lruvecs[v.index()].inodes.names.push_back(m);
                continue;
            }
            inode.has_name = false;
            if self.is_shrinkable(m) {
                self.list_inode(m, true);
            }
        }
    }

    /// Puts an inode that nobody holds on the list. `again`: marks it referenced if it is listed
    /// already.
    fn list_inode(&mut self, m: MappingId, again: bool) {
        let inode = &mut self.space.mappings[m.index()].inode;
        if inode.has_name {
            return;
        }
        if inode.is_listed {
            inode.is_referenced |= again;
            return;
        }
        inode.is_listed = true;
        let v = self.file_lists(m);
        self.lruvecs[v.index()].inodes.inodes.push_back(m);
    }

    /// The group that is charged for a file, on the first memory node.
    fn file_lists(&self, m: MappingId) -> LruvecId {
        self.lruvec_of(self.space.mappings[m.index()].memcg, crate::ids::NodeId::default())
    }

    /// Whether a file has no page and no node: it is empty, or all that is left is the shadow of
    /// its first page. Nodes with shadows go by a shrinker of their own.
    pub(crate) fn is_shrinkable(&self, m: MappingId) -> bool {
        let first = self.space.mappings[m.index()].first;
        let mut n = self.folios.node_of(first);
        while self.space.nodes[n.index()].parent != NONE {
            n = XaNodeId(self.space.nodes[n.index()].parent);
        }
        let fill = self.space.fill[n.index()];
        fill.count == 0 || self.space.nodes[n.index()].is_head && fill.is_shadows_only()
    }

    /// Whether a page has left a shadow.
    pub(crate) fn has_shadow(&self, page: PageId) -> bool {
        self.folios.slot(page).as_value().is_some()
    }
}
