//! A plain swap device: order-0 slots, handed out from a free stack.
//!
//! The interface is the one that the cluster allocator will fill: allocate, count references of page tables, keep or drop
//! the swap cache, remember a shadow. A slot is free again when neither a page table nor the cache refers to it.

use crate::ids::{FolioId, MemcgId, SwapSlot};
use crate::slot::Slot;

/// One slot.
#[derive(Clone, Debug, Default)]
struct Entry {
    /// The folio in the swap cache, or the shadow of the page.
    cache: Slot,
    /// Page tables that refer to the slot.
    count: u8,
    memcg: MemcgId,
}

/// The device.
#[derive(Clone, Debug)]
pub(crate) struct Swap {
    entries: Vec<Entry>,
    free: Vec<SwapSlot>,
    total: u64,
    used: u64,
}

impl Swap {
    pub(crate) fn new(total_pages: u64) -> Swap {
        // Slot 0 is the header.
        Swap { entries: vec![Entry::default()], free: Vec::new(), total: total_pages, used: 0 }
    }

    /// A slot for a folio that enters the swap cache with it.
    pub(crate) fn alloc(&mut self, f: FolioId, memcg: MemcgId) -> Option<SwapSlot> {
        if self.used >= self.total {
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            SwapSlot(self.entries.len() as u32 - 1)
        });
        self.used += 1;
        self.entries[slot.index()] = Entry { cache: Slot::resident(f), count: 0, memcg };
        Some(slot)
    }

    /// The folio that the swap cache holds for a slot.
    pub(crate) fn cached(&self, slot: SwapSlot) -> Option<FolioId> {
        self.entries[slot.index()].cache.folio()
    }

    /// The shadow that the evicted page left.
    pub(crate) fn shadow(&self, slot: SwapSlot) -> Option<u64> {
        self.entries[slot.index()].cache.as_value()
    }

    /// Puts a folio that is being read into the cache.
    pub(crate) fn set_cached(&mut self, slot: SwapSlot, f: FolioId) {
        self.entries[slot.index()].cache = Slot::resident(f);
    }

    /// Takes the folio out of the cache, leaving a shadow if there is one. Returns whom to uncharge if that freed the slot.
    pub(crate) fn drop_cache(&mut self, slot: SwapSlot, shadow: Option<u64>) -> Option<MemcgId> {
        self.entries[slot.index()].cache = shadow.map_or(Slot::EMPTY, Slot::value);
        self.release_if_unused(slot)
    }

    /// A page table refers to the slot.
    pub(crate) fn get(&mut self, slot: SwapSlot) {
        self.entries[slot.index()].count += 1;
    }

    /// A page table no longer refers to the slot. Returns whom to uncharge if that freed the slot.
    pub(crate) fn put(&mut self, slot: SwapSlot) -> Option<MemcgId> {
        self.entries[slot.index()].count -= 1;
        self.release_if_unused(slot)
    }

    /// References by page tables.
    pub(crate) fn count(&self, slot: SwapSlot) -> u8 {
        self.entries[slot.index()].count
    }

    fn release_if_unused(&mut self, slot: SwapSlot) -> Option<MemcgId> {
        let e = &mut self.entries[slot.index()];
        if e.count > 0 || e.cache.folio().is_some() {
            return None;
        }
        e.cache = Slot::EMPTY;
        self.used -= 1;
        self.free.push(slot);
        Some(e.memcg)
    }

    pub(crate) fn free_pages(&self) -> u64 {
        self.total - self.used
    }

    pub(crate) fn used_pages(&self) -> u64 {
        self.used
    }

    /// The half rule: less than half of the device is free.
    pub(crate) fn is_full(&self) -> bool {
        self.free_pages() * 2 < self.total
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.free.capacity() * 4
    }

    /// Used slots are those that someone refers to.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let used = self.entries.iter().filter(|e| e.count > 0 || e.cache.folio().is_some()).count() as u64;
        let free = self.free.len() as u64;
        if used != self.used || used + free + 1 != self.entries.len() as u64 {
            return Err(format!("swap: {} counted, {used} referred to, {free} free", self.used));
        }
        Ok(())
    }
}
