//! First in, first out: nothing that happens to a folio matters.

use crate::cache_ext::list::{Eviction, Iter, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps};
use crate::ids::FolioId;

/// The oldest is at the head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fifo {
    list: ListId,
}

impl CacheExtOps for Fifo {
    fn init(&mut self, cache: &mut Cache<'_>) {
        self.list = cache.lists.new_list();
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        cache.lists.add_tail(self.list, folio);
    }

    fn folio_accessed(&mut self, _: &mut Cache<'_>, _: FolioId) {}

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, _: bool) {
        cache.lists.del(folio);
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        cache.lists.iterate(self.list, eviction, |_, _| Iter::Evict);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn hits_change_nothing() {
        let mut cache = Plain::new(Box::new(Fifo::default()), 3);
        assert_eq!(cache.misses(&[1, 2, 3, 1, 1, 4, 1]), 5);
        assert_eq!(cache.resident(), [1, 3, 4]);
    }
}
