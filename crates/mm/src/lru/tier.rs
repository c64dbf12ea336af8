//! Accesses by descriptor in the flags of a folio, and the tier that they make: the forms before
//! and since "rework workingset protection" (Linux 6.14).
//!
//! Mechanism: `docs/mechanisms.md#tiers-of-a-generation`.

use crate::config::lru::{FaultedPages, Generations};
use crate::folio::flags::FolioFlags;
use crate::folio::shadow::REFS_BITS;
use crate::lru::multi_gen::MAX_NR_TIERS;

/// Accesses that a folio has when all bits for them are set: `referenced`, the refs, `workingset`.
const ALL_ACCESSES: u32 = (1 << REFS_BITS) + 1;

/// log2ceil of a number of accesses.
#[inline(always)]
pub(crate) fn tier_of(accesses: u32) -> usize {
    accesses.next_power_of_two().trailing_zeros() as usize
}

/// Whether a folio was accessed by descriptor more than once, as far as its flags say. Most were
/// not: that is the lowest tier in any form, and nothing for a shadow to keep.
#[inline(always)]
pub(crate) fn was_accessed_again(st: FolioFlags) -> bool {
    st.has(FolioFlags::WORKINGSET | FolioFlags::REFS_MASK)
}

impl Generations {
    /// Another access by descriptor.
    #[inline]
    pub(crate) fn count_access(self, st: &mut FolioFlags) {
        match self {
            Generations::Linked => st.inc_refs(),
            Generations::Independent => count_access(st),
        }
    }

    /// Record of accesses in a shadow: the workingset bit, and the number of accesses beyond the
    /// first and beyond this bit.
    #[inline(always)]
    pub(crate) fn refs_in_shadow(self, st: FolioFlags) -> (bool, u32) {
        match self {
            Generations::Linked => (st.refs() > 0, st.refs().saturating_sub(1)),
            Generations::Independent => (st.has(FolioFlags::WORKINGSET), accesses(st).saturating_sub(1)),
        }
    }

    /// The tier of a folio.
    #[inline(always)]
    pub(crate) fn tier(self, st: FolioFlags) -> usize {
        match self {
            Generations::Linked => tier_of(st.refs() + 1),
            Generations::Independent if st.has(FolioFlags::WORKINGSET) => MAX_NR_TIERS - 1,
            Generations::Independent => tier_of(accesses(st)),
        }
    }

    /// Flags that a folio loses as it moves to a younger generation: since 6.14 a folio of the
    /// working set stays known as one.
    pub(crate) fn lost_by_aging(self) -> u32 {
        match self {
            Generations::Linked => FolioFlags::REFS_MASK | FolioFlags::REFERENCED | FolioFlags::WORKINGSET,
            Generations::Independent => FolioFlags::REFS_MASK | FolioFlags::REFERENCED,
        }
    }

    /// Flags of a folio that eviction claimed and took off its list. Without `referenced`, the refs
    /// of the folio count for nothing.
    #[inline(always)]
    pub(crate) fn isolated(self, mut st: FolioFlags) -> FolioFlags {
        let counts = st.has(FolioFlags::REFERENCED);
        match self {
            Generations::Linked if counts => {}
            Generations::Linked => st.clear(FolioFlags::REFS_MASK | FolioFlags::WORKINGSET),
            Generations::Independent if counts => {}
            Generations::Independent => st.clear(FolioFlags::REFS_MASK),
        }
        if self == Generations::Linked {
            st.clear(FolioFlags::REFERENCED);
        }
        st.clear(FolioFlags::LRU | FolioFlags::RECLAIM | FolioFlags::GEN_MASK);
        st
    }

    /// Whether all bits for accesses are set: then eviction promotes the folio.
    #[inline(always)]
    pub(crate) fn has_all_accesses(self, st: FolioFlags) -> bool {
        match self {
            Generations::Linked => st.refs() == 1 << REFS_BITS,
            Generations::Independent => accesses(st) + u32::from(st.has(FolioFlags::WORKINGSET)) == ALL_ACCESSES,
        }
    }
}

