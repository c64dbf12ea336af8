//! Pages of zeros: a bit in the place of a slot's content, and no I/O (8.7).

use std::collections::BTreeMap;

use crate::engine::Engine;
use crate::folio::table::State;
use crate::ids::{FolioId, PageId, SwapSlot};
use crate::stat::Counter;
use crate::world::{Content, Effect, World};

/// A bit for each slot: its page is all zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZeroMap {
    /// By word of 64 slots; words without a bit are not kept.
    words: BTreeMap<u32, u64>,
}

impl ZeroMap {
    pub(crate) fn has(&self, slot: SwapSlot) -> bool {
        self.words.get(&(slot.0 / 64)).is_some_and(|w| w >> (slot.0 % 64) & 1 != 0)
    }

    /// Sets the bits of the slots from this one on.
    fn set(&mut self, slot: SwapSlot, nr: u32) {
        (slot.0..slot.0 + nr).for_each(|s| *self.words.entry(s / 64).or_default() |= 1 << (s % 64));
    }

    /// Clears them.
    pub(crate) fn clear(&mut self, slot: SwapSlot, nr: u32) {
        if self.words.is_empty() {
            return;
        }
        for s in slot.0..slot.0 + nr {
            if let Some(word) = self.words.get_mut(&(s / 64)) {
                *word &= !(1 << (s % 64));
                if *word == 0 {
                    self.words.remove(&(s / 64));
                }
            }
        }
    }

    /// Of the slots from this one on: all are zeros, none is, or (no answer) some are.
    pub(crate) fn run(&self, slot: SwapSlot, nr: u32) -> Option<bool> {
        let set = (slot.0..slot.0 + nr).filter(|&s| self.has(SwapSlot(s))).count() as u32;
        (set == 0 || set == nr).then_some(set == nr)
    }

    /// Slots whose bit is set.
    pub(crate) fn slots(&self) -> impl Iterator<Item = SwapSlot> + '_ {
        let bits = |(&i, &w): (&u32, &u64)| (0..64).filter(move |b| w >> b & 1 != 0).map(move |b| SwapSlot(i * 64 + b));
        self.words.iter().flat_map(bits)
    }
}

impl Engine {
    /// Takes note of whether a folio that is to be written is all zeros, in all of its pages. Then nothing is written.
    pub(crate) fn store_zeros<W: World>(&mut self, w: &mut W, f: FolioId, first: Content) -> bool {
        let (page, slot, nr) = (self.pages.folios.page(f).0, self.pages.folios.swap(f), self.pages.folios.st(f).nr_pages() as u32);
        if first == Content::Zero && (page + 1..page + nr).all(|p| w.content(PageId(p)) == Content::Zero) {
            self.swap.zeromap.set(slot, nr);
            self.count(f, Counter::SwpoutZero, u64::from(nr));
            return true;
        }
        self.swap.zeromap.clear(slot, nr);
        false
    }

    /// Fills a folio whose slots are marked as zeros. False: they are not.
    pub(crate) fn load_zeros<W: World>(&mut self, w: &mut W, f: FolioId) -> bool {
        let (st, slot) = (self.pages.folios.st(f), self.pages.folios.swap(f));
        if self.swap.zeromap.run(slot, st.nr_pages() as u32) != Some(true) {
            return false;
        }
        w.effect(Effect::ZeroFill { page: self.pages.folios.page(f), order: st.order() });
        self.pages.folios.set(f, State::UPTODATE);
        self.count(f, Counter::SwpinZero, st.nr_pages());
        true
    }

    /// Only slots that are not free are marked.
    pub(crate) fn validate_zeromap(&self) -> Result<(), String> {
        let unused = |s: &SwapSlot| !self.swap.slots.is_taken(*s);
        match self.swap.zeromap.slots().find(unused) {
            Some(s) => Err(format!("{s:?} is free and marked as zeros")),
            None => Ok(()),
        }
    }
}
