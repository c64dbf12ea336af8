//! Copies of pages that were read and keep their slots: a page that is not written until it leaves
//! memory again need not be written.
//!
//! A page that was written goes to the slot that it has, where a new slot would be next to those of
//! its batch. So copies pay only where most pages come back unchanged: on ext4 one that did saved
//! about 2 µs of processor time, one that did not cost about 5.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Kind, SwapArea, checksum};
use crate::store::{Note, Page};

/// Scale of the share of recent copies that were good when their pages left memory again: this many
/// parts are all copies.
const ONE: u32 = 1 << 16;
/// From this share on copies pay: 5 / (2 + 5).
const PAYS: u32 = ONE / 7 * 5;
/// Weight of an outcome in the share, one part in this many.
const WEIGHT: u32 = 64;
/// Share of copies kept while they do not pay, one in this many, to find out when they do.
const TRIAL: u32 = 16;

/// Whether copies pay.
pub(super) struct Copies {
    good: AtomicU32,
    asked: AtomicU32,
    unchanged: AtomicU64,
}

impl Copies {
    pub(super) fn new() -> Copies {
        Copies { good: AtomicU32::new(ONE), asked: AtomicU32::new(0), unchanged: AtomicU64::new(0) }
    }

    /// A page whose slot was kept left memory.
    fn seen(&self, unchanged: bool) {
        // Two at once may count as one.
        let good = self.good.load(Ordering::Relaxed);
        let good = if unchanged { good + (ONE - good).div_ceil(WEIGHT) } else { good - good.div_ceil(WEIGHT) };
        self.good.store(good, Ordering::Relaxed);
        self.unchanged.fetch_add(u64::from(unchanged), Ordering::Relaxed);
    }

    fn pay(&self) -> bool {
        self.good.load(Ordering::Relaxed) >= PAYS || self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(TRIAL)
    }

    /// Writes that were not made.
    pub(super) fn unchanged(&self) -> u64 {
        self.unchanged.load(Ordering::Relaxed)
    }
}

impl SwapArea {
    /// Whether the copy in a slot that was just read is worth keeping: it takes no memory, and
    /// lately most pages left memory again unchanged.
    pub fn keeps_copy(&self, slot: u32) -> bool {
        let cells = self.cells();
        let stored = cells.of(slot).filter(|&cell| cells.cells.get(cell).kind == Kind::Stored);
        drop(cells);
        stored.is_some_and(|cell| self.store.takes_no_memory(cell)) && self.copies.pay()
    }

    /// Whether a slot has this very page already: it was read from there, and the slot was kept.
    /// The content of the page decides, by its checksum, so nothing depends on who wrote to it
    /// when.
    pub(super) fn holds(&self, slot: u32, page: u32, content: &Page) -> bool {
        let known = {
            let cells = self.cells();
            cells.of(slot).map(|cell| (cell, cells.cells.get(cell)))
        };
        let Some((cell, meta)) = known.filter(|(_, meta)| meta.kind == Kind::Stored) else { return false };
        let held = meta.page == page && checksum(page, meta.turn, content) == meta.word;
        self.copies.seen(held);
        if held {
            self.store.note(Note::LeftUnwritten(Some(cell)));
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_kept_while_most_are_good_and_tried_when_they_are_not() {
        let c = Copies::new();
        let kept = |c: &Copies| (0..160).filter(|_| c.pay()).count();
        assert_eq!(kept(&c), 160, "at first");
        (0..200).for_each(|_| c.seen(false));
        assert_eq!(kept(&c), 10);
        (0..2000).for_each(|_| c.seen(true));
        assert_eq!((kept(&c), c.unchanged()), (160, 2000));
        (0..4000).for_each(|i| c.seen(i % 2 == 0));
        assert_eq!(kept(&c), 10, "half of them");
        (0..4000).for_each(|i| c.seen(i % 8 != 0));
        assert_eq!(kept(&c), 160, "seven of eight");
    }
}
