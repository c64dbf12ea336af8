//! A plain cache for the checks of policies (tests only): a fixed number of folios of one page,
//! evicted one at a time.

use crate::cache_ext::list::{Eviction, Lists};
use crate::cache_ext::ops::{Cache, CacheExtOps};
use crate::ids::FolioId;
use std::collections::BTreeSet;

/// The cache.
pub(super) struct Plain {
    ops: Box<dyn CacheExtOps>,
    lists: Lists,
    limit: u64,
    resident: BTreeSet<u32>,
    /// The kind of task that accesses, as hooks are told.
    pub(super) hint: u8,
}

impl Plain {
    /// An empty cache for `limit` folios.
    pub(super) fn new(mut ops: Box<dyn CacheExtOps>, limit: u64) -> Plain {
        let mut lists = Lists::default();
        ops.init(&mut Cache { lists: &mut lists, limit, resident: 0, hint: 0 });
        Plain { ops, lists, limit, resident: BTreeSet::new(), hint: 0 }
    }

    /// Ids of the folios in the cache, ascending.
    pub(super) fn resident(&self) -> Vec<u32> {
        self.resident.iter().copied().collect()
    }

    /// Accesses folios by id; returns the number of misses.
    pub(super) fn misses(&mut self, ids: &[u32]) -> usize {
        ids.iter().filter(|&&id| self.access(FolioId(id))).count()
    }

    fn access(&mut self, folio: FolioId) -> bool {
        let Plain { ops, lists, limit, resident, hint } = self;
        if resident.contains(&folio.0) {
            ops.folio_accessed(&mut cache(lists, *limit, resident, *hint), folio);
            return false;
        }
        if resident.len() as u64 == *limit {
            let mut eviction = Eviction::new(1, Vec::new());
            ops.evict_folios(&mut cache(lists, *limit, resident, *hint), &mut eviction);
            let chosen = eviction.into_chosen();
            assert!(chosen.len() == 1 && resident.remove(&chosen[0].0), "{chosen:?} of {resident:?}");
            ops.folio_removed(&mut cache(lists, *limit, resident, *hint), chosen[0], true);
        }
        resident.insert(folio.0);
        ops.folio_added(&mut cache(lists, *limit, resident, *hint), folio);
        lists.validate().expect("whole lists");
        true
    }
}

fn cache<'a>(lists: &'a mut Lists, limit: u64, resident: &BTreeSet<u32>, hint: u8) -> Cache<'a> {
    Cache { lists, limit, resident: resident.len() as u64, hint }
}
