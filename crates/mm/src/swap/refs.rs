//! References to a slot: page tables, the swap cache.

use super::Swap;
use super::device::Device;
use super::map::{self, CONTINUED, COUNT_MAX, HAS_CACHE};
use crate::folio::slot::Slot;
use crate::ids::{FolioId, MemcgId, SwapSlot};

impl Swap {
    fn slot_entry(&self, slot: SwapSlot) -> Slot {
        let d = self.device(slot);
        let (c, at) = d.place(slot.offset());
        d.clusters.get(c).slots.as_ref().map_or(Slot::EMPTY, |s| s.cache[at])
    }

    /// The folio that the swap cache holds for a slot, whichever of the folio's slots that is.
    #[inline]
    pub(crate) fn cached(&self, slot: SwapSlot) -> Option<FolioId> {
        self.slot_entry(slot).folio()
    }

    /// The shadow that the evicted page left.
    pub(crate) fn shadow(&self, slot: SwapSlot) -> Option<u64> {
        self.slot_entry(slot).as_value()
    }

    /// Puts a folio into the swap cache, with 2^order slots that were just taken, or from which it
    /// is to be read.
    pub(crate) fn add_to_cache(&mut self, slot: SwapSlot, order: u8, f: FolioId) {
        let (d, _) = self.device_mut(slot);
        let (c, at) = d.place(slot.offset());
        let (slots, nr) = (d.clusters.slots_mut(c), 1usize << order);
        if nr == 1 {
            slots.cache[at] = Slot::resident(f);
            slots.map[at] |= HAS_CACHE;
            return;
        }
        slots.cache[at..at + nr].fill(Slot::resident(f));
        slots.map[at..at + nr].iter_mut().for_each(|b| *b |= HAS_CACHE);
    }

    /// Takes a folio out of the swap cache, leaving its shadow, if there is one, in slots that are
    /// still used.
    pub(crate) fn drop_cache(&mut self, slot: SwapSlot, order: u8, shadow: Option<u64>) {
        let (d, common) = self.device_mut(slot);
        let (c, at) = d.place(slot.offset());
        let (slots, nr) = (d.clusters.slots_mut(c), 1usize << order);
        let left = shadow.map_or(Slot::EMPTY, Slot::value);
        if nr == 1 {
            slots.cache[at] = left;
            slots.map[at] &= !HAS_CACHE;
            if slots.map[at] == 0 {
                self.release_one(slot);
            }
            return;
        }
        slots.cache[at..at + nr].fill(left);
        if nr > 1 && slots.map[at..at + nr].iter().all(|&b| b == HAS_CACHE) {
            return d.free_range(slot.offset(), nr as u32, common);
        }
        for i in 0..nr {
            let (d, _) = self.device_mut(slot);
            let byte = &mut d.clusters.slots_mut(c).map[at + i];
            *byte &= !HAS_CACHE;
            if *byte == 0 {
                self.release_one(slot.nth(i as u32));
            }
        }
    }

    /// A folio was read from its slots past the swap cache, and nobody needs them any more. By way
    /// of slot caches they go one by one, else as a whole.
    pub(crate) fn free_read(&mut self, slot: SwapSlot, order: u8) {
        if !self.caches.are_enabled() {
            return self.drop_cache(slot, order, None);
        }
        (0..1 << order).for_each(|i| self.drop_cache(slot.nth(i), 0, None));
    }

    /// The data of a page is in a slot that was just taken for it: one page table refers to the
    /// slot, and no folio is in the swap cache.
    #[inline]
    pub(crate) fn fill_slot(&mut self, slot: SwapSlot, shadow: Option<u64>) {
        let (d, _) = self.device_mut(slot);
        let (c, at) = d.place(slot.offset());
        let slots = d.clusters.slots_mut(c);
        slots.cache[at] = shadow.map_or(Slot::EMPTY, Slot::value);
        slots.map[at] = 1;
    }

    /// One page table refers to the slot, and nobody else: no folio is in the swap cache.
    #[inline]
    pub(crate) fn is_sole(&self, slot: SwapSlot) -> bool {
        self.device(slot).byte(slot.offset()) == 1
    }

