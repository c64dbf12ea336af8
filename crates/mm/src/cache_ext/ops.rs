//! The hooks of cache_ext: a policy consists of them.

use super::list::{Eviction, Lists};
use crate::ids::FolioId;
use std::fmt::Debug;

/// State that a hook may look at and change: the lists, and the room that the policy's group has.
#[derive(Debug)]
pub struct Cache<'a> {
    /// The lists, on which only the policy's own folios are.
    pub lists: &'a mut Lists,
    /// Folios that the group may have, at least 1: the lowest `memory.max` of the group and its
    /// ancestors. Without a limit: folios that the group has in memory.
    pub limit: u64,
    /// Folios of files that the group has in memory.
    pub resident: u64,
    /// The kind of task that accesses, as the driver says ([`crate::Engine::set_cache_ext_hint`]);
    /// 0: nothing.
    pub hint: u8,
}

/// A policy for the page cache of one group on one node, with the hooks of cache_ext.
///
/// A policy keeps lists of its own, and proposes folios to evict. Reclaim says when and how many:
/// limits, batches, dirty and mapped pages are as without a policy. A proposed folio that cannot be
/// evicted stays. Where the policy proposes too few, the kernel's own two lists, which go on beside
/// it, give the rest.
///
/// The hooks see folios of files, of one page each. A touch by mapping only sets an accessed bit:
/// [`CacheExtOps::folio_accessed`] learns of the touch when reclaim finds the folio young.
pub trait CacheExtOps: Debug + Send + Sync + CloneOps {
    /// The policy begins, with nothing in memory.
    fn init(&mut self, cache: &mut Cache<'_>);

    /// A folio has come into the page cache.
    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId);

    /// A folio was accessed again: by a read, or by its mapping.
    fn folio_accessed(&mut self, cache: &mut Cache<'_>, folio: FolioId);

    /// A folio has left memory: reclaim took it (`evicted`), or it was truncated or dropped. Its id
    /// stays its name, so that it may stay on a list of ghosts.
    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, evicted: bool);

    /// Reclaim wants folios.
    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction);
}

/// Copies a policy with an engine; every policy that is `Clone` has it.
pub trait CloneOps {
    /// A copy of the policy with all its state.
    fn clone_ops(&self) -> Box<dyn CacheExtOps>;
}

impl<T: CacheExtOps + Clone + 'static> CloneOps for T {
    fn clone_ops(&self) -> Box<dyn CacheExtOps> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn CacheExtOps> {
    fn clone(&self) -> Self {
        (**self).clone_ops()
    }
}

/// A value for each folio, noted by a policy.
#[derive(Clone, Debug, Default)]
pub struct FolioMap<T>(Vec<T>);

impl<T: Copy + Default> FolioMap<T> {
    /// The noted value, or the default.
    pub fn get(&self, f: FolioId) -> T {
        self.0.get(f.index()).copied().unwrap_or_default()
    }

    /// Notes a value for a folio.
    pub fn set(&mut self, f: FolioId, value: T) {
        if self.0.len() <= f.index() {
            self.0.resize(f.index() + 1, T::default());
        }
        self.0[f.index()] = value;
    }
}
