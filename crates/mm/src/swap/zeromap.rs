//! Pages of zeros: a bit in the place of a slot's content, and no I/O.
//!
//! Mechanism: `docs/mechanisms.md#rules-of-slots`.

use std::collections::BTreeMap;

use crate::ids::SwapSlot;

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
    pub(crate) fn set(&mut self, slot: SwapSlot, nr: u32) {
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

    /// Tests the slots from this one on: all are zeros, none is, or (no answer) some are.
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
