//! ARC: a list of folios used once and a list of folios used again, each with its ghosts. Hits on
//! the ghosts decide how memory is divided between the two lists.

use crate::cache_ext::list::{Eviction, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps};
use crate::ids::FolioId;

/// Least recently used at the heads. The paper's names: T1, T2, B1, B2, p.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arc {
    once: ListId,
    again: ListId,
    once_ghosts: ListId,
    again_ghosts: ListId,
    /// Folios that the list `once` is to have.
    target: f64,
}

impl CacheExtOps for Arc {
    fn init(&mut self, cache: &mut Cache<'_>) {
        [self.once, self.again, self.once_ghosts, self.again_ghosts] = std::array::from_fn(|_| cache.lists.new_list());
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        let [once, again] = [self.once_ghosts, self.again_ghosts].map(|ghosts| cache.lists.len(ghosts).max(1) as f64);
        if cache.lists.is_on(self.once_ghosts, folio) {
            self.target = (self.target + (again / once).max(1.0)).min(cache.limit as f64);
            cache.lists.move_tail(self.again, folio);
        } else if cache.lists.is_on(self.again_ghosts, folio) {
            self.target = (self.target - (once / again).max(1.0)).max(0.0);
            cache.lists.move_tail(self.again, folio);
        } else {
            cache.lists.move_tail(self.once, folio);
        }
        self.forget(cache);
    }

    fn folio_accessed(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        cache.lists.move_tail(self.again, folio);
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, evicted: bool) {
        let ghosts = if cache.lists.is_on(self.once, folio) { self.once_ghosts } else { self.again_ghosts };
        cache.lists.del(folio);
        if evicted {
            cache.lists.add_tail(ghosts, folio);
        }
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        let mut once_left = cache.lists.len(self.once);
        for _ in 0..cache.resident {
            if eviction.is_full() {
                return;
            }
            let from_once = once_left > 0 && once_left as f64 > self.target;
            let list = if from_once || cache.lists.is_empty(self.again) { self.once } else { self.again };
            let Some(folio) = cache.lists.head(list) else { return };
            once_left -= u64::from(list == self.once).min(once_left);
            cache.lists.move_tail(list, folio);
            eviction.propose(folio);
        }
    }
}

impl Arc {
    /// Trims the ghosts after a folio was added: before, the folio itself may have been the oldest
    /// ghost. Folios used once, with their ghosts, are at most `limit`; all folios and ghosts,
    /// twice that.
    fn forget(&mut self, cache: &mut Cache<'_>) {
        let len = |cache: &Cache<'_>, all: &[ListId]| all.iter().map(|&list| cache.lists.len(list)).sum::<u64>();
        while len(cache, &[self.once, self.once_ghosts]) > cache.limit
            && let Some(oldest) = cache.lists.head(self.once_ghosts)
        {
            cache.lists.del(oldest);
        }
        while len(cache, &[self.once, self.again, self.once_ghosts, self.again_ghosts]) > 2 * cache.limit
            && let Some(oldest) = cache.lists.head(self.again_ghosts)
        {
            cache.lists.del(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn a_scan_does_not_take_what_was_used_again() {
        let mut cache = Plain::new(Box::new(Arc::default()), 20);
        let often: Vec<u32> = (1..=15).collect();
        (0..2).for_each(|_| _ = cache.misses(&often));
        assert_eq!(cache.misses(&(100..160).collect::<Vec<_>>()), 60);
        assert_eq!(cache.misses(&often), 0);
    }

    #[test]
    fn ghosts_move_the_target() {
        let mut cache = Plain::new(Box::new(Arc::default()), 10);
        cache.misses(&[1, 1, 2, 2, 3, 3]);
        // A loop that is a little larger than what is left for it: its ghosts ask for more room.
        let before = cache.misses(&(100..110).collect::<Vec<_>>().repeat(2));
        let after = cache.misses(&(100..110).collect::<Vec<_>>().repeat(2));
        assert!(after < before, "{before} then {after}");
    }
}
