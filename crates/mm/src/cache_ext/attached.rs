//! Who has which policy, and the hooks as the engine calls them.

use super::builtin::CacheExtPolicy;
use super::list::{Eviction, Lists};
use super::ops::{Cache, CacheExtOps};
use crate::ids::{FolioId, LruvecId};

/// The policy of one group on one node.
#[derive(Clone, Debug)]
struct Attached {
    ops: Box<dyn CacheExtOps>,
    limit: u64,
    resident: u64,
}

impl Attached {
    /// The policy, and what its hooks may use.
    fn with<'a>(&'a mut self, lists: &'a mut Lists) -> (&'a mut dyn CacheExtOps, Cache<'a>) {
        let limit = if self.limit == u64::MAX { self.resident } else { self.limit };
        (&mut *self.ops, Cache { lists, limit: limit.max(1), resident: self.resident })
    }
}

/// The policies of all groups, with their lists.
#[derive(Clone, Debug)]
pub(crate) struct CacheExt {
    policy: CacheExtPolicy,
    lists: Lists,
    /// By lruvec; made when its first folio comes.
    all: Vec<Option<Attached>>,
    /// Room for proposals, kept from use to use.
    scratch: Vec<FolioId>,
}

impl CacheExt {
    /// Every group has a policy of that kind.
    pub(crate) fn new(policy: CacheExtPolicy) -> CacheExt {
        CacheExt { policy, lists: Lists::default(), all: Vec::new(), scratch: Vec::new() }
    }

    fn attached(&mut self, v: LruvecId) -> (&mut Attached, &mut Lists) {
        if self.all.len() <= v.index() {
            self.all.resize_with(v.index() + 1, || None);
        }
        let (lists, policy) = (&mut self.lists, self.policy);
        let one = self.all[v.index()].get_or_insert_with(|| {
            let mut one = Attached { ops: policy.ops(), limit: u64::MAX, resident: 0 };
            let (ops, mut cache) = one.with(lists);
            ops.init(&mut cache);
            one
        });
        (one, lists)
    }

    /// Another policy for a group on a node: what that has in memory is added to it.
    pub(crate) fn attach(&mut self, v: LruvecId, ops: Box<dyn CacheExtOps>, resident: &[FolioId]) {
        for &f in resident {
            self.removed(f, false);
        }
        let (one, lists) = self.attached(v);
        (one.ops, one.resident) = (ops, 0);
        let (ops, mut cache) = one.with(lists);
        ops.init(&mut cache);
        for &f in resident {
            // Ghosts of the last policy are of no use to the next.
            self.lists.del(f);
            self.adopt(v, f, u64::MAX);
        }
    }

    /// A group on a node is gone, and its number is for another.
    pub(crate) fn forget(&mut self, v: LruvecId) {
        if let Some(one) = self.all.get_mut(v.index()) {
            *one = None;
        }
    }

    /// Whether a folio is in memory and known to the policy of a group on a node.
    pub(crate) fn is_of(&self, v: LruvecId, f: FolioId) -> bool {
        self.lists.owner(f) == Some(v)
    }

    /// A folio of a file has come into memory; its group may have `limit` pages.
    pub(crate) fn added(&mut self, v: LruvecId, f: FolioId, limit: u64) {
        self.adopt(v, f, limit);
        self.lists.set_new(f);
    }

    /// A folio that is in memory is that policy's from now on.
    fn adopt(&mut self, v: LruvecId, f: FolioId, limit: u64) {
        let (one, lists) = self.attached(v);
        (one.limit, one.resident) = (limit, one.resident + 1);
        lists.set_owner(f, Some(v));
        let (ops, mut cache) = one.with(lists);
        ops.folio_added(&mut cache, f);
    }

    /// A folio was read. The read that it was brought in for is no access of its own, whether it
    /// comes before the device is done or after.
    pub(crate) fn read(&mut self, v: LruvecId, f: FolioId) {
        if !self.lists.take_new(f) {
            self.accessed(v, f);
        }
    }

    /// A folio was accessed again. One that another group is charged for now goes over to its
    /// policy.
    pub(crate) fn accessed(&mut self, v: LruvecId, f: FolioId) {
        match self.lists.owner(f) {
            None => {}
            Some(owner) if owner == v => {
                let (one, lists) = self.attached(v);
                let (ops, mut cache) = one.with(lists);
                ops.folio_accessed(&mut cache, f);
            }
            Some(_) => {
                self.removed(f, false);
                let limit = self.attached(v).0.limit;
                self.adopt(v, f, limit);
            }
        }
    }

    /// A folio has left memory, or its policy.
    pub(crate) fn removed(&mut self, f: FolioId, evicted: bool) {
        let Some(owner) = self.lists.owner(f) else { return };
        self.lists.set_owner(f, None);
        let (one, lists) = self.attached(owner);
        one.resident -= 1;
        let (ops, mut cache) = one.with(lists);
        ops.folio_removed(&mut cache, f, evicted);
    }

    /// Which folios of a group the policy would evict, at most `nr`; `limit` as above.
    pub(crate) fn evict(&mut self, v: LruvecId, nr: usize, limit: u64) -> Vec<FolioId> {
        let scratch = std::mem::take(&mut self.scratch);
        let (one, lists) = self.attached(v);
        one.limit = limit;
        let mut eviction = Eviction::new(nr, scratch);
        let (ops, mut cache) = one.with(lists);
        ops.evict_folios(&mut cache, &mut eviction);
        eviction.into_chosen()
    }

    /// Proposals that are done with.
    pub(crate) fn return_scratch(&mut self, mut scratch: Vec<FolioId>) {
        scratch.clear();
        self.scratch = scratch;
    }

    /// Bytes held, but for what policies note by themselves.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lists.memory_bytes()
    }

    /// The lists are whole, and the folios that are owned are those of `resident`.
    pub(crate) fn validate(&self, pages: usize, resident: impl Fn(FolioId) -> bool) -> Result<(), String> {
        self.lists.validate()?;
        let mut counted = vec![0; self.all.len()];
        for f in (0..pages as u32).map(FolioId) {
            let owner = self.lists.owner(f);
            if owner.is_some() != resident(f) {
                return Err(format!("cache_ext: {f:?} is known to {owner:?}"));
            }
            owner.into_iter().for_each(|v| counted[v.index()] += 1);
        }
        let wrong = self.all.iter().zip(&counted).position(|(one, &n)| one.as_ref().map_or(0, |one| one.resident) != n);
        wrong.map_or(Ok(()), |v| Err(format!("cache_ext: lruvec {v} has {} folios", counted[v])))
    }
}
