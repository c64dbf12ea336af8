//! Swap: devices, and the allocation of their slots.
//!
//! A slot is taken for a folio that enters the swap cache, and is free again when neither a page
//! table nor the cache refers to it. Slots that were freed are collected; the engine uncharges them
//! and tells the driver ([`Swap::take_freed`]).
//!
//! Mechanism: `docs/mechanisms.md#swap`.

mod alloc;
mod avail;
mod cluster;
mod device;
#[cfg(test)]
mod discard_tests;
mod free;
mod linear;
mod map;
mod refs;
mod remove;
mod scan;
mod slot_cache;
mod space;
#[cfg(test)]
mod tests;
mod validate;
mod view;
pub(crate) mod zeromap;

pub use device::SwapWork;
pub(crate) use device::{FreedSlots, SwapHost};
pub use space::SwapSpace;
pub use view::{SwapCluster, SwapDeviceInfo, SwapList, SwapMap};

use crate::config::swap::SwapConfig;
use crate::ids::{MemcgId, SwapSlot};
use device::{Device, DeviceState};
use slot_cache::SlotCaches;

/// Bytes that a slot of a cluster in use takes.
pub(crate) const BYTES_PER_SLOT: usize = cluster::Cluster::BYTES.div_ceil(cluster::MAX_CLUSTER_PAGES);

/// All swap devices.
#[derive(Clone, Debug)]
pub(crate) struct Swap {
    /// By number of the device.
    devices: Vec<Option<Device>>,
    /// Devices that may have room, in the order in which they are asked.
    avail: Vec<u8>,
    cpus: usize,
    /// The CPU on which things happen.
    cpu: usize,
    caches: SlotCaches,
    /// Priority of the next device for which none was chosen.
    next_priority: i32,
    common: DeviceState,
}

impl Swap {
    /// The devices of a configuration, which was checked.
    pub(crate) fn new(cfg: &SwapConfig, cpus: usize) -> Swap {
        let mut swap = Swap {
            devices: Vec::new(),
            avail: Vec::new(),
            cpus,
            cpu: 0,
            caches: SlotCaches::new(cpus, cfg.policy.slot_cache),
            next_priority: FIRST_AUTOMATIC_PRIORITY,
            common: DeviceState { policy: cfg.policy.clone(), ..DeviceState::default() },
        };
        for device in cfg.all_devices() {
            swap.add(device).expect("devices of a configuration are checked");
        }
        swap
    }

    /// Allocates 2^order aligned slots for a folio that enters the swap cache. Returns the first
    /// one.
    pub(crate) fn alloc<H: SwapHost>(
        &mut self,
        order: u8,
        memcg: MemcgId,
        cpu: usize,
        host: &mut H,
    ) -> Option<SwapSlot> {
        self.cpu = cpu;
        let slot = if order == 0 { self.alloc_one(cpu, host) } else { self.alloc_from_devices(order, cpu, host) }?;
        self.set_memcg(slot, order, memcg);
        Some(slot)
    }

    /// The next freed slots of which the engine has not learned yet.
    pub(crate) fn pop_freed(&mut self) -> Option<FreedSlots> {
        self.common.freed.pop()
    }

    /// Whether slots were freed that the driver has not taken yet.
    #[inline]
    pub(crate) fn has_freed(&self) -> bool {
        !self.common.freed.is_empty()
    }

    /// Slots, free or not, of all devices except those being removed.
    pub(crate) fn total_pages(&self) -> u64 {
        self.common.total
    }

    /// Slots that are free on all devices.
    pub(crate) fn free_pages(&self) -> u64 {
        self.common.total - self.common.used
    }

    /// Slots that are in use, also on devices being removed.
    pub(crate) fn used_pages(&self) -> u64 {
        self.common.used + self.common.removing
    }

    /// Used slots that CPUs took ahead: nobody is charged for them.
    pub(crate) fn taken_ahead_pages(&self) -> u64 {
        self.caches.held().0 as u64
    }

    /// The CPU on which slots are freed from now on.
    pub(crate) fn set_cpu(&mut self, cpu: usize) {
        self.cpu = cpu;
    }

    /// The half rule: less than half of all slots is free.
    pub(crate) fn is_full(&self) -> bool {
        self.common.is_full()
    }

    /// Work of the allocator so far.
    pub(crate) fn work(&self) -> SwapWork {
        self.common.work
    }

    /// Clusters that the driver is discarding.
    pub(crate) fn discards_pending(&self) -> bool {
        self.devices.iter().flatten().any(|d| !d.discarding.is_empty())
    }

    /// Work that is left over from allocating and freeing: reclaim of a device that became 100 %
    /// used, discards.
    pub(crate) fn background_work<H: SwapHost>(&mut self, host: &mut H) {
        for d in self.devices.iter_mut().flatten() {
            if std::mem::take(&mut d.wants_reclaim) {
                d.reclaim_full_clusters(true, &mut self.common, host);
            }
            if d.cfg.discard {
                d.discard_work(&mut self.common, host);
            }
        }
    }

    /// Whether devices have background work.
    #[inline]
    pub(crate) fn has_background_work(&self) -> bool {
        self.devices.iter().flatten().any(|d| d.wants_reclaim || (d.cfg.discard && d.has_discards()))
    }

    /// The driver discarded a cluster. False: it was not asked to.
    pub(crate) fn discard_done(&mut self, first: SwapSlot) -> bool {
        let device = self.devices.get_mut(usize::from(first.device())).and_then(Option::as_mut);
        device.is_some_and(|d| d.discarded(first.offset(), &mut self.common))
    }

    /// Whether the device of a slot answers at once.
    pub(crate) fn is_synchronous(&self, slot: SwapSlot) -> bool {
        self.device(slot).cfg.synchronous
    }

    /// Whether the device of a slot is there.
    pub(crate) fn has_device(&self, slot: SwapSlot) -> bool {
        self.devices.get(usize::from(slot.device())).is_some_and(Option::is_some)
    }

    #[inline]
    fn device(&self, slot: SwapSlot) -> &Device {
        self.devices[usize::from(slot.device())].as_ref().expect("a slot in use is on a device")
    }

    #[inline]
    fn device_mut(&mut self, slot: SwapSlot) -> (&mut Device, &mut DeviceState) {
        let device = self.devices[usize::from(slot.device())].as_mut().expect("a slot in use is on a device");
        (device, &mut self.common)
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.devices.iter().flatten().map(|d| d.clusters.memory_bytes()).sum()
    }
}

/// −1 is kept for what has no priority.
const FIRST_AUTOMATIC_PRIORITY: i32 = -2;