/// Counts an access: the 1st sets `referenced`, up to 3 more count in the refs, the last sets
/// `workingset`.
fn count_access(st: &mut FolioFlags) {
    if st.has(FolioFlags::UNEVICTABLE) {
        return;
    }
    if !st.has(FolioFlags::REFERENCED) {
        st.clear(FolioFlags::REFS_MASK);
        st.set(FolioFlags::REFERENCED);
    } else if st.0 & FolioFlags::REFS_MASK != FolioFlags::REFS_MASK {
        st.0 += 1 << FolioFlags::REFS_SHIFT;
    } else {
        st.set(FolioFlags::WORKINGSET);
    }
}

/// Accesses by descriptor, 0 to 4, without the one that `workingset` stands for.
#[inline(always)]
fn accesses(st: FolioFlags) -> u32 {
    if st.has(FolioFlags::REFERENCED) { ((st.0 & FolioFlags::REFS_MASK) >> FolioFlags::REFS_SHIFT) + 1 } else { 0 }
}

/// Notes that the reference check, or a look-around without a walk, found a page in use: as
/// `note_use`. Where a fault counts as an access (Linux 7.2), the first such use does not yet make
/// the page part of the working set.
pub(crate) fn note_reference(st: &mut FolioFlags, faulted: FaultedPages) -> bool {
    let is_second = accesses(*st) == 1 || !st.has(FolioFlags::REFERENCED) && st.has(FolioFlags::WORKINGSET);
    if faulted == FaultedPages::Accessed && is_second {
        count_access(st);
        return true;
    }
    note_use(st)
}

/// Notes that an aging walk found a page in use, since 6.14. True: promote the page, as this is the
/// second time.
pub(crate) fn note_use(st: &mut FolioFlags) -> bool {
    let again = st.has(FolioFlags::REFERENCED | FolioFlags::WORKINGSET);
    st.clear(FolioFlags::REFS_MASK | FolioFlags::REFERENCED);
    st.set(if again { FolioFlags::WORKINGSET } else { FolioFlags::REFERENCED });
    again
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_by_accesses() {
        for (form, tiers) in [(Generations::Linked, [0, 0, 1, 2, 2, 3]), (Generations::Independent, [0, 0, 1, 2, 2, 3])]
        {
            let mut st = FolioFlags(FolioFlags::UPTODATE);
            for (n, &tier) in tiers.iter().enumerate() {
                assert_eq!(form.tier(st), tier, "{form:?} after {n}");
                assert_eq!(was_accessed_again(st), n > 1, "{form:?} after {n}");
                assert!(n > 1 || form.refs_in_shadow(st) == (false, 0), "{form:?} after {n}");
                assert_eq!(form.has_all_accesses(st), n == 5, "{form:?} after {n}");
                form.count_access(&mut st);
            }
            assert!(form.has_all_accesses(st), "there are no more bits");
        }
    }

    #[test]
    fn the_last_access_alone_makes_a_working_set_since_6_14() {
        let mut st = FolioFlags(FolioFlags::UPTODATE);
        for n in 1..=5 {
            Generations::Independent.count_access(&mut st);
            assert_eq!(st.has(FolioFlags::WORKINGSET), n == 5);
        }
        let mut linked = FolioFlags(FolioFlags::UPTODATE);
        (0..2).for_each(|_| Generations::Linked.count_access(&mut linked));
        assert!(linked.has(FolioFlags::WORKINGSET));
    }

    #[test]
    fn the_second_use_promotes() {
        let mut st = FolioFlags(FolioFlags::UPTODATE | FolioFlags::REFS_MASK);
        assert!(!note_use(&mut st));
        assert_eq!(st.0, FolioFlags::UPTODATE | FolioFlags::REFERENCED);
        assert!(note_use(&mut st));
        assert_eq!(st.0, FolioFlags::UPTODATE | FolioFlags::WORKINGSET);
        assert!(note_use(&mut st), "what was in the working set is promoted at once");
    }
}
