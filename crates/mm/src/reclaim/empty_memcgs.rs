//! Whether a visit to a group finds anything: see `memcg/empty_memcg_cache`.

use crate::config::lru::{Lru, ScanBudget};
use crate::ids::{LruvecId, MemcgId};
use crate::lru::lru_list::{ANON, UNEVICTABLE, is_low};
use crate::reclaim::Reclaim;
use crate::scan::DEF_PRIORITY;
use crate::world::World;

impl<W: World> Reclaim<'_, W> {
    /// Whether a visit to a group finds nothing to scan, to age or to shrink, so that all that it
    /// does is to move the group. If so, the lowest priority at which that is known.
    #[inline]
    pub(crate) fn known_empty(&mut self, id: MemcgId) -> Option<u32> {
        #[cfg(test)]
        if self.mem.groups.looks_closely {
            return None;
        }
        if self.sc.empty_since != self.mem.groups.empty.now || self.sc.empty_since == 0 {
            // Others were at work since.
            self.mem.groups.empty.forget(&mut self.sc);
        } else if let Some(lowest) = self.mem.groups.empty.knows(id, &self.sc) {
            #[cfg(test)]
            (self.mem.groups.empty.known += 1);
            return Some(lowest);
        }
        let v = self.mem.pages.lruvec_of(id, self.sc.nid);
        let lowest = match self.mem.cfg.lru.kind {
            Lru::TwoList => self.lists_are_empty_down_to(v),
            Lru::MultiGen => self.empty_down_to(v),
        };
        let reach = self.mem.pages.lruvecs[v.index()].inodes.reach();
        let lowest = lowest.filter(|_| reach >> self.sc.priority == 0);
        let lowest = lowest.map(|lowest| lowest.max(u64::BITS - reach.leading_zeros()));
        match lowest {
            Some(lowest) => self.mem.groups.empty.note(id, self.sc.nid, lowest),
            None => self.mem.groups.empty.forget(&mut self.sc),
        }
        lowest
    }

    /// Under two lists: the same, where nothing but the sizes of lists decides. A visit that finds
    /// nothing changes nothing then.
    fn lists_are_empty_down_to(&self, v: LruvecId) -> Option<u32> {
        let (lruvec, groups) = (&self.mem.pages.lruvecs[v.index()], &self.mem.groups);
        // Remainders of pages to scan are carried on in a sample, and a removed group gives its
        // rest at any priority.
        let simple = self.mem.cfg.lru.pages_per_page == 1
            && (groups.memcgs.offline.is_empty() || groups.memcgs.get(lruvec.memcg).is_online());
        let largest = lruvec.size[..UNEVICTABLE].iter().copied().max().unwrap_or(0);
        if !simple || largest >> self.sc.priority > 0 || self.mem.pages.excess_shadow_nodes(v) > 0 {
            return None;
        }
        let ages = self.can_age_anon(self.sc.nid)
            && is_low(&self.mem.pages.known_lruvec_sizes(groups, v), ANON, Some(self.mem.cfg.lru.gib_pages));
        (!ages).then_some(u64::BITS - largest.leading_zeros())
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
                // Protection leaves a batch at least.
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
