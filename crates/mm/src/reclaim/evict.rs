//! Multi-gen eviction (4.4 order of choices, 4.6): sort the oldest generation, isolate from its tail, free.

use crate::config::{RefaultCounting, WritebackSort};
use crate::engine::Engine;
use crate::folio::table::State;
use crate::ids::{FolioId, LruvecId};
use crate::lru::lruvec::{ANON, FILE, list_index};
use crate::lru::multi_gen::{MAX_LRU_BATCH, MIN_LRU_BATCH, MIN_NR_GENS, gen_index, tier_from_refs};
use crate::reclaim::scan::{DEF_PRIORITY, ScanControl};
use crate::stat::Counter;
use crate::world::World;

/// What the aging test says.
pub(crate) struct Aging {
    pub(crate) wanted: bool,
    /// Pages of the types in play.
    pub(crate) total: u64,
}

/// A scan of the oldest generation of a type, in pages.
#[derive(Default)]
struct Scan {
    t: usize,
    oldest_gen: usize,
    tier_limit: usize,
    /// What must be written would have to wait.
    wait: bool,
    /// It came to such a folio.
    blocked: bool,
    /// Folios that it may still look at.
    remaining: u64,
    scanned: u64,
    isolated: u64,
    sorted: u64,
    skipped: u64,
}

impl Engine {
    /// Shrinks one lruvec: batches until enough was scanned for this priority. True: it was aged instead.
    pub(crate) fn shrink_lruvec_gen<W: World>(&mut self, w: &mut W, v: LruvecId, sc: &mut ScanControl) -> bool {
        self.drain_batches();
        let swappiness = self.effective_swappiness(v, sc);
        let (mut scanned, mut aged) = (0, false);
        loop {
            let Some(nr_to_scan) = self.nr_to_scan(w, v, sc, swappiness) else {
                aged = true;
                break;
            };
            if nr_to_scan == 0 {
                break;
            }
            let delta = self.evict_folios(w, v, sc, swappiness);
            scanned += delta;
            if delta == 0 || scanned >= nr_to_scan || self.should_abort_scan(sc) {
                break;
            }
        }
        self.pages.walk_context = false;
        aged
    }

    /// 0 if anon cannot be reclaimed, else the setting.
    pub(crate) fn effective_swappiness(&self, v: LruvecId, sc: &ScanControl) -> u32 {
        if !sc.may_swap {
            return 0;
        }
        let (memcg, free) = (self.pages.lruvecs[v.index()].memcg, self.swap.slots.free_pages());
        let room = free >= MIN_LRU_BATCH && self.groups.memcgs.swap_room(memcg, free) >= MIN_LRU_BATCH;
        let room = room || self.cfg.reclaim_swap_cache && self.can_reclaim_anon(memcg, sc.nid);
        if room || self.can_demote(sc.nid) { self.swappiness(memcg, sc) } else { 0 }
    }

    /// Pages to scan, by size and priority; none while aging stands in for it.
    fn nr_to_scan<W: World>(&mut self, w: &mut W, v: LruvecId, sc: &mut ScanControl, swappiness: u32) -> Option<u64> {
        let aging = self.should_run_aging(v, swappiness);
        if !self.groups.memcgs.get(self.pages.lruvecs[v.index()].memcg).is_online() {
            return Some(aging.total);
        }
        if !aging.wanted || sc.priority == DEF_PRIORITY {
            return Some(aging.total >> sc.priority);
        }
        let seq = self.pages.lruvecs[v.index()].r#gen.max_seq;
        match self.try_to_inc_max_seq(w, v, seq, swappiness > 0, false) {
            true => None,
            false => Some(0),
        }
    }

    /// 4.5.
    pub(crate) fn should_run_aging(&self, v: LruvecId, swappiness: u32) -> Aging {
        let g = &self.pages.lruvecs[v.index()].r#gen;
        let first = if swappiness > 0 { ANON } else { FILE };
        if g.min_seq[first] + MIN_NR_GENS > g.max_seq {
            return Aging { wanted: true, total: 0 };
        }
        let (mut young, mut old, mut total) = (0, 0, 0);
        for t in first..=FILE {
            for seq in g.min_seq[t]..=g.max_seq {
                let size = g.nr_pages[gen_index(seq)][t];
                total += size;
                young += size * u64::from(seq == g.max_seq);
                old += size * u64::from(seq + MIN_NR_GENS == g.max_seq);
            }
        }
        let spread = young * MIN_NR_GENS > total || old * (MIN_NR_GENS + 2) < total;
        Aging { wanted: g.min_seq[first] + MIN_NR_GENS == g.max_seq && spread, total }
    }

