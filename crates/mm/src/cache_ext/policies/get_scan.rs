//! Evicts first the pages that scans bring in, then the rest by how often they are used: a policy
//! that the application informs, by saying which of its tasks scan.

use crate::cache_ext::list::{Eviction, Iter, ListId};
use crate::cache_ext::ops::{Cache, CacheExtOps, FolioMap};
use crate::ids::FolioId;

/// The hint of a task that scans.
const SCANS: u8 = 1;
/// Folios in memory for each one that is kept because a scan has read it ahead and not come to it.
const AHEAD_SHARE: u64 = 4;
/// Folios of a sample: the one with the fewest accesses is proposed.
const SAMPLE: u64 = 32;

/// The oldest are at the heads.
#[derive(Clone, Debug, Default)]
pub(crate) struct GetScan {
    scanned: ListId,
    got: ListId,
    accesses: FolioMap<u32>,
}

impl CacheExtOps for GetScan {
    fn init(&mut self, cache: &mut Cache<'_>) {
        [self.scanned, self.got] = std::array::from_fn(|_| cache.lists.new_list());
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.accesses.set(folio, 1);
        cache.lists.move_tail(if cache.hint == SCANS { self.scanned } else { self.got }, folio);
    }

    /// Counts an access, unless by a scan. A folio of a scan that another task accesses is moved to
    /// the rest.
    fn folio_accessed(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        if cache.hint == SCANS {
            return;
        }
        self.accesses.set(folio, self.accesses.get(folio).saturating_add(1));
        if cache.lists.is_on(self.scanned, folio) {
            cache.lists.move_tail(self.got, folio);
        }
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, _: bool) {
        cache.lists.del(folio);
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        let mut ahead = cache.resident / AHEAD_SHARE;
        cache.lists.iterate(self.scanned, eviction, |lists, folio| {
            if ahead > 0 && lists.is_unread(folio) {
                ahead -= 1;
                return Iter::Rotate;
            }
            Iter::Evict
        });
        cache.lists.sample(self.got, eviction, SAMPLE, |folio| self.accesses.get(folio).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_ext::policies::plain::Plain;

    #[test]
    fn a_scan_takes_nothing_from_the_rest() {
        let mut cache = Plain::new(Box::new(GetScan::default()), 20);
        assert_eq!(cache.misses(&(0..15).collect::<Vec<_>>()), 15);
        cache.hint = SCANS;
        assert_eq!(cache.misses(&(100..160).collect::<Vec<_>>()), 60);
        cache.hint = 0;
        assert_eq!(cache.misses(&(0..15).collect::<Vec<_>>()), 0);
        // The last page of the scan is wanted for itself, and is as good as the others.
        assert_eq!(cache.misses(&[159]), 0);
        cache.hint = SCANS;
        cache.misses(&(200..260).collect::<Vec<_>>());
        assert!(cache.resident().contains(&159));
    }
}
