//! Groups that a run of reclaim has seen to have nothing to give at its priority: the memcg LRU
//! visits them again and again, as does the walk over the tree of two lists.
//!
//! With thousands of groups of fewer than 4,096 pages each is visited twice at every priority
//! before the first has something to give. The first visit of a group finds down to which priority
//! its lists have nothing to give; later visits read that answer, a number of eight bytes, instead
//! of the lists. Nothing else is different: a visit moves the group either way. Answers hold as
//! long as reclaim makes nothing but fruitless visits, because then nothing has changed.

use crate::ids::{MemcgId, NodeId};
use crate::scan::{FruitlessWalk, ScanControl};

/// Answers of visits to the groups of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct EmptyMemcgs {
    /// Epoch: a number that grows when an answer may change; never 0.
    pub(crate) now: u64,
    /// By node and group: the epoch of the answer, shifted by 8 bits, and in the lowest byte the
    /// lowest priority at which nothing is found.
    seen: Vec<Vec<u64>>,
    /// Visits that were answered without looking at the lists.
    #[cfg(test)]
    pub(crate) known: u64,
}

impl EmptyMemcgs {
    /// A pass over all `memcgs` groups of a subtree is over, and found nothing down to a priority.
    pub(crate) fn note_pass(&self, nid: NodeId, lowest: u32, memcgs: u64) -> FruitlessWalk {
        FruitlessWalk { since: self.now, nid, lowest, memcgs }
    }

    /// Something may have changed: nothing is known any more.
    pub(crate) fn forget(&mut self, sc: &mut ScanControl) {
        self.now += 1;
        sc.empty_since = self.now;
    }

    /// The lowest priority at which a group is known to have nothing to give; none: not known for
    /// the present priority.
    pub(crate) fn knows(&self, id: MemcgId, sc: &ScanControl) -> Option<u32> {
        let seen = *self.seen.get(sc.nid.index())?.get(id.index())?;
        let lowest = (seen & 0xff) as u32;
        (seen >> 8 == self.now && sc.priority >= lowest).then_some(lowest)
    }

    /// Number of groups of the run's subtree, if all of them are known to have nothing to give on
    /// this node at this priority; none: that is not known.
    pub(crate) fn knows_all(&self, sc: &ScanControl) -> Option<u64> {
        let all = sc.empty_pass.as_ref()?;
        let holds = all.since == self.now && sc.empty_since == self.now && all.nid == sc.nid;
        (holds && sc.priority >= all.lowest).then_some(all.memcgs)
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
