//! Recency by advice: where accessed bits do not count, because the program said that it will not
//! come back soon.
//!
//! Mechanism: `docs/mechanisms.md#recency-by-advice`.

use crate::config::recency::{AccessAdvice, AdviceRecency};
use crate::ids::PageId;
use crate::lru::pages::ResidentPages;

/// Decision of the reference check on the accessed bits of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VmaRecency {
    /// Accessed bits count, and multi-gen LRU looks around.
    Counts,
    /// Accessed bits count for this page alone.
    CountsAlone,
    /// Accessed bits are cleared and do not count.
    Cleared,
    /// Accessed bits are not looked at.
    Unseen,
}

/// Decision of the reference check in a mapping with this advice.
fn vma_recency(rule: AdviceRecency, advice: AccessAdvice) -> VmaRecency {
    match (rule, advice) {
        (_, AccessAdvice::Normal) => VmaRecency::Counts,
        (AdviceRecency::Ignored, _) => VmaRecency::Unseen,
        (AdviceRecency::SequentialOnly, AccessAdvice::Sequential) => VmaRecency::Cleared,
        (AdviceRecency::SequentialOnly, AccessAdvice::Random) => VmaRecency::CountsAlone,
        (AdviceRecency::SequentialOnly, AccessAdvice::NoReuse) => VmaRecency::Counts,
    }
}

/// Whether faults and walks of multi-gen LRU see a use in a mapping with this advice.
pub(crate) fn is_used(rule: AdviceRecency, advice: AccessAdvice) -> bool {
    match advice {
        AccessAdvice::Normal => true,
        AccessAdvice::Random | AccessAdvice::Sequential => false,
        AccessAdvice::NoReuse => rule == AdviceRecency::SequentialOnly,
    }
}

impl ResidentPages {
    /// The advice on the mapping of a page.
    #[inline]
    pub(crate) fn advice(&self, page: PageId) -> AccessAdvice {
        if !self.space.advised {
            return AccessAdvice::Normal;
        }
        self.space.mappings[self.space.mapping_of(page).index()].advice
    }

    /// Decides for the reference check about the accessed bits of a page.
    #[inline]
    pub(crate) fn vma_recency(&self, page: PageId) -> VmaRecency {
        vma_recency(self.cfg.advice_recency, self.advice(page))
    }

    /// Whether a fault on a page is a use of it: under multi-gen LRU it starts in the youngest
    /// generation then.
    #[inline]
    pub(crate) fn is_fault_a_use(&self, page: PageId) -> bool {
        is_used(self.cfg.advice_recency, self.advice(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessAdvice::{NoReuse, Normal, Random, Sequential};
    use AdviceRecency::{Ignored, SequentialOnly};

    #[test]
    fn since_6_3_no_advised_mapping_is_looked_at_anywhere() {
        assert_eq!(vma_recency(Ignored, Normal), VmaRecency::Counts);
        assert!(is_used(Ignored, Normal));
        for advice in [Random, Sequential, NoReuse] {
            assert_eq!(vma_recency(Ignored, advice), VmaRecency::Unseen);
            assert!(!is_used(Ignored, advice));
        }
    }

    #[test]
    fn before_the_reference_check_counted_random_ones_and_walks_did_not() {
        let check = [Normal, Random, Sequential, NoReuse].map(|a| vma_recency(SequentialOnly, a));
        assert_eq!(check, [VmaRecency::Counts, VmaRecency::CountsAlone, VmaRecency::Cleared, VmaRecency::Counts]);
        assert_eq!(
            [Normal, Random, Sequential, NoReuse].map(|a| is_used(SequentialOnly, a)),
            [true, false, false, true]
        );
    }
}
