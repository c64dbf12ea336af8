//! S3-FIFO: new folios pass a small queue, and only folios used there reach the main one. A folio
//! that the small queue let go is remembered, and goes to the main one when it comes back.

use crate::cache_ext::list::{Eviction, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps, FolioMap};
use crate::ids::FolioId;

/// Folios that memory may have for each one in the small queue.
const SMALL_SHARE: u64 = 10;
/// Accesses in the small queue from which on a folio goes to the main one.
const TO_MAIN: u8 = 2;
/// Largest count of accesses of a folio.
const MOST: u8 = 3;

/// Oldest at the heads.
#[derive(Clone, Debug, Default)]
pub(crate) struct S3Fifo {
    small: ListId,
    main: ListId,
    /// Folios evicted from the small queue.
    ghost: ListId,
    accesses: FolioMap<u8>,
}

impl CacheExtOps for S3Fifo {
    fn init(&mut self, cache: &mut Cache<'_>) {
        [self.small, self.main, self.ghost] = std::array::from_fn(|_| cache.lists.new_list());
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.accesses.set(folio, 0);
        let to = if cache.lists.is_on(self.ghost, folio) { self.main } else { self.small };
        cache.lists.move_tail(to, folio);
        // Ghosts are trimmed only now: making room for this folio added some, and the folio itself
        // may have been the oldest.
        while cache.lists.len(self.ghost) > cache.limit - cache.limit.div_ceil(SMALL_SHARE)
            && let Some(oldest) = cache.lists.head(self.ghost)
        {
            cache.lists.del(oldest);
        }
    }

    fn folio_accessed(&mut self, _: &mut Cache<'_>, folio: FolioId) {
        self.accesses.set(folio, (self.accesses.get(folio) + 1).min(MOST));
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, evicted: bool) {
        let from_small = cache.lists.is_on(self.small, folio);
        cache.lists.del(folio);
        if evicted && from_small {
            cache.lists.add_tail(self.ghost, folio);
        }
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        let main_share = cache.limit - (cache.limit / SMALL_SHARE).max(1);
        // Steps enough to take every folio through the small queue, and down to no access.
        let mut left = (u64::from(MOST) + 2) * cache.resident.max(1);
        while left > 0 && !eviction.is_full() {
            left -= 1;
            let from_main = cache.lists.len(self.main) > main_share || cache.lists.is_empty(self.small);
            if from_main { self.step_main(cache, eviction) } else { self.step_small(cache, eviction) }
        }
    }
}

impl S3Fifo {
    /// Proposes the oldest folio of the small queue that was not used enough there; used folios in
    /// front of it go to the main queue.
    fn step_small(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        while let Some(folio) = cache.lists.head(self.small) {
            if self.accesses.get(folio) < TO_MAIN {
                cache.lists.move_tail(self.small, folio);
                return eviction.propose(folio);
            }
            self.accesses.set(folio, 0);
            cache.lists.move_tail(self.main, folio);
        }
    }

    /// Proposes the oldest folio of the main queue, or sends it round if it was accessed.
    fn step_main(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        let Some(folio) = cache.lists.head(self.main) else { return };
        cache.lists.move_tail(self.main, folio);
        match self.accesses.get(folio) {
            0 => eviction.propose(folio),
            n => self.accesses.set(folio, n - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn a_scan_passes_the_small_queue_alone() {
        let mut cache = Plain::new(Box::new(S3Fifo::default()), 20);
        let often: Vec<u32> = (1..=15).collect();
        (0..4).for_each(|_| _ = cache.misses(&often));
        assert_eq!(cache.misses(&(100..160).collect::<Vec<_>>()), 60);
        assert!(cache.misses(&often) <= 2, "{:?}", cache.resident());
    }

    #[test]
    fn what_comes_back_soon_goes_to_the_main_queue() {
        let mut cache = Plain::new(Box::new(S3Fifo::default()), 10);
        cache.misses(&(0..11).collect::<Vec<_>>());
        let gone = (0..11).find(|id| !cache.resident().contains(id)).expect("one had to go");
        assert_eq!(cache.misses(&[gone]), 1);
        // Others pass by; it stays.
        cache.misses(&(100..106).collect::<Vec<_>>());
        assert!(cache.resident().contains(&gone));
    }
}