    /// One batch. Returns what was scanned, one more if the oldest generation went; 0 when only two are left.
    pub(crate) fn evict_folios<W: World>(
        &mut self,
        w: &mut W,
        v: LruvecId,
        sc: &mut ScanControl,
        swappiness: u32,
    ) -> u64 {
        let mut list = self.take_scratch();
        self.look_at_queue(w, sc);
        let (t, mut scanned, mut taken) = self.isolate_folios(v, swappiness, &mut list, sc);
        scanned += u64::from(self.try_to_inc_min_seq(v, swappiness > 0));
        let bound = if swappiness > 0 { ANON } else { FILE };
        if self.pages.lruvecs[v.index()].r#gen.nr_gens(bound) == MIN_NR_GENS {
            scanned = 0;
        }
        sc.took_anon |= t == ANON && !list.is_empty();
        let mut retried = false;
        while !list.is_empty() {
            let stat = self.shrink_folio_list(w, &mut list, sc);
            sc.nr_reclaimed += stat.reclaimed;
            sc.seen.add(&stat, taken, t == FILE);
            self.count_steal(v, t, stat.reclaimed, sc);
            if list.is_empty() {
                break;
            }
            let mut clean = self.take_scratch();
            list.retain(|&f| {
                let retry = !retried && self.may_retry(f);
                if retry {
                    clean.push(f);
                }
                !retry
            });
            self.put_back(&list);
            self.return_scratch(std::mem::replace(&mut list, clean));
            taken = list.iter().map(|&f| self.pages.folios.st(f).nr_pages()).sum();
            retried = true;
        }
        self.return_scratch(list);
        scanned
    }

    /// Prepares a survivor for its way back. True: nothing is wrong with it, try once more.
    fn may_retry(&mut self, f: FolioId) -> bool {
        const REJECTED: u32 = State::ACTIVE
            | State::REFERENCED
            | State::MAPPED
            | State::LOCKED
            | State::DIRTY
            | State::WRITEBACK
            | State::UNEVICTABLE;
        let st = self.pages.folios.st(f);
        if st.has(State::RECLAIM) && st.has(State::DIRTY | State::WRITEBACK) {
            if st.has(State::WORKINGSET) {
                self.pages.folios.set(f, State::REFERENCED);
            }
            return false;
        }
        if !st.has(REJECTED) {
            return true;
        }
        if !st.has(State::UNEVICTABLE) {
            // A rejected folio must not re-enter the oldest generation.
            self.pages.folios.clear(f, State::REFS_MASK | State::REFERENCED | State::WORKINGSET);
            self.pages.folios.set(f, State::ACTIVE);
        }
        false
    }

    /// The obvious type first, else the controller's; if that yields nothing, the other once. Returns the type, and pages scanned and
    /// isolated.
    fn isolate_folios(
        &mut self,
        v: LruvecId,
        swappiness: u32,
        list: &mut Vec<FolioId>,
        sc: &mut ScanControl,
    ) -> (usize, u64, u64) {
        let g = &self.pages.lruvecs[v.index()].r#gen;
        let (mut t, mut limit) = match swappiness {
            0 => (FILE, None),
            _ if g.min_seq[ANON] < g.min_seq[FILE] => (ANON, None),
            1 => (FILE, None),
            200 => (ANON, None),
            s => {
                let (t, limit) = g.type_to_scan(s);
                (t, Some(limit))
            }
        };
        let attempts = if swappiness == 0 { 1 } else { 2 };
        for attempt in 1..=attempts {
            let tier_limit = limit.take().unwrap_or_else(|| self.pages.lruvecs[v.index()].r#gen.tier_limit(t));
            let (scanned, isolated) = self.scan_folios(v, t, tier_limit, list, sc);
            if scanned > 0 || sc.blocked {
                return (t, scanned, isolated);
            }
            if attempt < attempts {
                t = 1 - t;
            }
        }
        (t, 0, 0)
    }

    /// Sorts and isolates from the tail of the oldest generation of a type.
    fn scan_folios(
        &mut self,
        v: LruvecId,
        t: usize,
        tier_limit: usize,
        list: &mut Vec<FolioId>,
        sc: &mut ScanControl,
    ) -> (u64, u64) {
        let g = &self.pages.lruvecs[v.index()].r#gen;
        if g.nr_gens(t) == MIN_NR_GENS {
            return (0, 0);
        }
        let oldest_gen = gen_index(g.min_seq[t]);
        let nid = self.pages.lruvecs[v.index()].nid;
        let wait = sc.queue_full && t == ANON;
        let mut scan = Scan { t, oldest_gen, tier_limit, wait, remaining: MAX_LRU_BATCH, ..Scan::default() };
        // The highest zone first: while it yields enough, what lies in lower ones stays.
        for zone in (0..self.frames.nodes.get(nid).zone_lists()).rev() {
            self.scan_zone(v, zone, &mut scan, list);
            if scan.remaining == 0 || scan.isolated >= MIN_LRU_BATCH || scan.blocked {
                break;
            }
        }
        sc.blocked |= scan.blocked;
        self.pages.lruvecs[v.index()].r#gen.nr_pages[oldest_gen][t] -= scan.isolated;
        self.resize_list(v, list_index(t, false), -(scan.isolated as i64));
        sc.nr_scanned += scan.isolated;
        self.count_lruvec(v, Counter::PgscanSkip, scan.skipped);
        self.count_lruvec(v, Counter::Pgrefill, scan.sorted);
        self.pages.work.scanned += scan.sorted;
        self.count_scan(v, t, scan.isolated, sc);
        (if scan.isolated > 0 || scan.remaining == 0 { scan.scanned } else { 0 }, scan.isolated)
    }

    /// The part of a scan in one zone: until it has a batch, or skipped one.
    fn scan_zone(&mut self, v: LruvecId, zone: usize, scan: &mut Scan, list: &mut Vec<FolioId>) {
        let oldest = self.pages.lruvecs[v.index()].r#gen.lists[scan.oldest_gen][scan.t][zone];
        let mut skipped = 0;
        let mut moved = self.take_scratch();
        self.pages.folios.warm_tail(oldest, MIN_LRU_BATCH as usize);
        while let Some(f) = self.pages.folios.links.tail(oldest) {
            let st = self.pages.folios.st(f);
            let nr = st.nr_pages();
            scan.scanned += nr;
            if self.must_sort(st, scan.oldest_gen, scan.t, scan.tier_limit) {
                self.sort_folio(v, f, scan.t, scan.tier_limit);
                scan.sorted += nr;
            } else if scan.wait && needs_write(st) {
                scan.scanned -= nr;
                scan.blocked = true;
                break;
            } else {
                self.pages.folios.links.pop_tail(oldest);
                if st.has(State::LRU) {
                    self.pages.folios.put(f, st.isolated());
                    list.push(f);
                    scan.isolated += nr;
                } else {
                    // Someone else holds it.
                    moved.push(f);
                    skipped += nr;
                }
            }
            scan.remaining -= 1;
            if scan.remaining == 0 || scan.isolated.max(skipped) >= MIN_LRU_BATCH {
                break;
            }
        }
        // Back to the head, in the order in which they were.
        moved.iter().for_each(|&f| self.pages.folios.links.add(oldest, f));
        self.return_scratch(moved);
        scan.skipped += skipped;
    }

    /// Whether a folio on the oldest list must not be evicted now.
    #[inline(always)]
    fn must_sort(&self, st: State, oldest: usize, t: usize, tier_limit: usize) -> bool {
        let refs = st.refs();
        let protected = tier_from_refs(refs) > tier_limit || refs == 1 << crate::folio::shadow::REFS_BITS;
        let next = self.cfg.writeback_sort == WritebackSort::NextGeneration;
        st.generation() != Some(oldest) || protected || (next && is_busy(st, t))
    }

    /// Moves a folio that [`Engine::must_sort`].
    fn sort_folio(&mut self, v: LruvecId, f: FolioId, t: usize, tier_limit: usize) {
        let st = self.pages.folios.st(f);
        let g = &mut self.pages.lruvecs[v.index()].r#gen;
        let oldest = gen_index(g.min_seq[t]);
        let generation = st.generation().unwrap_or(oldest);
        if generation != oldest {
            // Promoted by a walk or a look-around.
            let list = g.lists[generation][t][self.pages.folios.zone_list(f)];
            self.pages.folios.links.del(f);
            self.pages.folios.links.add(list, f);
            return;
        }
        let refs = st.refs();
        let tier = tier_from_refs(refs);
        if tier > tier_limit || refs == 1 << crate::folio::shadow::REFS_BITS {
            g.protected[t][tier - 1] += st.nr_pages();
            self.move_to_next_generation(v, f, t, true);
            if self.cfg.refault_counting == RefaultCounting::RecentOnly {
                // 6.1 counts what it protects as activated.
                self.count(f, Counter::activate(t), st.nr_pages());
            }
        } else {
            // 6.1 sends what is busy to the next generation.
            self.move_to_next_generation(v, f, t, false);
            self.pages.folios.set(f, State::RECLAIM);
        }
    }

    /// From the oldest generation to the next, to its tail or its head; refs and flags start over.
    pub(crate) fn move_to_next_generation(&mut self, v: LruvecId, f: FolioId, t: usize, tail: bool) {
        let g = &self.pages.lruvecs[v.index()].r#gen;
        let (from, to) = (gen_index(g.min_seq[t]), gen_index(g.min_seq[t] + 1));
        let list = g.lists[to][t][self.pages.folios.zone_list(f)];
        let mut st = self.pages.folios.st(f);
        st.clear(State::REFS_MASK | State::REFERENCED | State::WORKINGSET);
        st.set_generation(to);
        self.pages.folios.put(f, st);
        let nr = st.nr_pages();
        self.gen_update_size(v, t, from, to, nr);
        self.pages.folios.links.del(f);
        match tail {
            true => self.pages.folios.links.add_tail(list, f),
            false => self.pages.folios.links.add(list, f),
        }
    }
}

/// An anonymous folio that can only be freed after it is written.
pub(crate) fn needs_write(st: State) -> bool {
    st.has(State::SWAPBACKED)
        && !st.has(State::WRITEBACK)
        && (st.has(State::MAPPED | State::DIRTY) || !st.has(State::SWAPCACHE))
}

/// Locked, under writeback, or a dirty file folio.
fn is_busy(st: State, t: usize) -> bool {
    st.has(State::LOCKED | State::WRITEBACK) || (t == FILE && st.has(State::DIRTY))
}
