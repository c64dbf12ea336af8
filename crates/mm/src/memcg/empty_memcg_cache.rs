//! Groups that a run of reclaim has seen to have nothing to give at its priority: the memcg LRU visits them again and again.
//!
//! With thousands of groups of fewer than 4,096 pages each is visited twice at every priority before the first has something to give. The
//! first of these visits says for how long the others find nothing, either; they need a number of eight bytes then instead of the lists of
//! the group. Nothing else is different: they move the group as any visit does. What was seen holds as long as reclaim has done nothing but
//! such visits, because then nothing has changed.

use crate::engine::Engine;
use crate::ids::{LruvecId, MemcgId, NodeId};
use crate::reclaim::scan::{DEF_PRIORITY, ScanControl};

/// What is known of the groups of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quiet {
    /// Number of the time since something changed; never 0.
    now: u64,
    /// By node and group: that time and, in the lowest byte, the lowest priority at which nothing is found.
    seen: Vec<Vec<u64>>,
    /// Visits that found out without looking.
    #[cfg(test)]
    pub(crate) known: u64,
}

impl Quiet {
    /// Something may have changed: nothing is known any more.
    fn forget(&mut self, sc: &mut ScanControl) {
        self.now += 1;
        sc.quiet_since = self.now;
    }

    fn knows(&self, id: MemcgId, sc: &ScanControl) -> bool {
        let seen = self.seen.get(sc.nid.index()).and_then(|node| node.get(id.index()));
        seen.is_some_and(|&seen| seen >> 8 == self.now && u64::from(sc.priority) >= seen & 0xff)
    }

    fn note(&mut self, id: MemcgId, nid: NodeId, priority: u32) {
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

impl Engine {
    /// Whether a visit to a group finds nothing to scan, to age or to shrink, so that all that it does is to move the group.
    #[inline]
    pub(crate) fn is_quiet(&mut self, id: MemcgId, sc: &mut ScanControl) -> bool {
        #[cfg(test)]
        if self.groups.looks_closely {
            return false;
        }
        if sc.quiet_since != self.groups.empty.now || sc.quiet_since == 0 {
            // Others were at work since.
            self.groups.empty.forget(sc);
        } else if self.groups.empty.knows(id, sc) {
            #[cfg(test)]
            (self.groups.empty.known += 1);
            return true;
        }
        let v = self.lruvec_of(id, sc.nid);
        match self.quiet_down_to(v, sc) {
            Some(priority) => {
                self.groups.empty.note(id, sc.nid, priority);
                true
            }
            None => {
                self.groups.empty.forget(sc);
                false
            }
        }
    }

    /// The lowest priority at which there is nothing to do for a group, if that holds at the present one.
    fn quiet_down_to(&self, v: LruvecId, sc: &ScanControl) -> Option<u32> {
        let lruvec = &self.pages.lruvecs[v.index()];
        let offline = !self.groups.memcgs.offline.is_empty() && !self.groups.memcgs.get(lruvec.memcg).is_online();
        let pages: u64 = lruvec.size.iter().sum();
        if offline || self.excess_shadow_nodes(v) > 0 || pages >> sc.priority > 0 && sc.priority == DEF_PRIORITY {
            return None;
        }
        let aging = self.should_run_aging(v, self.effective_swappiness(v, sc));
        if sc.priority == DEF_PRIORITY && aging.wanted {
            // Nobody is aged at the first priority.
            return Some(DEF_PRIORITY);
        }
        let found = aging.wanted || aging.total >> sc.priority > 0;
        (!found).then_some(u64::BITS - aging.total.leading_zeros())
    }
}
