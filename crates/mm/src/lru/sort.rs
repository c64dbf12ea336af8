//! Multi-gen LRU: sorting the oldest generation, and taking folios from its tail.
//!
//! Mechanism: `docs/mechanisms.md#multi-gen-eviction`.

use crate::config::lru::{CacheProtection, Generations, LruConfig, RefaultCounting, WritebackSort};
use crate::folio::flags::FolioFlags;
use crate::folio::list::List;
use crate::ids::{FolioId, LruvecId};
use crate::lru::lru_list::FILE;
use crate::lru::multi_gen::{MIN_LRU_BATCH, gen_index};
use crate::lru::pages::ResidentPages;
use crate::lru::policy::lru_gen_folio_seq;
use crate::lru::tier::was_accessed_again;
use crate::stat::Counter;

/// A scan of the oldest generation of a type, in pages.
#[derive(Default)]
pub(crate) struct OldestGenScan {
    pub(crate) t: usize,
    pub(crate) oldest_gen: usize,
    pub(crate) tier_limit: usize,
    /// Whether to stop in front of a folio that must be written, as its write would have to wait.
    pub(crate) wait: bool,
    /// Whether the zone is above the zones that pages are wanted from.
    pub(crate) above_reclaim_idx: bool,
    /// Whether the scan has stopped in front of a folio that must be written.
    pub(crate) blocked: bool,
    /// Folios that the scan may still look at.
    pub(crate) remaining: u64,
    pub(crate) scanned: u64,
    pub(crate) isolated: u64,
    pub(crate) sorted: u64,
    pub(crate) skipped: u64,
}

/// An anonymous folio that can only be freed after it is written.
pub(crate) fn needs_write(st: FolioFlags) -> bool {
    st.has(FolioFlags::SWAPBACKED)
        && !st.has(FolioFlags::WRITEBACK)
        && (st.has(FolioFlags::MAPPED | FolioFlags::DIRTY) || !st.has(FolioFlags::SWAPCACHE))
}

/// Flags of a busy folio of a type: locked, under writeback, or, for a file, dirty.
#[inline(always)]
fn busy_flags(t: usize) -> u32 {
    FolioFlags::LOCKED | FolioFlags::WRITEBACK | if t == FILE { FolioFlags::DIRTY } else { 0 }
}

/// Whether a folio of the oldest generation must not be evicted now.
#[inline(always)]
fn must_stay(cfg: &LruConfig, st: FolioFlags, t: usize, tier_limit: usize) -> bool {
    (was_accessed_again(st) && is_protected(cfg, st, tier_limit)) || st.has(sorted_flags(cfg, t))
}

/// Flags of a busy folio that send it to the next generation.
#[inline(always)]
fn sorted_flags(cfg: &LruConfig, t: usize) -> u32 {
    match cfg.writeback_sort {
        WritebackSort::NextGeneration => busy_flags(t),
        WritebackSort::None => 0,
    }
}

/// Whether its accesses by descriptor keep a folio from being evicted.
#[inline(always)]
fn is_protected(cfg: &LruConfig, st: FolioFlags, tier_limit: usize) -> bool {
    let always = cfg.cache_protection == CacheProtection::SecondOldest;
    let form = cfg.generations;
    form.tier(st) > tier_limit || (always && form.has_all_accesses(st))
}

