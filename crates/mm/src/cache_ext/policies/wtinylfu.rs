//! W-TinyLFU: new folios pass a small window. From there a folio reaches the main part only if it
//! was used more often than the folio that would have to go for it.
//!
//! The paper estimates the number of uses by a sketch. Here each folio has a count of its own,
//! which outlives its stay in memory, and ages as in the paper.

use crate::cache_ext::list::{Eviction, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps, FolioMap};
use crate::ids::FolioId;

/// Folios in memory for each folio of the window.
const WINDOW_SHARE: u64 = 100;
/// Share of the main part for folios that were used again there, in percent.
const PROTECTED_PERCENT: u64 = 80;
/// Largest count of accesses of a folio.
const MOST: u8 = 15;
/// Accesses, for each folio that there is room for, after which all counts are halved.
const SAMPLE: u64 = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    accesses: u8,
    /// Halvings of all counts before this one was noted.
    halved: u32,
}

/// Least recently used at the heads.
#[derive(Clone, Debug, Default)]
pub(crate) struct WTinyLfu {
    window: ListId,
    probation: ListId,
    protected: ListId,
    counts: FolioMap<Count>,
    halved: u32,
    /// Accesses since the last halving.
    since: u64,
    /// Folios that the largest request so far wanted: the window must have room for them.
    batch: u64,
    /// Folios in memory at the last eviction: fewer than the limit where other pages take a part of
    /// it.
    room: Option<u64>,
}

impl CacheExtOps for WTinyLfu {
    fn init(&mut self, cache: &mut Cache<'_>) {
        [self.window, self.probation, self.protected] = std::array::from_fn(|_| cache.lists.new_list());
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.count(cache, folio);
        cache.lists.move_tail(self.window, folio);
        // While the main part has room, a folio of the window goes there without a comparison.
        let (room, window) = self.shares(cache);
        let main = cache.lists.len(self.probation) + cache.lists.len(self.protected);
        if cache.lists.len(self.window) > window
            && main < room - window
            && let Some(oldest) = cache.lists.head(self.window)
        {
            cache.lists.move_tail(self.probation, oldest);
        }
    }

    fn folio_accessed(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.count(cache, folio);
        if cache.lists.is_on(self.window, folio) {
            return cache.lists.move_tail(self.window, folio);
        }
        cache.lists.move_tail(self.protected, folio);
        let (room, window) = self.shares(cache);
        if cache.lists.len(self.protected) > (room - window) * PROTECTED_PERCENT / 100
            && let Some(oldest) = cache.lists.head(self.protected)
        {
            cache.lists.move_tail(self.probation, oldest);
        }
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, _: bool) {
        cache.lists.del(folio);
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        self.batch = self.batch.max(eviction.wanted() as u64);
        self.room = Some(cache.resident);
        // Folios of the window that are still to be compared.
        let mut candidates = cache.lists.len(self.window);
        for _ in 0..cache.resident {
            let candidate = cache.lists.head(self.window).filter(|_| candidates > 0);
            let victim = cache.lists.head(self.probation).or(cache.lists.head(self.protected));
            let (Some(folio), false) = (self.loser(candidate, victim), eviction.is_full()) else { return };
            if let Some(winner) = candidate.filter(|&candidate| candidate != folio) {
                cache.lists.move_tail(self.probation, winner);
            }
            candidates -= u64::from(candidate.is_some());
            if let Some(own) = cache.lists.list_of(folio) {
                cache.lists.move_tail(own, folio);
            }
            eviction.propose(folio);
        }
    }
}

impl WTinyLfu {
    /// Room in all, and the share of the window, in folios.
    fn shares(&self, cache: &Cache<'_>) -> (u64, u64) {
        let room = self.room.unwrap_or(cache.limit).min(cache.limit).max(1);
        (room, (room / WINDOW_SHARE).max(self.batch).max(1).min(room - 1))
    }

    /// The folio to evict: the one used less often; of equals, the candidate from the window.
    fn loser(&self, candidate: Option<FolioId>, victim: Option<FolioId>) -> Option<FolioId> {
        let is_better = |of: FolioId, than: FolioId| self.estimate(of) > self.estimate(than);
        match (candidate, victim) {
            (Some(candidate), Some(victim)) if is_better(candidate, victim) => Some(victim),
            (Some(candidate), _) => Some(candidate),
            (None, victim) => victim,
        }
    }

    fn estimate(&self, folio: FolioId) -> u8 {
        let Count { accesses, halved } = self.counts.get(folio);
        accesses.checked_shr(self.halved - halved).unwrap_or(0)
    }

    fn count(&mut self, cache: &Cache<'_>, folio: FolioId) {
        let accesses = (self.estimate(folio) + 1).min(MOST);
        self.counts.set(folio, Count { accesses, halved: self.halved });
        self.since += 1;
        if self.since >= SAMPLE * cache.limit {
            (self.since, self.halved) = (0, self.halved + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn a_scan_passes_the_window_alone() {
        let mut cache = Plain::new(Box::new(WTinyLfu::default()), 20);
        let often: Vec<u32> = (1..=15).collect();
        (0..3).for_each(|_| _ = cache.misses(&often));
        assert_eq!(cache.misses(&(100..160).collect::<Vec<_>>()), 60);
        assert!(cache.misses(&often) <= 1, "{:?}", cache.resident());
    }

    #[test]
    fn counts_age() {
        let mut cache = Plain::new(Box::new(WTinyLfu::default()), 4);
        (0..20).for_each(|_| _ = cache.misses(&[1, 2, 3]));
        // Folios used often before, and no more, are evicted in the end.
        (0..40).for_each(|_| _ = cache.misses(&[11, 12, 13, 14]));
        assert_eq!(cache.resident().iter().filter(|id| **id < 10).count(), 0, "{:?}", cache.resident());
    }
}
