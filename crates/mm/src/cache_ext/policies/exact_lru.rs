//! Least and most recently used, exactly: every access moves the folio.

use crate::cache_ext::list::{Eviction, Iter, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps};
use crate::ids::FolioId;

/// Where the most recently used goes: folios read ahead and not read yet that an eviction passes
/// over, as in the published policy.
const MOST_UNREAD: u64 = 200;

/// The next one to go is at the head.
#[derive(Clone, Debug)]
pub(crate) struct ExactLru {
    list: ListId,
    most_recent_goes: bool,
}

impl ExactLru {
    /// The least recently used goes.
    pub(crate) fn lru() -> ExactLru {
        ExactLru { list: ListId::default(), most_recent_goes: false }
    }

    /// The most recently used goes: for scans that come again and again.
    pub(crate) fn mru() -> ExactLru {
        ExactLru { list: ListId::default(), most_recent_goes: true }
    }

    fn used(&self, cache: &mut Cache<'_>, folio: FolioId) {
        match self.most_recent_goes {
            true => cache.lists.move_head(self.list, folio),
            false => cache.lists.move_tail(self.list, folio),
        }
    }
}

impl CacheExtOps for ExactLru {
    fn init(&mut self, cache: &mut Cache<'_>) {
        self.list = cache.lists.new_list();
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.used(cache, folio);
    }

    fn folio_accessed(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.used(cache, folio);
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, _: bool) {
        cache.lists.del(folio);
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        let mut passed_over = if self.most_recent_goes { MOST_UNREAD } else { 0 };
        cache.lists.iterate(self.list, eviction, |lists, folio| {
            if passed_over > 0 && lists.is_unread(folio) {
                passed_over -= 1;
                return Iter::Skip;
            }
            Iter::Evict
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn the_least_recently_used_goes() {
        let mut cache = Plain::new(Box::new(ExactLru::lru()), 3);
        assert_eq!(cache.misses(&[1, 2, 3, 1, 4]), 4);
        assert_eq!(cache.resident(), [1, 3, 4]);
    }

    #[test]
    fn a_scan_that_comes_again_finds_its_beginning() {
        let scan: Vec<u32> = (0..100).collect();
        let mut lru = Plain::new(Box::new(ExactLru::lru()), 70);
        let mut mru = Plain::new(Box::new(ExactLru::mru()), 70);
        for misses in [100, 31, 31] {
            assert_eq!(lru.misses(&scan), 100);
            assert!(mru.misses(&scan) <= misses);
        }
    }
}
