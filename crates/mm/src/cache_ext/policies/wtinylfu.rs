//! W-TinyLFU: new folios pass a small window; from there one reaches the main part only if it was
//! used more often than what would have to go for it.
//!
//! The paper estimates how often by a sketch. Here each folio has a count of its own, which
//! outlives its stay, and ages as in the paper.

use crate::cache_ext::list::{Eviction, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps, FolioMap};
use crate::ids::FolioId;

/// The window has one in so many folios.
const WINDOW_SHARE: u64 = 100;
/// Percent of the main part that was used again there.
const PROTECTED_PERCENT: u64 = 80;
/// Accesses that count.
const MOST: u8 = 15;
/// Counts are halved after so many accesses for each folio that there is room for.
const SAMPLE: u64 = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    accesses: u8,
    /// How often counts had been halved then.
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
    /// Accesses since then.
    since: u64,
    /// Folios that go at a time, for which the window must have room.
    batch: u64,
    /// Folios that there were when some had to go the last time: others have a part of the limit.
    room: Option<u64>,
}

impl CacheExtOps for WTinyLfu {
    fn init(&mut self, cache: &mut Cache<'_>) {
        [self.window, self.probation, self.protected] = std::array::from_fn(|_| cache.lists.new_list());
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.count(cache, folio);
        cache.lists.move_tail(self.window, folio);
        // While there is room, nothing has to be better than something else.
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
    /// Room for folios, and the part of it that is the window.
    fn shares(&self, cache: &Cache<'_>) -> (u64, u64) {
        let room = self.room.unwrap_or(cache.limit).min(cache.limit).max(1);
        (room, (room / WINDOW_SHARE).max(self.batch).max(1).min(room - 1))
    }

    /// The one of two that goes. Where both were used as often, the new one.
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
        // Folios that were used often and are not any more go at last.
        (0..40).for_each(|_| _ = cache.misses(&[11, 12, 13, 14]));
        assert_eq!(cache.resident().iter().filter(|id| **id < 10).count(), 0, "{:?}", cache.resident());
    }
}
