//! The policy of each group, and the hooks as the engine calls them.

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
    fn with<'a>(&'a mut self, lists: &'a mut Lists, hint: u8) -> (&'a mut dyn CacheExtOps, Cache<'a>) {
        let limit = if self.limit == u64::MAX { self.resident } else { self.limit };
        (&mut *self.ops, Cache { lists, limit: limit.max(1), resident: self.resident, hint })
    }
}

/// The policies of all groups, with their lists.
#[derive(Clone, Debug)]
pub(crate) struct CacheExt {
    /// Policy of groups that were given none of their own; none: these have Linux's lists alone.
    default: Option<CacheExtPolicy>,
    lists: Lists,
    /// By lruvec: its policy. The default policy is made when the first folio of the lruvec comes.
    all: Vec<Option<Attached>>,
    /// Kind of task that accesses, as the driver says; 0: not said.
    hint: u8,
    /// Empty vector for proposals, kept for its capacity.
    scratch: Vec<FolioId>,
}

impl CacheExt {
    /// Gives every group a policy of the kind `default`; none: a group has no policy until it is
    /// given one.
    pub(crate) fn new(default: Option<CacheExtPolicy>) -> CacheExt {
        CacheExt { default, lists: Lists::default(), all: Vec::new(), hint: 0, scratch: Vec::new() }
    }

    /// Sets the kind of task that accesses from now on, as the driver says.
    pub(crate) fn set_hint(&mut self, hint: u8) {
        self.hint = hint;
    }

    /// Whether a group on a node has a policy.
    pub(crate) fn has(&self, v: LruvecId) -> bool {
        self.default.is_some() || self.all.get(v.index()).is_some_and(Option::is_some)
    }

    /// The policy of a group on a node with what its hooks may use.
    fn on(&mut self, v: LruvecId) -> Option<(&mut Attached, &mut Lists, u8)> {
        if self.all.len() <= v.index() {
            self.all.resize_with(v.index() + 1, || None);
        }
        if let (None, Some(policy)) = (&self.all[v.index()], self.default) {
            self.start(v, policy.ops());
        }
        self.all[v.index()].as_mut().map(|one| (one, &mut self.lists, self.hint))
    }

    fn start(&mut self, v: LruvecId, ops: Box<dyn CacheExtOps>) {
        let mut one = Attached { ops, limit: u64::MAX, resident: 0 };
        let (ops, mut cache) = one.with(&mut self.lists, self.hint);
        ops.init(&mut cache);
        self.all[v.index()] = Some(one);
    }

    /// Gives a group on a node another policy, and adds the group's folios in memory to it.
    pub(crate) fn attach(&mut self, v: LruvecId, ops: Box<dyn CacheExtOps>, resident: &[FolioId]) {
        for &f in resident {
            self.removed(f, false);
        }
        self.all.resize_with(self.all.len().max(v.index() + 1), || None);
        self.start(v, ops);
        for &f in resident {
            // Ghosts of the last policy are of no use to the next.
            self.lists.del(f);
            self.adopt(v, f, u64::MAX);
        }
    }

    /// Forgets the policy of a group on a node: the group is gone, and its number is free for
    /// another.
    pub(crate) fn forget(&mut self, v: LruvecId) {
        if let Some(one) = self.all.get_mut(v.index()) {
            *one = None;
        }
    }

    /// A folio of a file has come into memory; its group may have `limit` pages.
    pub(crate) fn added(&mut self, v: LruvecId, f: FolioId, limit: u64) {
        self.adopt(v, f, limit);
        self.lists.set_new(f);
    }

    /// Adds a folio that is in memory to the policy of `v`, which owns it from now on.
    fn adopt(&mut self, v: LruvecId, f: FolioId, limit: u64) {
        let Some((one, lists, hint)) = self.on(v) else { return };
        (one.limit, one.resident) = (limit, one.resident + 1);
        lists.set_owner(f, Some(v));
        let (ops, mut cache) = one.with(lists, hint);
        ops.folio_added(&mut cache, f);
    }

    /// Notes a read of a folio. The read that brought the folio in is no access of its own, whether
    /// it comes before or after the device is done.
    pub(crate) fn read(&mut self, v: LruvecId, f: FolioId) {
        if !self.lists.take_new(f) {
            self.accessed(v, f);
        }
    }

    /// Notes another access to a folio. If another group is charged for the folio by now, the folio
    /// goes over to that group's policy.
    pub(crate) fn accessed(&mut self, v: LruvecId, f: FolioId) {
        let is_own = self.lists.owner(f) == Some(v);
        if !is_own {
            self.removed(f, false);
        }
        let Some((one, lists, hint)) = self.on(v) else { return };
        if is_own {
            let (ops, mut cache) = one.with(lists, hint);
            return ops.folio_accessed(&mut cache, f);
        }
        let limit = one.limit;
        self.adopt(v, f, limit);
    }

    /// Notes that a folio has left memory, or goes over to another policy.
    pub(crate) fn removed(&mut self, f: FolioId, evicted: bool) {
        let Some(owner) = self.lists.owner(f) else { return };
        self.lists.set_owner(f, None);
        let Some((one, lists, hint)) = self.on(owner) else { return };
        one.resident -= 1;
        let (ops, mut cache) = one.with(lists, hint);
        ops.folio_removed(&mut cache, f, evicted);
    }

    /// Folios of a group that the policy would evict, at most `nr`. `limit`: pages that the group
    /// may have.
    pub(crate) fn evict(&mut self, v: LruvecId, nr: usize, limit: u64) -> Vec<FolioId> {
        let mut eviction = Eviction::new(nr, std::mem::take(&mut self.scratch));
        if let Some((one, lists, hint)) = self.on(v) {
            one.limit = limit;
            let (ops, mut cache) = one.with(lists, hint);
            ops.evict_folios(&mut cache, &mut eviction);
        }
        eviction.into_chosen()
    }

    /// Takes back the vector of proposals, for the next use.
    pub(crate) fn return_scratch(&mut self, mut scratch: Vec<FolioId>) {
        scratch.clear();
        self.scratch = scratch;
    }

    /// Bytes held, but for what policies note by themselves.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lists.memory_bytes()
    }

    /// Checks that the lists are whole, and that the folios with an owner are the ones for which
    /// `resident` holds.
    pub(crate) fn validate(&self, pages: usize, resident: impl Fn(FolioId) -> bool) -> Result<(), String> {
        self.lists.validate()?;
        let mut counted = vec![0; self.all.len()];
        for f in (0..pages as u32).map(FolioId) {
            let owner = self.lists.owner(f);
            // Without a default policy, folios of groups that have no policy have no owner.
            if owner.is_some() != resident(f) && (owner.is_some() || self.default.is_some()) {
                return Err(format!("cache_ext: {f:?} is known to {owner:?}"));
            }
            owner.into_iter().for_each(|v| counted[v.index()] += 1);
        }
        let wrong = self.all.iter().zip(&counted).position(|(one, &n)| one.as_ref().map_or(0, |one| one.resident) != n);
        wrong.map_or(Ok(()), |v| Err(format!("cache_ext: lruvec {v} has {} folios", counted[v])))
    }
}
