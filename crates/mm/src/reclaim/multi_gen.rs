//! Multi-gen eviction: sort the oldest generation, isolate from its tail, free.
//!
//! Mechanism: `docs/mechanisms.md#the-refault-controller`, `docs/mechanisms.md#multi-gen-eviction`.

use crate::config::lru::{Generations, ScanBudget};
use crate::ids::{FolioId, LruvecId};
use crate::lru::lru_list::{ANON, FILE, list_index};
use crate::lru::multi_gen::{MAX_LRU_BATCH, MIN_LRU_BATCH, MIN_NR_GENS, gen_index};
use crate::lru::sort::OldestGenScan;
use crate::reclaim::Reclaim;
use crate::scan::DEF_PRIORITY;
use crate::stat::Counter;
use crate::world::World;

impl<W: World> Reclaim<'_, W> {
    /// Shrinks one lruvec: batches until enough was scanned for this priority. True: it was aged
    /// instead.
    pub(crate) fn shrink_lruvec_gen(&mut self, v: LruvecId) -> bool {
        if self.mem.cfg.lru.scan_budget == ScanBudget::Once {
            return self.shrink_lruvec_by_budget(v);
        }
        self.mem.pages.drain_batches();
        let swappiness = self.effective_swappiness(v);
        let (mut scanned, mut aged) = (self.sc.resumed_scan().unwrap_or(0), false);
        loop {
            let Some(nr_to_scan) = self.nr_to_scan(v, swappiness) else {
                aged = true;
                break;
            };
            if nr_to_scan == 0 {
                break;
            }
            let delta = self.evict_folios(v, swappiness);
            scanned += delta;
            if delta == 0 || scanned >= nr_to_scan || self.should_abort_scan() {
                break;
            }
            if self.yields() {
                self.sc.interrupt().scanned = Some(scanned);
                break;
            }
        }
        self.mem.pages.walk_context = false;
        aged
    }

    /// 0 if anon cannot be reclaimed, else the setting.
    pub(crate) fn effective_swappiness(&self, v: LruvecId) -> u32 {
        if !self.sc.may_swap {
            return 0;
        }
        let (memcg, free) = (self.mem.pages.lruvecs[v.index()].memcg, self.mem.swap.slots.free_pages());
        let least = self.mem.cfg.lru.part(MIN_LRU_BATCH);
        let room = free >= least && self.mem.groups.memcgs.swap_room(memcg, free) >= least;
        let room = room
            || self.mem.cfg.swap.reclaim_cache
                && self.mem.swap.can_reclaim_anon(
                    &self.mem.cfg,
                    &self.mem.groups,
                    &self.mem.frames,
                    memcg,
                    self.sc.nid,
                );
        if room || self.mem.frames.can_demote(self.sc.nid) {
            self.mem.groups.swappiness(&self.mem.cfg, memcg, self.sc.swappiness)
        } else {
            0
        }
    }

    /// Pages to scan, by size and priority; none while aging stands in for it.
    pub(crate) fn nr_to_scan(&mut self, v: LruvecId, swappiness: u32) -> Option<u64> {
        let aging = self.mem.pages.should_run_aging(v, swappiness);
        if !self.mem.groups.memcgs.get(self.mem.pages.lruvecs[v.index()].memcg).is_online() {
            return Some(aging.total);
        }
        if !aging.wanted || self.sc.priority == DEF_PRIORITY {
            return Some(self.mem.cfg.lru.share_of_priority(aging.total, self.sc.priority));
        }
        let seq = self.mem.pages.lruvecs[v.index()].r#gen.max_seq;
        match self.mem.pages.try_to_inc_max_seq(self.mem.now_ns, self.world, v, seq, swappiness > 0, false) {
            true => None,
            false => Some(0),
        }
    }

    /// One batch. Returns what was scanned, one more if the oldest generation went; 0 when only two
    /// are left.
    pub(crate) fn evict_folios(&mut self, v: LruvecId, swappiness: u32) -> u64 {
        let mut list = self.mem.pages.take_scratch();
        self.check_write_queue();
        let (t, mut scanned, taken) = self.isolate_folios(v, swappiness, &mut list);
        scanned += u64::from(self.mem.pages.try_to_inc_min_seq(v, swappiness > 0));
        let g = &self.mem.pages.lruvecs[v.index()].r#gen;
        if g.evictable_min_seq(swappiness > 0) + MIN_NR_GENS > g.max_seq {
            scanned = 0;
        }
        self.shrink_isolated_gen(v, t, taken, list);
        scanned
    }

    /// Frees what can be freed of a list that was isolated, `taken` pages of a type; the rest goes
    /// back.
    pub(crate) fn shrink_isolated_gen(&mut self, v: LruvecId, t: usize, mut taken: u64, mut list: Vec<FolioId>) {
        self.sc.took_anon |= t == ANON && !list.is_empty();
        let mut retried = false;
        while !list.is_empty() {
            let stat = self.shrink_folio_list(&mut list);
            self.sc.nr_reclaimed += stat.reclaimed;
            self.sc.seen.add(&stat, taken, t == FILE);
            self.mem.pages.count_steal(v, t, stat.reclaimed, self.sc.kswapd);
            if list.is_empty() {
                break;
            }
            let mut clean = self.mem.pages.take_scratch();
            list.retain(|&f| {
                let retry = self.mem.pages.may_retry(f, retried);
                if retry {
                    clean.push(f);
                }
                !retry
            });
            self.mem.pages.put_back(&list);
            self.mem.pages.return_scratch(std::mem::replace(&mut list, clean));
            taken = list.iter().map(|&f| self.mem.pages.folios.st(f).nr_pages()).sum();
            retried = true;
        }
        self.mem.pages.return_scratch(list);
    }

    /// Isolates folios of the type that swappiness or the generations dictate, else of the
    /// controller's choice; if nothing was scanned, of the other type. Returns the type, and pages
    /// scanned and isolated.
    fn isolate_folios(&mut self, v: LruvecId, swappiness: u32, list: &mut Vec<FolioId>) -> (usize, u64, u64) {
        let g = &self.mem.pages.lruvecs[v.index()].r#gen;
        let (form, divisor) = (self.mem.cfg.lru.generations, self.mem.cfg.lru.batch_divisor);
        let (mut t, mut limit) = match swappiness {
            0 => (FILE, None),
            _ if form == Generations::Linked && g.min_seq[ANON] < g.min_seq[FILE] => (ANON, None),
            1 => (FILE, None),
            200 => (ANON, None),
            s if form == Generations::Independent => (g.type_to_scan_of_all_tiers(s, divisor), None),
            s => {
                let (t, limit) = g.type_to_scan(s, divisor);
                (t, Some(limit))
            }
        };
        let attempts = if swappiness == 0 { 1 } else { 2 };
        for attempt in 1..=attempts {
            let g = &self.mem.pages.lruvecs[v.index()].r#gen;
            let tier_limit = limit.take().unwrap_or_else(|| g.tier_limit(t, form, divisor));
            let most = self.mem.cfg.lru.part(MAX_LRU_BATCH);
            let (scanned, isolated) = self.scan_folios(v, t, tier_limit, most, list);
            if scanned > 0 || self.sc.blocked {
                return (t, scanned, isolated);
            }
            if attempt < attempts {
                t = 1 - t;
            }
        }
        (t, 0, 0)
    }

    /// Sorts and isolates up to `most` folios from the tail of the oldest generation of a type.
    /// Returns the pages looked at and the pages isolated.
    pub(crate) fn scan_folios(
        &mut self,
        v: LruvecId,
        t: usize,
        tier_limit: usize,
        most: u64,
        list: &mut Vec<FolioId>,
    ) -> (u64, u64) {
        let g = &self.mem.pages.lruvecs[v.index()].r#gen;
        if g.nr_gens(t) == MIN_NR_GENS {
            return (0, 0);
        }
        let oldest_gen = gen_index(g.min_seq[t]);
        let nid = self.mem.pages.lruvecs[v.index()].nid;
        let wait = self.sc.queue_full && t == ANON;
        let mut scan = OldestGenScan { t, oldest_gen, tier_limit, wait, remaining: most, ..OldestGenScan::default() };
        // The highest zone first: while it yields enough, what lies in lower ones stays. Zones that
        // are of no use come last.
        let nr_zones = self.mem.frames.nodes.get(nid).zone_lists();
        let of_use = nr_zones.min(self.sc.reclaim_idx + 1);
        for zone in (0..of_use).rev().chain((of_use..nr_zones).rev()) {
            scan.above_reclaim_idx = zone >= of_use;
            self.mem.pages.scan_zone(v, zone, &mut scan, list);
            if scan.remaining == 0 || scan.isolated >= self.mem.cfg.lru.part(MIN_LRU_BATCH) || scan.blocked {
                break;
            }
        }
        self.sc.blocked |= scan.blocked;
        self.mem.pages.lruvecs[v.index()].r#gen.nr_pages[oldest_gen][t] -= scan.isolated;
        self.mem.pages.resize_list(v, list_index(t, false), -(scan.isolated as i64));
        self.sc.nr_scanned += scan.isolated;
        self.mem.pages.count_lruvec(v, Counter::PgscanSkip, scan.skipped);
        self.mem.pages.count_lruvec(v, Counter::Pgrefill, scan.sorted);
        self.mem.pages.work.scanned += scan.sorted;
        self.mem.pages.count_scan(v, t, scan.isolated, self.sc.kswapd);
        let exact = self.mem.cfg.lru.scan_budget == ScanBudget::Once;
        let counts = exact || scan.isolated > 0 || scan.remaining == 0;
        (if counts { scan.scanned } else { 0 }, scan.isolated)
    }
}
