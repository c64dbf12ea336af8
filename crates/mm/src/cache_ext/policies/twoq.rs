//! 2Q: new folios pass a queue; a folio that comes back after it left the queue goes to a list by
//! recency.

use crate::cache_ext::list::{Eviction, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps};
use crate::ids::FolioId;

/// Folios that memory may have for each one in the queue of new folios.
const IN_SHARE: u64 = 4;
/// Folios that memory may have for each ghost.
const OUT_SHARE: u64 = 2;

/// Oldest at the heads. The paper's names: A1in, A1out, Am.
#[derive(Clone, Debug, Default)]
pub(crate) struct TwoQ {
    new: ListId,
    ghosts: ListId,
    again: ListId,
}

impl CacheExtOps for TwoQ {
    fn init(&mut self, cache: &mut Cache<'_>) {
        [self.new, self.ghosts, self.again] = std::array::from_fn(|_| cache.lists.new_list());
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        let to = if cache.lists.is_on(self.ghosts, folio) { self.again } else { self.new };
        cache.lists.move_tail(to, folio);
        // Ghosts are trimmed only now: making room for this folio added some, and the folio itself
        // may have been the oldest.
        while cache.lists.len(self.ghosts) > cache.limit / OUT_SHARE
            && let Some(oldest) = cache.lists.head(self.ghosts)
        {
            cache.lists.del(oldest);
        }
    }

    fn folio_accessed(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        if cache.lists.is_on(self.again, folio) {
            cache.lists.move_tail(self.again, folio);
        }
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, evicted: bool) {
        let was_new = cache.lists.is_on(self.new, folio);
        cache.lists.del(folio);
        if evicted && was_new {
            cache.lists.add_tail(self.ghosts, folio);
        }
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        let mut new_left = cache.lists.len(self.new);
        for _ in 0..cache.resident {
            let from_new = new_left > cache.limit / IN_SHARE || cache.lists.is_empty(self.again);
            let list = if from_new { self.new } else { self.again };
            let Some(folio) = cache.lists.head(list).filter(|_| !eviction.is_full()) else { return };
            new_left -= u64::from(from_new).min(new_left);
            cache.lists.move_tail(list, folio);
            eviction.propose(folio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn a_scan_passes_the_queue_alone() {
        let mut cache = Plain::new(Box::new(TwoQ::default()), 20);
        // Folios 1 to 10 leave the queue, come back, and are used again from then on.
        cache.misses(&(1..=10).chain(50..70).chain(1..=10).collect::<Vec<_>>());
        assert_eq!(cache.misses(&(100..160).collect::<Vec<_>>()), 60);
        assert_eq!(cache.misses(&(1..=10).collect::<Vec<_>>()), 0);
    }

    #[test]
    fn what_is_used_only_while_it_is_new_leaves() {
        let mut cache = Plain::new(Box::new(TwoQ::default()), 8);
        assert_eq!(cache.misses(&[1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]), 9);
        assert!(!cache.resident().contains(&1));
    }
}