impl ResidentPages {
    /// Prepares a survivor for its way back. True: nothing keeps it in memory, so it is tried once
    /// more; never true for one that was tried twice.
    pub(crate) fn may_retry(&mut self, f: FolioId, retried: bool) -> bool {
        const REJECTED: u32 = FolioFlags::ACTIVE
            | FolioFlags::REFERENCED
            | FolioFlags::MAPPED
            | FolioFlags::LOCKED
            | FolioFlags::DIRTY
            | FolioFlags::WRITEBACK
            | FolioFlags::UNEVICTABLE;
        let st = self.folios.st(f);
        if self.cfg.generations == Generations::Independent {
            return self.may_retry_independent(f, retried);
        }
        if st.has(FolioFlags::RECLAIM) && st.has(FolioFlags::DIRTY | FolioFlags::WRITEBACK) {
            if st.has(FolioFlags::WORKINGSET) {
                self.folios.set(f, FolioFlags::REFERENCED);
            }
            return false;
        }
        if !retried && !st.has(REJECTED) && self.cfg.retry_survivors {
            return true;
        }
        if !st.has(FolioFlags::UNEVICTABLE) && !self.cfg.retry_survivors {
            // Before Linux 6.1 the accesses of the folio count on.
            let counts = if st.has(FolioFlags::WORKINGSET) { FolioFlags::REFERENCED } else { 0 };
            self.folios.set(f, FolioFlags::ACTIVE | counts);
        } else if !st.has(FolioFlags::UNEVICTABLE) {
            // A rejected folio must not re-enter the oldest generation.
            self.folios.clear(f, FolioFlags::REFS_MASK | FolioFlags::REFERENCED | FolioFlags::WORKINGSET);
            self.folios.set(f, FolioFlags::ACTIVE);
        }
        false
    }

    /// `may_retry` since 6.14: a folio that would come back into the oldest generation becomes
    /// active.
    fn may_retry_independent(&mut self, f: FolioId, retried: bool) -> bool {
        const REJECTED: u32 = FolioFlags::ACTIVE
            | FolioFlags::MAPPED
            | FolioFlags::DIRTY
            | FolioFlags::WRITEBACK
            | FolioFlags::UNEVICTABLE;
        let st = self.folios.st(f);
        if !retried && !st.has(REJECTED) && self.cfg.retry_survivors {
            return true;
        }
        let g = &self.lruvecs[self.folios.lruvec(f).index()].r#gen;
        if !st.has(FolioFlags::UNEVICTABLE)
            && lru_gen_folio_seq(g, st, false, self.cfg.faulted_pages) == g.min_seq[st.type_index()]
        {
            self.folios.clear(f, FolioFlags::REFS_MASK | FolioFlags::REFERENCED);
            self.folios.set(f, FolioFlags::ACTIVE);
        }
        false
    }

    /// Scans one zone, until a batch of pages is taken, or as many were skipped.
    pub(crate) fn scan_zone(&mut self, v: LruvecId, zone: usize, scan: &mut OldestGenScan, list: &mut Vec<FolioId>) {
        let oldest = self.lruvecs[v.index()].r#gen.lists[scan.oldest_gen][scan.t][zone];
        let (mut skipped, batch) = (0, self.cfg.part(MIN_LRU_BATCH));
        let mut moved = self.take_scratch();
        let form = self.cfg.generations;
        self.folios.prefetch_tail(oldest, MIN_LRU_BATCH as usize);
        let in_row = !scan.wait && !scan.above_reclaim_idx;
        loop {
            if in_row && self.take_in_row(oldest, scan, list, batch) {
                break;
            }
            let Some(f) = self.folios.links.tail(oldest) else { break };
            let st = self.folios.st(f);
            let nr = st.nr_pages();
            scan.scanned += nr;
            if st.generation().is_some_and(|g| g != scan.oldest_gen) {
                // Promoted by a walk or a look-around.
                self.folios.links.pop_tail(oldest);
                self.follow_promotion(v, f, st, scan.t);
                scan.sorted += nr;
            } else if self.must_sort(st, scan.oldest_gen, scan.t, scan.tier_limit) {
                self.sort_folio(v, f, scan.t, scan.tier_limit);
                scan.sorted += nr;
            } else if scan.above_reclaim_idx {
                self.move_to_next_generation(v, f, scan.t, true);
                scan.sorted += nr;
            } else if scan.wait && needs_write(st) {
                scan.scanned -= nr;
                scan.blocked = true;
                break;
            } else {
                self.folios.links.pop_tail(oldest);
                if st.has(FolioFlags::LRU) {
                    self.folios.put(f, form.isolated(st));
                    list.push(f);
                    scan.isolated += nr;
                } else {
                    // Someone else holds it.
                    moved.push(f);
                    skipped += nr;
                }
            }
            scan.remaining -= 1;
            if scan.remaining == 0 || scan.isolated.max(skipped) >= batch {
                break;
            }
        }
        // Back to the head, in the order in which they were.
        moved.iter().for_each(|&f| self.folios.links.add(oldest, f));
        self.return_scratch(moved);
        scan.skipped += skipped;
    }