    /// A page table refers to the slot.
    #[inline]
    pub(crate) fn get(&mut self, slot: SwapSlot) {
        let (d, _) = self.device_mut(slot);
        let (c, at) = d.place(slot.offset());
        let byte = &mut d.clusters.slots_mut(c).map[at];
        if map::count(*byte) < COUNT_MAX {
            *byte += 1;
        } else {
            *byte |= CONTINUED;
            *d.continued.entry(slot.offset()).or_default() += 1;
        }
    }

    /// Page tables refer to these slots, each by one reference. They are in one cluster.
    pub(crate) fn get_range(&mut self, slot: SwapSlot, nr: u32) {
        let (d, _) = self.device_mut(slot);
        let (c, at) = d.place(slot.offset());
        let bytes = &mut d.clusters.slots_mut(c).map[at..at + nr as usize];
        if bytes.iter().all(|&b| map::count(b) < COUNT_MAX) {
            bytes.iter_mut().for_each(|b| *b += 1);
        } else {
            (0..nr).for_each(|i| self.get(slot.nth(i)));
        }
    }

    /// A page table no longer refers to the slot.
    #[inline]
    pub(crate) fn put(&mut self, slot: SwapSlot) {
        if self.device_mut(slot).0.put_one(slot.offset()) {
            self.release_one(slot);
        }
    }

    /// Page tables no longer refer to these slots, each by one reference.
    pub(crate) fn put_range(&mut self, slot: SwapSlot, nr: u32) {
        if nr == 1 {
            return self.put(slot);
        }
        let (d, common) = self.device_mut(slot);
        let (c, at) = d.place(slot.offset());
        let whole = nr > 1
            && at + nr as usize <= d.clusters.pages() as usize
            && d.clusters.slots_mut(c).map[at..at + nr as usize].iter().all(|&b| b == 1);
        if whole {
            return d.free_range(slot.offset(), nr, common);
        }
        for i in 0..nr {
            let slot = slot.nth(i);
            if self.device_mut(slot).0.put_one(slot.offset()) {
                self.release_one(slot);
            }
        }
    }

    /// References by page tables.
    pub(crate) fn count(&self, slot: SwapSlot) -> u32 {
        self.device(slot).references(slot.offset())
    }

    /// Whether a slot is not free: a page table, the swap cache or a slot cache has it.
    pub(crate) fn is_taken(&self, slot: SwapSlot) -> bool {
        self.device(slot).is_taken(slot.offset())
    }

    /// Whether page tables refer to any of 2^order slots.
    pub(crate) fn is_referenced(&self, slot: SwapSlot, order: u8) -> bool {
        (0..1 << order).any(|i| self.count(slot.nth(i)) > 0)
    }

    /// Sets the memcg that is charged for 2^order slots.
    pub(super) fn set_memcg(&mut self, slot: SwapSlot, order: u8, memcg: MemcgId) {
        let (d, _) = self.device_mut(slot);
        let (c, at) = d.place(slot.offset());
        let owners = &mut d.clusters.slots_mut(c).memcg;
        match order {
            0 => owners[at] = memcg,
            _ => owners[at..at + (1 << order)].fill(memcg),
        }
    }

    /// Charges another group for a slot; says which one was before.
    pub(crate) fn charge(&mut self, slot: SwapSlot, memcg: MemcgId) -> MemcgId {
        let (d, _) = self.device_mut(slot);
        let (c, at) = d.place(slot.offset());
        std::mem::replace(&mut d.clusters.slots_mut(c).memcg[at], memcg)
    }
}

impl Device {
    /// Whether nobody refers to it any more.
    fn put_one(&mut self, offset: u32) -> bool {
        let (c, at) = self.place(offset);
        let byte = &mut self.clusters.slots_mut(c).map[at];
        debug_assert!(map::count(*byte) > 0, "slot {offset} has no reference to give up");
        if *byte & CONTINUED == 0 {
            *byte -= 1;
        } else if let Some(more) = self.continued.get_mut(&offset) {
            *more -= 1;
            if *more == 0 {
                self.continued.remove(&offset);
                *byte &= !CONTINUED;
            }
        }
        *byte == 0
    }
}
