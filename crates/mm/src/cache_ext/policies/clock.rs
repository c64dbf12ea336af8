//! Clock, or second chance: a folio that was accessed since the hand came by goes round once more.

use crate::cache_ext::list::{Eviction, Iter, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps, FolioMap};
use crate::ids::FolioId;

/// The hand is at the head.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockPolicy {
    list: ListId,
    referenced: FolioMap<bool>,
}

impl CacheExtOps for ClockPolicy {
    fn init(&mut self, cache: &mut Cache<'_>) {
        self.list = cache.lists.new_list();
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.referenced.set(folio, false);
        cache.lists.add_tail(self.list, folio);
    }

    fn folio_accessed(&mut self, _: &mut Cache<'_>, folio: FolioId) {
        self.referenced.set(folio, true);
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, _: bool) {
        cache.lists.del(folio);
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        let referenced = &mut self.referenced;
        let mut judge = |_: &mut _, folio: FolioId| match referenced.get(folio) {
            true => {
                referenced.set(folio, false);
                Iter::Rotate
            }
            false => Iter::Evict,
        };
        // Where all were accessed, the hand goes round once before it takes the first.
        cache.lists.iterate(self.list, eviction, &mut judge);
        cache.lists.iterate(self.list, eviction, &mut judge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn what_was_accessed_gets_a_second_chance() {
        let mut cache = Plain::new(Box::new(ClockPolicy::default()), 3);
        assert_eq!(cache.misses(&[1, 2, 3, 1, 4]), 4);
        assert_eq!(cache.resident(), [1, 3, 4]);
        assert_eq!(cache.misses(&[1, 3, 4, 5]), 1, "all were accessed: the hand goes round");
        assert_eq!(cache.resident().len(), 3);
    }
}