    /// Takes folios of one page in a row, up to the first for which there is more to decide. True:
    /// the scan ends with them.
    #[inline(always)]
    fn take_in_row(&mut self, oldest: List, scan: &mut OldestGenScan, list: &mut Vec<FolioId>, batch: u64) -> bool {
        const OWN: u32 = FolioFlags::GEN_MASK | FolioFlags::LRU | FolioFlags::LARGE;
        let mut own = FolioFlags(FolioFlags::LRU);
        own.set_generation(scan.oldest_gen);
        let cfg = self.cfg;
        let all = OWN | sorted_flags(&cfg, scan.t);
        // Flags that a folio keeps of any, without `referenced` and with it.
        let keep = [!FolioFlags::REFERENCED, u32::MAX].map(|flags| cfg.generations.isolated(FolioFlags(flags)).0);
        let nr = scan.remaining.min(batch.saturating_sub(scan.isolated));
        let taken = self.folios.take_oldest(oldest, nr as usize, list, |st| {
            let protected = was_accessed_again(st) && is_protected(&cfg, st, scan.tier_limit);
            let kept = if st.has(FolioFlags::REFERENCED) { keep[1] } else { keep[0] };
            (st.0 & all == own.0 && !protected).then_some(FolioFlags(st.0 & kept))
        }) as u64;
        scan.scanned += taken;
        scan.isolated += taken;
        scan.remaining -= taken;
        taken > 0 && (scan.remaining == 0 || scan.isolated >= batch)
    }

    /// Whether a folio on the oldest list must not be evicted now.
    #[inline(always)]
    fn must_sort(&self, st: FolioFlags, oldest: usize, t: usize, tier_limit: usize) -> bool {
        st.generation() != Some(oldest) || must_stay(&self.cfg, st, t, tier_limit)
    }

    /// Puts a folio that was promoted, and taken off its list, on that of its generation.
    #[inline]
    fn follow_promotion(&mut self, v: LruvecId, f: FolioId, st: FolioFlags, t: usize) {
        let Some(generation) = st.generation() else { return };
        let list = self.lruvecs[v.index()].r#gen.lists[generation][t][self.folios.zone_list(f)];
        self.folios.links.add(list, f);
    }

    /// Moves a folio that `must_sort`, and was not promoted.
    fn sort_folio(&mut self, v: LruvecId, f: FolioId, t: usize, tier_limit: usize) {
        let st = self.folios.st(f);
        let protected = is_protected(&self.cfg, st, tier_limit);
        let g = &mut self.lruvecs[v.index()].r#gen;
        if protected {
            g.note_protected(t, st, self.cfg.generations);
            // Since 6.14 to the head.
            self.move_to_next_generation(v, f, t, self.cfg.generations == Generations::Linked);
            if self.cfg.refault_counting == RefaultCounting::RecentOnly {
                // Linux 6.1 counts what it protects as activated.
                self.count(f, Counter::activate(t), st.nr_pages());
            }
        } else {
            // Linux 6.1 sends what is busy to the next generation.
            self.move_to_next_generation(v, f, t, false);
            self.folios.set(f, FolioFlags::RECLAIM);
        }
    }

    /// From the oldest generation to the next, to its tail or its head; refs and flags start over.
    pub(crate) fn move_to_next_generation(&mut self, v: LruvecId, f: FolioId, t: usize, tail: bool) {
        let g = &self.lruvecs[v.index()].r#gen;
        let (from, to) = (gen_index(g.min_seq[t]), gen_index(g.min_seq[t] + 1));
        let list = g.lists[to][t][self.folios.zone_list(f)];
        let mut st = self.folios.st(f);
        st.clear(self.cfg.generations.lost_by_aging());
        st.set_generation(to);
        self.folios.put(f, st);
        let nr = st.nr_pages();
        self.gen_update_size(v, t, from, to, nr);
        self.folios.links.del(f);
        match tail {
            true => self.folios.links.add_tail(list, f),
            false => self.folios.links.add(list, f),
        }
    }
}
