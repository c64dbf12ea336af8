//! Pages that stay in place while the store is full, for they came back last.
//!
//! A full store takes only pages that fit where others were read from. So the page that came in
//! last is often the only one that can leave. A thread whose next instruction needs two such pages
//! would have them by turns: each read and each write looks like progress, and the instruction
//! never ends. If both stay, a thread that needs a third finds no room, which ends it as out of
//! memory.

use std::collections::VecDeque;

/// Pages that stay. An instruction needs six at most; several threads wait at once.
const MOST: usize = 128;
/// Nanoseconds after a refusal during which the store counts as full.
const FULL_NS: u64 = 1_000_000_000;

/// The last pages that were read while the store was full.
#[derive(Default)]
pub(super) struct RecentSwapIns {
    pages: VecDeque<u32>,
    /// When the store last refused a page.
    refused_ns: Option<u64>,
}

impl RecentSwapIns {
    /// The store refused a page.
    pub(super) fn note_refused(&mut self, now_ns: u64) {
        self.refused_ns = Some(now_ns);
    }

    /// A page was read.
    pub(super) fn push(&mut self, page: u32, now_ns: u64) {
        if self.refused_ns.is_none_or(|at_ns| now_ns - at_ns > FULL_NS) {
            return self.pages.clear();
        }
        if self.pages.len() == MOST {
            self.pages.pop_front();
        }
        self.pages.push_back(page);
    }

    /// Whether a page is to stay.
    pub(super) fn keeps(&self, page: u32) -> bool {
        self.pages.contains(&page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_two_pages_are_not_exchanged_for_ever_in_a_full_store() {
        let mut recent = RecentSwapIns::default();
        recent.push(1, 5);
        assert!(!recent.keeps(1), "the store has room");
        recent.note_refused(10);
        recent.push(1, 20);
        recent.push(2, 30);
        assert!(recent.keeps(1) && recent.keeps(2) && !recent.keeps(3));
        for page in 3..3 + MOST as u32 {
            recent.push(page, 40);
        }
        assert!(!recent.keeps(1) && !recent.keeps(2) && recent.keeps(3), "older ones may leave");
        recent.push(1, 11 + FULL_NS);
        assert!(!recent.keeps(1) && !recent.keeps(3), "it has room again");
    }
}
