//! Groups that a run of reclaim has seen to have nothing to give at its priority: the memcg LRU
//! visits them again and again.
//!
//! With thousands of groups of fewer than 4,096 pages each is visited twice at every priority
//! before the first has something to give. The first of these visits says for how long the others
//! find nothing, either; they need a number of eight bytes then instead of the lists of the group.
//! Nothing else is different: they move the group as any visit does. What was seen holds as long as
//! reclaim has done nothing but such visits, because then nothing has changed.

use crate::ids::{MemcgId, NodeId};
use crate::scan::ScanControl;

/// What is known of the groups of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct EmptyMemcgs {
    /// Number of the time since something changed; never 0.
    pub(crate) now: u64,
    /// By node and group: that time and, in the lowest byte, the lowest priority at which nothing
    /// is found.
    seen: Vec<Vec<u64>>,
    /// Visits that found out without looking.
    #[cfg(test)]
    pub(crate) known: u64,
}

impl EmptyMemcgs {
    /// Something may have changed: nothing is known any more.
    pub(crate) fn forget(&mut self, sc: &mut ScanControl) {
        self.now += 1;
        sc.empty_since = self.now;
    }

    pub(crate) fn knows(&self, id: MemcgId, sc: &ScanControl) -> bool {
        let seen = self.seen.get(sc.nid.index()).and_then(|node| node.get(id.index()));
        seen.is_some_and(|&seen| seen >> 8 == self.now && u64::from(sc.priority) >= seen & 0xff)
    }

    pub(crate) fn note(&mut self, id: MemcgId, nid: NodeId, priority: u32) {
        if self.seen.len() <= nid.index() {
            self.seen.resize(nid.index() + 1, Vec::new());
        }
        let node = &mut self.seen[nid.index()];
        if node.len() <= id.index() {
            node.resize(id.index() + 1, 0);
        }
        node[id.index()] = self.now << 8 | u64::from(priority);
    }
}
