//! Choices about swap: its devices, and how slots are handed out.

use super::one_of;
use crate::ids::SwapSlot;

/// Largest number of swap devices.
pub const MAX_SWAP_DEVICES: usize = 16;
/// Largest size of one swap device, in pages: 1 TiB.
pub const MAX_SWAP_DEVICE_PAGES: u64 = 1 << SwapSlot::OFFSET_BITS;

/// A swap device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapDeviceConfig {
    /// Size of the device in pages. The first page is the header and holds nothing.
    pub pages: u64,
    /// Priority, 0 to 32767; none: below all devices that were given one, and below devices added
    /// before (−2, −3, …).
    pub priority: Option<i16>,
    /// The device answers at once (zram): swap-in goes round the swap cache and frees the slot.
    pub synchronous: bool,
    /// The device has a head to move: slots are handed out in sequence, one page at a time.
    pub rotational: bool,
    /// Clusters that became empty are discarded before they are used again.
    pub discard: bool,
    /// The device is a whole disk or partition. A swap file takes no large folios.
    pub block_device: bool,
    /// Pages of the device that cannot be used.
    pub bad_pages: Vec<u64>,
}

impl SwapDeviceConfig {
    /// A partition of a solid-state disk.
    pub fn new(pages: u64) -> SwapDeviceConfig {
        SwapDeviceConfig {
            pages,
            priority: None,
            synchronous: false,
            rotational: false,
            discard: false,
            block_device: true,
            bad_pages: Vec::new(),
        }
    }

    /// Names the first setting that is impossible, if any.
    pub fn check(&self) -> Result<(), String> {
        if !(2..=MAX_SWAP_DEVICE_PAGES).contains(&self.pages) {
            return Err(format!("a swap device has 2 to 2^{} pages, not {}", SwapSlot::OFFSET_BITS, self.pages));
        }
        if self.priority.is_some_and(|p| p < 0) {
            return Err("the priority of a swap device is 0 to 32767".into());
        }
        if let Some(bad) = self.bad_pages.iter().find(|&&p| p == 0 || p >= self.pages) {
            return Err(format!("bad page {bad} of a swap device: it has pages 1 to {}", self.pages - 1));
        }
        Ok(())
    }
}

/// From where a slot is taken on a device with clusters (allocation of swap slots).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapAllocator {
    /// Free clusters before partly used ones (version 5 of the series, Linux 6.12).
    FreeFirst,
    /// Partly used clusters of the order before free ones (version 3 of the series).
    NonfullFirst,
    /// As `NonfullFirst` where nothing is discarded, and one fragmented cluster is tried and no
    /// more (since Linux 6.13). A cluster that was scanned counts as fragmented, whether slots were
    /// found or not, until slots of it are freed.
    OneFrag,
    /// Before the series (Linux 6.10): large orders from free clusters only; order 0 from its
    /// cluster, then by scanning the map.
    FreeOnly,
}

impl SwapAllocator {
    /// All allocators.
    pub const ALL: [SwapAllocator; 4] =
        [SwapAllocator::FreeFirst, SwapAllocator::NonfullFirst, SwapAllocator::OneFrag, SwapAllocator::FreeOnly];
}

/// Where a large order goes that found no place on the first device that may have room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapOverflow {
    /// Nowhere: the folio is split (Linux 6.12).
    None,
    /// To the next device.
    TryNext,
}

/// How a rotational device hands out slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapRotational {
    /// One cursor over the map, order 0 only (Linux 6.12).
    Cursor,
    /// Clusters as on other devices, with one place to go on for all CPUs (since Linux 6.14).
    Clusters,
}

/// Order in which the pages of a large folio take slots, if it is split for want of a range of
/// slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapSplit {
    /// From the first to the last (Linux 6.12).
    Ascending,
    /// The first, then from the last on back to the second (Linux 6.18).
    FirstThenBack,
}

/// How slots are handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapPolicy {
    /// The order in which clusters are asked.
    pub allocator: SwapAllocator,
    /// Overflow of large orders.
    pub overflow: SwapOverflow,
    /// Rotational devices.
    pub rotational: SwapRotational,
    /// Slots of a cluster: 512 where transparent huge pages can be swapped, else 256.
    pub cluster_pages: u32,
    /// Single slots are taken and given back by way of per-CPU caches of 64 (before Linux 6.14).
    pub slot_cache: bool,
    /// Order of the pages of folios that are split for want of a range of slots.
    pub split: SwapSplit,
    /// Pages of zeros leave a bit and are not written (since Linux 6.12).
    pub zeromap: bool,
}

impl Default for SwapPolicy {
    /// Linux 6.12.
    fn default() -> SwapPolicy {
        SwapPolicy {
            allocator: SwapAllocator::FreeFirst,
            overflow: SwapOverflow::None,
            rotational: SwapRotational::Cursor,
            cluster_pages: 512,
            slot_cache: false,
            split: SwapSplit::Ascending,
            zeromap: true,
        }
    }
}

impl SwapPolicy {
    /// Names the first setting that is impossible, if any.
    pub fn check(&self) -> Result<(), String> {
        match self.cluster_pages {
            256 | 512 => Ok(()),
            other => Err(format!("a swap cluster has 256 or 512 slots, not {other}")),
        }
    }
}

/// Swap.
#[derive(Clone, Debug, PartialEq)]
pub struct SwapConfig {
    /// Pages of swap that can be used, where no devices are listed in `swap_devices`.
    pub pages: u64,
    /// The swap device answers at once (zram): swap-in goes round the swap cache and frees the
    /// slot.
    pub synchronous: bool,
    /// The swap devices from the start on. None: a solid-state one of `swap_pages` pages and a
    /// header.
    pub devices: Vec<SwapDeviceConfig>,
    /// How slots of swap are handed out.
    pub policy: SwapPolicy,
    /// Scans anon while there are pages in the swap cache, even where no swap slot is free: these
    /// pages have slots, and once they are written they need only be found. Multi-gen LRU then also
    /// scans anon where fewer than 64 slots are free. Not of Linux, which leaves these pages and
    /// says that there is nothing to reclaim. For drivers whose writes take long: reclaim may have
    /// given slots to more pages than it needs before the first of them is free.
    pub reclaim_cache: bool,
}

impl Default for SwapConfig {
    /// A device that answers at once, as large as there can be.
    fn default() -> SwapConfig {
        SwapConfig {
            pages: MAX_SWAP_DEVICE_PAGES - 1,
            synchronous: true,
            devices: Vec::new(),
            policy: SwapPolicy::default(),
            reclaim_cache: false,
        }
    }
}

impl SwapConfig {
    /// The swap devices from the start on. A size beyond the largest device makes several devices.
    pub(crate) fn all_devices(&self) -> Vec<SwapDeviceConfig> {
        if !self.devices.is_empty() {
            return self.devices.clone();
        }
        let most = MAX_SWAP_DEVICE_PAGES - 1;
        let parts = (0..self.pages.div_ceil(most)).map(|i| most.min(self.pages - i * most));
        let device = |pages| SwapDeviceConfig { synchronous: self.synchronous, ..SwapDeviceConfig::new(pages + 1) };
        parts.map(device).collect()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        one_of(&[(self.pages < 1 << 30, "swap_pages is below 2^30 (4 TiB)")])?;
        if self.devices.len() > MAX_SWAP_DEVICES {
            return Err(format!("{} swap devices; at most {MAX_SWAP_DEVICES}", self.devices.len()));
        }
        self.devices.iter().try_for_each(SwapDeviceConfig::check)?;
        self.policy.check()
    }
}
