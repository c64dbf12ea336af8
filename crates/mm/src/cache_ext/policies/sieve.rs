//! SIEVE: a queue with a hand, which passes over folios that were accessed and leaves them in
//! place.

use crate::cache_ext::list::{Eviction, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps, FolioMap};
use crate::ids::FolioId;

/// The oldest is at the head; the hand goes from there to the newest, and begins again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sieve {
    list: ListId,
    visited: FolioMap<bool>,
    hand: Option<FolioId>,
}

impl CacheExtOps for Sieve {
    fn init(&mut self, cache: &mut Cache<'_>) {
        self.list = cache.lists.new_list();
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.visited.set(folio, false);
        cache.lists.add_tail(self.list, folio);
    }

    fn folio_accessed(&mut self, _: &mut Cache<'_>, folio: FolioId) {
        self.visited.set(folio, true);
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, _: bool) {
        if self.hand == Some(folio) {
            self.hand = cache.lists.next(folio);
        }
        cache.lists.del(folio);
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        // At most two rounds: the first clears the marks of accessed folios.
        let mut left = 2 * cache.lists.len(self.list);
        while left > 0 && !eviction.is_full() {
            left -= 1;
            let Some(folio) = self.hand.or(cache.lists.head(self.list)) else { return };
            self.hand = cache.lists.next(folio);
            match self.visited.get(folio) {
                true => self.visited.set(folio, false),
                false => eviction.propose(folio),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn the_hand_goes_on_where_it_was() {
        let mut cache = Plain::new(Box::new(Sieve::default()), 3);
        // 1 is passed over, 2 goes; the hand is at 3, which goes next, though 1 is older.
        assert_eq!(cache.misses(&[1, 2, 3, 1, 4]), 4);
        assert_eq!(cache.resident(), [1, 3, 4]);
        assert_eq!(cache.misses(&[5]), 1);
        assert_eq!(cache.resident(), [1, 4, 5]);
        assert_eq!(cache.misses(&[6]), 1);
        assert_eq!(cache.resident(), [1, 5, 6]);
    }
}
