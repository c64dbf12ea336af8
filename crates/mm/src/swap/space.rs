//! Swap devices on their own, without pages: for measuring the allocator, and for driving it from
//! outside.

use std::collections::BTreeMap;

use super::{Swap, SwapHost, SwapMap, SwapWork};
use crate::config::swap::{SwapConfig, SwapDeviceConfig, SwapPolicy};
use crate::config::{Config, Policy};
use crate::ids::{FolioId, MemcgId, SwapSlot};
use crate::world::Ack;

/// Swap devices and the folios that are on them.
#[derive(Clone, Debug)]
pub struct SwapSpace {
    swap: Swap,
    host: Folios,
}

/// The folios in the swap cache.
#[derive(Clone, Debug, Default)]
struct Folios {
    cached: BTreeMap<FolioId, (SwapSlot, u8)>,
    next: u32,
    /// First slots of clusters whose discard has not ended; none: discards end at once.
    discards: Option<Vec<SwapSlot>>,
}

impl SwapHost for Folios {
    fn droppable(&self, f: FolioId) -> Option<(SwapSlot, u8)> {
        self.cached.get(&f).copied()
    }

    fn dropped(&mut self, f: FolioId) {
        self.cached.remove(&f);
    }

    fn discard(&mut self, first: SwapSlot, _: u32) -> Ack {
        match &mut self.discards {
            None => Ack::Done,
            Some(waiting) => {
                waiting.push(first);
                Ack::Pending
            }
        }
    }
}

impl SwapSpace {
    /// Makes swap devices for `cpus` CPUs. An impossible device is an error. `slow_discards`: a
    /// discard ends by [`SwapSpace::end_discard`].
    pub fn new(
        devices: Vec<SwapDeviceConfig>,
        policy: SwapPolicy,
        cpus: usize,
        slow_discards: bool,
    ) -> Result<SwapSpace, String> {
        let cfg = Config {
            swap: SwapConfig { devices, policy, pages: 0, ..SwapConfig::default() },
            cpus,
            ..Config::new(Policy::Lru)
        };
        cfg.check()?;
        let discards = slow_discards.then(Vec::new);
        Ok(SwapSpace { swap: Swap::new(&cfg.swap, cfg.cpus), host: Folios { discards, ..Folios::default() } })
    }

    /// Swaps a folio out: takes 2^order slots, and a page table refers to each. None: there is no
    /// place for it.
    pub fn swap_out(&mut self, order: u8, cpu: usize) -> Option<SwapSlot> {
        let slot = self.swap.alloc(order, MemcgId::ROOT, cpu, &mut self.host)?;
        self.swap.add_to_cache(slot, order, FolioId(self.host.next));
        self.swap.get_range(slot, 1 << order);
        self.swap.drop_cache(slot, order, None);
        self.settle();
        Some(slot)
    }

    /// Drops the references of page tables to `nr` slots, which must be swapped out.
    pub fn free(&mut self, slot: SwapSlot, nr: u32) {
        self.swap.put_range(slot, nr);
        self.settle();
    }

    /// Swaps one page in and keeps the slot, which the allocator may take from it.
    pub fn swap_in(&mut self, slot: SwapSlot) {
        if self.swap.cached(slot).is_none() {
            let f = FolioId(self.host.next);
            self.host.next = self.host.next.wrapping_add(1);
            self.swap.add_to_cache(slot, 0, f);
            self.host.cached.insert(f, (slot, 0));
        }
        self.swap.put(slot);
        self.settle();
    }

    /// Whether a page table refers to the slot.
    pub fn is_swapped_out(&self, slot: SwapSlot) -> bool {
        self.swap.has_device(slot) && self.swap.count(slot) > 0
    }

    /// Ends the n-th discard under way.
    pub fn end_discard(&mut self, n: usize) {
        let Some(waiting) = self.host.discards.as_mut().filter(|w| !w.is_empty()) else { return };
        let first = waiting.remove(n % waiting.len());
        self.swap.discard_done(first);
        self.settle();
    }

    /// Background work, and nobody asks what was freed.
    fn settle(&mut self) {
        while self.swap.pop_freed().is_some() {}
        while self.swap.has_background_work() {
            self.swap.background_work(&mut self.host);
            while self.swap.pop_freed().is_some() {}
        }
    }

    /// Usable slots that are free, and slots in use.
    pub fn free_and_used_pages(&self) -> (u64, u64) {
        (self.swap.free_pages(), self.swap.used_pages())
    }

    /// Work of the allocator so far.
    pub fn work(&self) -> SwapWork {
        self.swap.work()
    }

    /// The clusters of all devices.
    pub fn maps(&self) -> Vec<SwapMap> {
        self.swap.maps()
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.swap.memory_bytes()
    }

    /// Checks every invariant. The error is a defect.
    pub fn validate(&self) -> Result<(), String> {
        self.swap.validate()
    }
}
