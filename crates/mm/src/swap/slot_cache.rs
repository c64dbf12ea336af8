//! Slots that a CPU has taken ahead, and slots that it will give back: 64 of each, for single
//! pages.
//!
//! For a device all these slots are in use. The caches work while more than 320 slots per CPU are
//! free, and are emptied when fewer than 128 per CPU are.
//!
//! Mechanism: `docs/mechanisms.md#rules-of-slots`.

use super::Swap;
use super::device::SwapHost;
use super::map::HAS_CACHE;
use crate::ids::SwapSlot;

/// Slots of a cache.
const SLOTS: usize = 64;
/// Free slots per CPU above which the caches start to work.
const ACTIVATE_ABOVE: u64 = 5 * SLOTS as u64;
/// Free slots per CPU below which they stop.
const DEACTIVATE_BELOW: u64 = 2 * SLOTS as u64;

/// The two caches of a CPU.
#[derive(Clone, Debug, Default)]
struct CpuSlots {
    /// Taken ahead; the next one last.
    taken: Vec<SwapSlot>,
    /// To be given back.
    returned: Vec<SwapSlot>,
}

/// The caches of all CPUs.
#[derive(Clone, Debug)]
pub(super) struct SlotCaches {
    cpus: Vec<CpuSlots>,
    active: bool,
    /// While a device is being removed they are off.
    pub(super) disabled: bool,
}

impl SlotCaches {
    pub(super) fn new(cpus: usize, enabled: bool) -> SlotCaches {
        SlotCaches { cpus: vec![CpuSlots::default(); cpus], active: false, disabled: !enabled }
    }

    /// Whether they may work, now or later.
    pub(super) fn are_enabled(&self) -> bool {
        !self.disabled || self.active
    }

    /// Slots taken ahead, and to be given back.
    pub(super) fn held(&self) -> (usize, usize) {
        let taken = self.cpus.iter().map(|c| c.taken.len()).sum();
        (taken, self.cpus.iter().map(|c| c.returned.len()).sum())
    }
}

impl Swap {
    /// Whether the caches work now. They start and stop by what is free.
    fn are_caches_active(&mut self) -> bool {
        if self.caches.disabled {
            return false;
        }
        let (free, cpus) = (self.free_pages(), self.cpus as u64);
        if !self.caches.active {
            self.caches.active = free > cpus * ACTIVATE_ABOVE;
        } else if free < cpus * DEACTIVATE_BELOW {
            self.drain_caches();
        }
        self.caches.active
    }

    /// Gives back everything that is in the caches, and stops them.
    pub(super) fn drain_caches(&mut self) {
        self.caches.active = false;
        for cpu in 0..self.caches.cpus.len() {
            for slot in std::mem::take(&mut self.caches.cpus[cpu].taken) {
                let (d, common) = self.device_mut(slot);
                d.free_range(slot.offset(), 1, common);
                // Nobody was charged for it, and it never held anything.
                common.freed.pop();
            }
            self.drain_returned(cpu);
        }
    }

    fn drain_returned(&mut self, cpu: usize) {
        for slot in std::mem::take(&mut self.caches.cpus[cpu].returned) {
            let (d, common) = self.device_mut(slot);
            d.free_range(slot.offset(), 1, common);
        }
    }

    /// A slot for one page, from the cache of the CPU if that works.
    pub(super) fn alloc_one<H: SwapHost>(&mut self, cpu: usize, host: &mut H) -> Option<SwapSlot> {
        if !self.are_caches_active() {
            return self.alloc_from_devices(0, cpu, host);
        }
        let at = cpu.min(self.caches.cpus.len() - 1);
        if self.caches.cpus[at].taken.is_empty() {
            let mut taken = std::mem::take(&mut self.caches.cpus[at].taken);
            self.fill(0, SLOTS, cpu, host, |slot| taken.push(slot));
            taken.reverse();
            self.caches.cpus[at].taken = taken;
        }
        self.caches.cpus[at].taken.pop()
    }

    /// Frees a slot to which nobody refers any more: at once, or when the CPU has collected enough
    /// slots.
    pub(super) fn release_one(&mut self, slot: SwapSlot) {
        if !self.caches.active {
            let (d, common) = self.device_mut(slot);
            return d.free_range(slot.offset(), 1, common);
        }
        let (d, _) = self.device_mut(slot);
        let (c, at) = d.place(slot.offset());
        d.clusters.slots_mut(c).map[at] = HAS_CACHE;
        let cpu = self.cpu.min(self.caches.cpus.len() - 1);
        if self.caches.cpus[cpu].returned.len() == SLOTS {
            self.drain_returned(cpu);
        }
        self.caches.cpus[cpu].returned.push(slot);
    }
}
