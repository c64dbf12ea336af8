//! Least frequently used, of a sample: each folio has a counter, and of some folios the one with
//! the lowest counter goes.

use crate::cache_ext::list::{Eviction, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps, FolioMap};
use crate::ids::FolioId;

/// Folios of a sample: the one with the fewest accesses is proposed.
const SAMPLE: u64 = 32;

/// Counts start anew with each stay in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lfu {
    list: ListId,
    accesses: FolioMap<u32>,
}

impl CacheExtOps for Lfu {
    fn init(&mut self, cache: &mut Cache<'_>) {
        self.list = cache.lists.new_list();
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.accesses.set(folio, 1);
        cache.lists.add_tail(self.list, folio);
    }

    fn folio_accessed(&mut self, _: &mut Cache<'_>, folio: FolioId) {
        self.accesses.set(folio, self.accesses.get(folio).saturating_add(1));
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, _: bool) {
        cache.lists.del(folio);
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        cache.lists.sample(self.list, eviction, SAMPLE, |folio| self.accesses.get(folio).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn a_scan_does_not_take_what_is_used_often() {
        let mut cache = Plain::new(Box::new(Lfu::default()), 10);
        let often = [1, 2, 3, 4, 5].repeat(3);
        assert_eq!(cache.misses(&often), 5);
        assert_eq!(cache.misses(&(100..200).collect::<Vec<_>>()), 100);
        assert_eq!(cache.misses(&often), 0);
    }
}
