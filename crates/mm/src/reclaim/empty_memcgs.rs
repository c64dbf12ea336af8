//! Whether a visit to a group finds anything: see `memcg/empty_memcg_cache`.

use crate::config::lru::ScanBudget;
use crate::ids::{LruvecId, MemcgId};
use crate::reclaim::Reclaim;
use crate::scan::DEF_PRIORITY;
use crate::world::World;

impl<W: World> Reclaim<'_, W> {
    /// Whether a visit to a group finds nothing to scan, to age or to shrink, so that all that it
    /// does is to move the group.
    #[inline]
    pub(crate) fn is_known_empty(&mut self, id: MemcgId) -> bool {
        #[cfg(test)]
        if self.mem.groups.looks_closely {
            return false;
        }
        if self.sc.empty_since != self.mem.groups.empty.now || self.sc.empty_since == 0 {
            // Others were at work since.
            self.mem.groups.empty.forget(&mut self.sc);
        } else if self.mem.groups.empty.knows(id, &self.sc) {
            #[cfg(test)]
            (self.mem.groups.empty.known += 1);
            return true;
        }
        let v = self.mem.pages.lruvec_of(id, self.sc.nid);
        match self.empty_down_to(v) {
            Some(priority) => {
                self.mem.groups.empty.note(id, self.sc.nid, priority);
                true
            }
            None => {
                self.mem.groups.empty.forget(&mut self.sc);
                false
            }
        }
    }

    /// The lowest priority at which there is nothing to do for a group, if that holds at the
    /// present one.
    fn empty_down_to(&self, v: LruvecId) -> Option<u32> {
        let lruvec = &self.mem.pages.lruvecs[v.index()];
        let offline =
            !self.mem.groups.memcgs.offline.is_empty() && !self.mem.groups.memcgs.get(lruvec.memcg).is_online();
        let pages: u64 = lruvec.size.iter().sum();
        if offline
            || self.mem.pages.excess_shadow_nodes(v) > 0
            || pages >> self.sc.priority > 0 && self.sc.priority == DEF_PRIORITY
        {
            return None;
        }
        if self.mem.cfg.lru.scan_budget == ScanBudget::Once {
            if self.mem.groups.memcgs.effective_protection(self.sc.target, lruvec.memcg) != [0, 0] {
                // What protection leaves is a batch at least.
                return None;
            }
            let total = self.mem.pages.evictable_size(v, self.effective_swappiness(v));
            return (total >> self.sc.priority == 0).then_some(u64::BITS - total.leading_zeros());
        }
        let aging = self.mem.pages.should_run_aging(v, self.effective_swappiness(v));
        if self.sc.priority == DEF_PRIORITY && aging.wanted {
            // Nobody is aged at the first priority.
            return Some(DEF_PRIORITY);
        }
        let found = aging.wanted || aging.total >> self.sc.priority > 0;
        (!found).then_some(u64::BITS - aging.total.leading_zeros())
    }
}
