//! Multi-gen reclaim with a scan budget, since "improve reclaim loop and dirty folio handling"
//! (Linux 7.2): what a run may scan of an lruvec is computed once, aging is a step of the loop, and
//! batches are small.
//!
//! Mechanism: `docs/mechanisms.md#the-scan-budget`.

use crate::ids::{FolioId, LruvecId};
use crate::lru::lru_list::{ANON, FILE};
use crate::lru::multi_gen::{MIN_LRU_BATCH, MIN_NR_GENS, gen_index};
use crate::memcg::protection::BelowProtection;
use crate::reclaim::Reclaim;
use crate::scan::DEF_PRIORITY;
use crate::world::World;

impl<W: World> Reclaim<'_, W> {
    /// Shrinks one lruvec until its budget is used up. True: it was aged, or is protected.
    pub(crate) fn shrink_lruvec_by_budget(&mut self, v: LruvecId) -> bool {
        self.mem.pages.drain_batches();
        if self.sc.held == Some((v, self.mem.pages.work.scanned)) {
            return false;
        }
        let swappiness = self.effective_swappiness(v);
        let memcg = self.mem.pages.lruvecs[v.index()].memcg;
        let (mut rotate, mut aged, mut in_vain) = (false, false, 0);
        let mut budget = match self.sc.resumed_scan() {
            Some(left) => left,
            None => self.scan_budget(v, swappiness),
        };
        while budget > 0 {
            if self.mem.groups.memcgs.below_protection(self.sc.target, memcg) == BelowProtection::Min {
                rotate = true;
                break;
            }
            if self.has_to_age(v, swappiness) {
                let seq = self.mem.pages.lruvecs[v.index()].r#gen.max_seq;
                let now_ns = self.mem.now_ns;
                rotate |= self.mem.pages.try_to_inc_max_seq(now_ns, self.world, v, seq, swappiness > 0, false);
                aged = true;
            }
            let before = self.mem.pages.work.scanned;
            let scanned = self.evict_batch_of(v, swappiness, budget.min(self.mem.cfg.lru.part(MIN_LRU_BATCH)));
            in_vain = if self.mem.pages.work.scanned == before { in_vain + scanned } else { 0 };
            if in_vain > self.oldest_pages(v) {
                // At the first priority aging was not due yet, and kswapd goes on later.
                self.sc.held = (self.sc.priority != DEF_PRIORITY && !self.sc.kswapd).then_some((v, before));
                break;
            }
            let others_next = aged && !self.sc.is_cgroup_reclaim();
            if scanned == 0 || self.has_reclaimed_enough() || others_next {
                break;
            }
            budget = budget.saturating_sub(scanned);
            // The aged part is left above: there is no more to note than the budget.
            if budget > 0 && self.yields() {
                self.sc.interrupt().scanned = Some(budget);
                break;
            }
        }
        self.mem.pages.walk_context = false;
        rotate
    }

    /// Pages of the oldest generation of each type, summed. A scan that looked at more pages, and
    /// neither took nor moved one, met only pages that batches of other CPUs hold. Linux looks at
    /// them until its budget is used up or they are let go, which here is not before the call is
    /// over.
    pub(crate) fn oldest_pages(&self, v: LruvecId) -> u64 {
        let g = &self.mem.pages.lruvecs[v.index()].r#gen;
        [ANON, FILE].map(|t| g.nr_pages[gen_index(g.min_seq[t])][t]).iter().sum()
    }

    /// Pages to scan: of all that can be evicted the share of the priority, but for what is
    /// protected; of a group that is gone all.
    pub(crate) fn scan_budget(&mut self, v: LruvecId, swappiness: u32) -> u64 {
        let memcg = self.mem.pages.lruvecs[v.index()].memcg;
        let evictable = self.mem.pages.evictable_size(v, swappiness);
        if !self.mem.groups.memcgs.get(memcg).is_online() {
            return evictable;
        }
        let least = self.mem.cfg.lru.cluster_pages();
        let open = self.mem.groups.memcgs.unprotected_pages(&mut self.sc, memcg, evictable, least);
        self.mem.cfg.lru.share_of_priority(open, self.sc.priority)
    }

    /// Aging is due where nothing can be evicted, and below the first priority also where only one
    /// generation can.
    fn has_to_age(&self, v: LruvecId, swappiness: u32) -> bool {
        let g = &self.mem.pages.lruvecs[v.index()].r#gen;
        let floor = g.evictable_min_seq(swappiness > 0) + MIN_NR_GENS;
        floor > g.max_seq || self.sc.priority != DEF_PRIORITY && floor == g.max_seq
    }

    /// Whether the run has reclaimed the pages it wants; a run for a group ends then, too.
    fn has_reclaimed_enough(&self) -> bool {
        self.sc.nr_reclaimed >= self.sc.nr_to_reclaim.max(2) || self.should_abort_scan()
    }

    /// Evicts a batch of at most `most` folios. Returns the pages that were looked at.
    fn evict_batch_of(&mut self, v: LruvecId, swappiness: u32, most: u64) -> u64 {
        let mut list = self.mem.pages.take_scratch();
        self.check_write_queue();
        self.mem.pages.try_to_inc_min_seq(v, swappiness > 0);
        let (t, scanned, taken) = self.isolate_by_type(v, swappiness, most, &mut list);
        if scanned > 0 {
            self.mem.pages.try_to_inc_min_seq(v, swappiness > 0);
        }
        self.shrink_isolated_gen(v, t, taken, list);
        scanned
    }

    /// Isolates folios of the type that the controller chose, or of the other type if the first has
    /// nothing to look at. Returns the type, and pages scanned and isolated.
    fn isolate_by_type(
        &mut self,
        v: LruvecId,
        swappiness: u32,
        most: u64,
        list: &mut Vec<FolioId>,
    ) -> (usize, u64, u64) {
        let g = &self.mem.pages.lruvecs[v.index()].r#gen;
        let mut t = match swappiness {
            0 | 1 => FILE,
            200 => ANON,
            s => g.type_to_scan_of_all_tiers(s, self.mem.cfg.lru.batch_divisor),
        };
        let mut total = 0;
        for _ in 0..if swappiness == 0 { 1 } else { 2 } {
            let lru = &self.mem.cfg.lru;
            let g = &self.mem.pages.lruvecs[v.index()].r#gen;
            let limit = g.tier_limit(t, lru.generations, lru.batch_divisor);
            let (scanned, isolated) = self.scan_folios(v, t, limit, most, list);
            total += scanned;
            if isolated > 0 || self.sc.blocked {
                return (t, total, isolated);
            }
            if scanned == 0 {
                t = 1 - t;
            }
        }
        (t, total, 0)
    }
}
