//! Many memory cgroups under multi-gen LRU before the memcg LRU: all of them in turn, in proportion
//! to their sizes.
//!
//! In the first form of "optimize multiple memcgs" kswapd takes single-use, unmapped, clean pages
//! wherever they are before it ages or swaps anywhere, and stops when it has enough. The plain
//! iteration before it ages every group at every step.
//!
//! Mechanism: `docs/mechanisms.md#all-memcgs-in-turn`.

use crate::config::memcg::{Backoff, MemcgSelection};
use crate::ids::{LruvecId, MemcgId};
use crate::lru::lru_list::{ANON, FILE};
use crate::lru::multi_gen::{MIN_LRU_BATCH, MIN_NR_GENS};
use crate::memcg::protection::BelowProtection;
use crate::reclaim::Reclaim;
use crate::scan::DEF_PRIORITY;
use crate::world::World;

/// Priority numbers above this one (11 and 12) count as low urgency: few pages are scanned.
const HIGHEST_LOW_PRIORITY: u32 = DEF_PRIORITY - 2;

impl<W: World> Reclaim<'_, W> {
    /// Ages every group that needs it before each pass of kswapd, unless the last pass found easy
    /// pages.
    pub(crate) fn age_memcgs(&mut self) {
        self.sc.last_reclaimed = self.sc.nr_reclaimed;
        if self.mem.cfg.memcg.selection == MemcgSelection::First {
            let easy = !std::mem::replace(&mut self.sc.need_aging, true);
            let needed_swapping = std::mem::replace(&mut self.sc.need_swapping, true);
            self.sc.avoid_swapping = !(easy && needed_swapping);
            if easy {
                return;
            }
        }
        let mut at = Some(self.sc.target);
        while let Some(m) = at {
            at = self.mem.groups.memcgs.next_in(self.sc.target, m);
            if self.mem.groups.memcgs.below_protection(self.sc.target, m) == BelowProtection::Min {
                continue;
            }
            let v = self.mem.pages.lruvec_of(m, self.sc.nid);
            let swappiness = self.effective_swappiness(v);
            if self.mem.pages.should_run_aging(v, swappiness).wanted {
                let seq = self.mem.pages.lruvecs[v.index()].r#gen.max_seq;
                self.mem.pages.try_to_inc_max_seq(self.mem.now_ns, self.world, v, seq, swappiness > 0, false);
            }
        }
        self.mem.pages.walk_context = false;
    }

    /// A pass over all groups of the subtree.
    pub(crate) fn shrink_proportionally(&mut self) {
        let mut at = Some(self.sc.target);
        while let Some(m) = at {
            self.note_visit(m);
            self.shrink_lruvec_v6_1(m);
            let (v, priority) = (self.mem.pages.lruvec_of(m, self.sc.nid), self.sc.priority);
            self.mem.memcontrol().shrink_slab(v, priority);
            if self.sc.blocked {
                return;
            }
            at = self.mem.groups.memcgs.next_in(self.sc.target, m);
        }
    }

    /// Shrinks one group in batches, until enough was scanned for this priority or it is time to
    /// stop.
    fn shrink_lruvec_v6_1(&mut self, memcg: MemcgId) {
        self.mem.pages.drain_batches();
        let v = self.mem.pages.lruvec_of(memcg, self.sc.nid);
        let (before, start) = (self.sc.nr_reclaimed, self.mem.pages.lruvecs[v.index()].r#gen.max_seq);
        let (mut scanned, mut age_wanted) = (0, false);
        self.sc.took_anon = false;
        let finished = loop {
            match self.mem.groups.memcgs.below_protection(self.sc.target, memcg) {
                BelowProtection::Min => break false,
                BelowProtection::Low if !self.sc.low_reclaim => {
                    self.sc.low_skipped = true;
                    break false;
                }
                BelowProtection::Low if scanned == 0 => self.mem.groups.memcgs.event(memcg, |e| &mut e.low),
                _ => {}
            }
            let swappiness = self.swappiness_v6_1(v);
            let aging = self.mem.pages.should_run_aging(v, swappiness);
            age_wanted = aging.wanted;
            let priority = self.priority_v6_1(before);
            let nr_to_scan =
                if self.mem.groups.memcgs.get(memcg).is_online() { aging.total >> priority } else { aging.total };
            if (age_wanted && !self.may_go_on_aging(v, swappiness, priority)) || nr_to_scan == 0 {
                break false;
            }
            let delta = self.evict_folios(v, swappiness);
            if delta == 0 {
                break false;
            }
            scanned += delta;
            if self.sc.blocked || scanned >= nr_to_scan || self.should_back_off(v, start, swappiness) {
                break true;
            }
        };
        let avoids_swapping = self.mem.cfg.memcg.backoff == Backoff::AvoidSwapping;
        if finished && (avoids_swapping || self.sc.nr_reclaimed - before >= MIN_LRU_BATCH) && !age_wanted {
            // Easy pages: the next step need not age anyone.
            self.sc.need_aging = false;
        }
        if finished && !self.sc.took_anon {
            self.sc.need_swapping = false;
        }
        self.mem.pages.walk_context = false;
    }

    /// The priority at which a group is scanned that had given nothing when `before` were
    /// reclaimed.
    fn priority_v6_1(&self, before: u64) -> u32 {
        let met = self.sc.nr_reclaimed - before >= self.sc.nr_to_reclaim;
        if met && self.mem.cfg.memcg.target_lowers_priority { DEF_PRIORITY } else { self.sc.priority }
    }

    /// Whether to evict from a group that should be aged: after aging it, or at the first priority.
    fn may_go_on_aging(&mut self, v: LruvecId, swappiness: u32, priority: u32) -> bool {
        if priority != DEF_PRIORITY {
            if self.sc.kswapd {
                // kswapd ages between passes.
                return false;
            }
            let seq = self.mem.pages.lruvecs[v.index()].r#gen.max_seq;
            if self.mem.pages.try_to_inc_max_seq(self.mem.now_ns, self.world, v, seq, swappiness > 0, false) {
                return true;
            }
        }
        let first = if swappiness > 0 { ANON } else { FILE };
        let g = &self.mem.pages.lruvecs[v.index()].r#gen;
        g.min_seq[first] + MIN_NR_GENS <= g.max_seq
    }

    /// Where swapping is configured and not permitted now, the machine prefers files and a group
    /// has nothing else.
    fn swappiness_v6_1(&mut self, v: LruvecId) -> u32 {
        let permitted = std::mem::replace(&mut self.sc.may_swap, true);
        let swappiness = self.effective_swappiness(v);
        self.sc.may_swap = permitted;
        match permitted {
            true => swappiness,
            false => u32::from(!self.sc.is_cgroup_reclaim() && swappiness > 0),
        }
    }

    /// Whether to leave a group before its share is scanned. For all but kswapd, if it was aged
    /// more than once, or a batch was swapped although the target is met; for the machine, once
    /// many are scanned and every zone has what it needs.
    fn should_back_off(&mut self, v: LruvecId, start: u64, swappiness: u32) -> bool {
        if self.mem.cfg.memcg.selection == MemcgSelection::Iterate {
            return false;
        }
        if self.mem.cfg.memcg.backoff == Backoff::AvoidSwapping {
            return self.sc.avoid_swapping && self.sc.took_anon && swappiness < 200;
        }
        let low_priority = self.sc.priority > HIGHEST_LOW_PRIORITY;
        if !self.sc.kswapd {
            let aged = self.mem.pages.lruvecs[v.index()].r#gen.max_seq - start > 1;
            let over_swapping = self.sc.nr_reclaimed >= self.sc.nr_to_reclaim && self.sc.took_anon;
            let applies = self.mem.cfg.memcg.backoff == Backoff::AnyPriority || low_priority;
            if applies && (aged || over_swapping) {
                return true;
            }
            if self.sc.is_cgroup_reclaim() {
                return false;
            }
        } else if self.sc.nr_reclaimed - self.sc.last_reclaimed < self.sc.nr_to_reclaim {
            return false;
        }
        if low_priority
            || !self.mem.frames.nodes.is_limited()
            || !self.mem.frames.nodes.get(self.sc.nid).has_enough(self.sc.kswapd)
        {
            return false;
        }
        // So that the caller stops, too.
        self.sc.nr_reclaimed += MIN_LRU_BATCH;
        self.sc.credited += MIN_LRU_BATCH;
        true
    }
}
