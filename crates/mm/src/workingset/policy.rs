//! The seam for policies, as far as working sets go: the shadow of an evicted page, and its
//! standing when it is back.

use crate::config::lru::{Generations, LruConfig, RefaultTest};
use crate::folio::flags::FolioFlags;
use crate::folio::shadow::{Layout, REFS_BITS};
use crate::ids::LruvecId;
use crate::lru::lru_list::FILE;
use crate::lru::pages::ResidentPages;
use crate::lru::policy::{LruPolicy, MultiGenLru, TwoList};
use crate::lru::tier::was_accessed_again;
use crate::memcg::groups::Groups;
use crate::workingset::evict_clean::EvictBatch;

/// A folio that comes back with a shadow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refault {
    /// Lruvec of the folio.
    pub(crate) own: LruvecId,
    /// Flags of the folio so far.
    pub(crate) st: FolioFlags,
    /// The shadow that it left, packed.
    pub(crate) shadow: u64,
    /// The folio is brought by a page fault, not by a read.
    pub(crate) in_fault: bool,
    /// Swap slots that are free.
    pub(crate) free_swap: u64,
}

/// Meaning of shadows under a policy. Without shadows ([`RefaultTest::None`]) nothing of it is
/// asked.
pub(crate) trait WorkingsetPolicy: LruPolicy {
    /// The shadow that a folio of `nr` pages leaves: whether it was in the working set, and when,
    /// or where, it was evicted. None: it leaves no shadow.
    fn eviction(d: &mut EvictBatch, cfg: &LruConfig, l: &Layout, st: FolioFlags, nr: u64) -> Option<(bool, u64)>;

    /// Whether the shadow is stamped by the group whose pressure evicts, not by the folio's own
    /// group.
    fn stamps_by_target(refault: RefaultTest) -> bool;

    /// The clock of the pages that are not resident goes on with evictions of a type.
    fn clock_advances(refault: RefaultTest, t: usize) -> bool;

    /// A folio comes back: the flags that decide where it will be put.
    fn refault(pages: &mut ResidentPages, groups: &Groups, back: &Refault) -> FolioFlags;
}

impl WorkingsetPolicy for TwoList {
    #[inline(always)]
    fn eviction(d: &mut EvictBatch, cfg: &LruConfig, l: &Layout, st: FolioFlags, nr: u64) -> Option<(bool, u64)> {
        let age = d.age + d.dropped;
        if cfg.refault != RefaultTest::Distance2013 {
            return Some((st.has(FolioFlags::WORKINGSET), Layout::stamp(age, l.eviction_bits, l.bucket_order)));
        }
        // 2013: files only, and the stamp is read after the clock advanced.
        let stamp = Layout::stamp(age + nr, l.eviction_bits, l.bucket_order);
        (d.t == FILE).then_some((false, stamp))
    }

    fn stamps_by_target(refault: RefaultTest) -> bool {
        refault != RefaultTest::Distance2013
    }

    fn clock_advances(refault: RefaultTest, t: usize) -> bool {
        refault != RefaultTest::Distance2013 || t == FILE
    }

    #[inline(always)]
    fn refault(pages: &mut ResidentPages, groups: &Groups, back: &Refault) -> FolioFlags {
        pages.refault_two_list(groups, back.free_swap, back.own, back.st, back.shadow)
    }
}

impl WorkingsetPolicy for MultiGenLru {
    #[inline(always)]
    fn eviction(d: &mut EvictBatch, cfg: &LruConfig, l: &Layout, st: FolioFlags, nr: u64) -> Option<(bool, u64)> {
        let age = d.age + d.dropped;
        let (mut workingset, mut refs, mut tier) = (false, 0, 0);
        if was_accessed_again(st) {
            (workingset, refs) = cfg.generations.refs_in_shadow(st);
            tier = cfg.generations.tier(st);
        }
        d.evicted[tier] += nr;
        let token = d.min_seq << REFS_BITS | u64::from(refs);
        if cfg.refault != RefaultTest::ShadowPosition {
            return Some((workingset, token));
        }
        let stamp = Layout::stamp(age, l.gen_eviction_bits, l.gen_bucket_order);
        Some((workingset, token << l.gen_eviction_bits | stamp))
    }

    fn stamps_by_target(_: RefaultTest) -> bool {
        false
    }

    fn clock_advances(refault: RefaultTest, _: usize) -> bool {
        refault == RefaultTest::ShadowPosition
    }

    #[inline(always)]
    fn refault(pages: &mut ResidentPages, groups: &Groups, back: &Refault) -> FolioFlags {
        match pages.cfg.refault {
            RefaultTest::ShadowPosition => {
                pages.refault_gen_shadow(groups, back.free_swap, back.own, back.st, back.shadow, back.in_fault)
            }
            _ if pages.cfg.generations == Generations::Independent => {
                pages.refault_gen_independent(back.own, back.st, back.shadow, back.in_fault)
            }
            _ => pages.refault_gen(back.own, back.st, back.shadow, back.in_fault),
        }
    }
}
