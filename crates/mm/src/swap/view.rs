//! View of a device: how much is used, and how fragmented it is.

use super::Swap;
use super::cluster::{Flag, NR_ORDERS};
use super::device::Device;
use super::map::{BAD, HAS_CACHE};

/// A swap device as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct SwapDeviceInfo {
    /// Its number, as in the slots on it.
    pub number: u8,
    /// The priority it was given or got.
    pub priority: i32,
    /// Size in pages, unusable ones included.
    pub pages: u64,
    /// Slots that can be used.
    pub usable_pages: u64,
    /// Slots in use.
    pub used_pages: u64,
    /// Most slots that were in use at once.
    pub peak_pages: u64,
    /// Percent of slots that were in use on devices of higher priority when this device first
    /// handed out slots. None: it has handed out none, or no device has a higher priority.
    pub higher_used_percent: Option<f64>,
    /// The device is being removed (swapoff).
    pub removing: bool,
}

/// The list on which a cluster stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwapList {
    /// No slot of it is used.
    Free,
    /// Used in part, by folios of an order.
    Nonfull(u8),
    /// Used in part, and scanned in vain or in part.
    Frag(u8),
    /// All of it is used.
    Full,
    /// Waits to be discarded, or is being discarded.
    Discard,
}

/// One cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapCluster {
    /// The list on which it stands.
    pub list: SwapList,
    /// Slots that are not free.
    pub used: u16,
    /// Slots among `used` that only the swap cache or a slot cache holds.
    pub cache_only: u16,
    /// Slots among `used` that cannot be used.
    pub bad: u16,
}

/// The clusters of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct SwapMap {
    /// The device.
    pub device: SwapDeviceInfo,
    /// Slots of a cluster.
    pub cluster_pages: u32,
    /// Whether the clusters stand on lists; else slots are found by scanning the map.
    pub has_lists: bool,
    /// The clusters in their order on the device, up to the last that was ever used.
    pub clusters: Vec<SwapCluster>,
    /// Clusters behind the ones in `clusters`: all free.
    pub untouched: u32,
    /// By order: free, aligned places for a folio of 2^order slots.
    pub free_places: [u64; NR_ORDERS],
}

impl SwapMap {
    /// Clusters by list: free, nonfull of orders 0 to 9, frag of orders 0 to 9, full, discard.
    pub fn lists(&self) -> Vec<(SwapList, u64)> {
        let orders = || 0..NR_ORDERS as u8;
        let all =
            [SwapList::Free].into_iter().chain(orders().map(SwapList::Nonfull)).chain(orders().map(SwapList::Frag));
        let all = all.chain([SwapList::Full, SwapList::Discard]);
        let untouched = |l: SwapList| if l == SwapList::Free { u64::from(self.untouched) } else { 0 };
        let count = |l: SwapList| self.clusters.iter().filter(|c| c.list == l).count() as u64;
        all.map(|l| (l, count(l) + untouched(l))).collect()
    }

    /// Clusters by the share of their slots in use: none, then by eighths; full clusters are in the
    /// last class.
    pub fn usage_histogram(&self) -> [u64; 9] {
        let mut all = [0; 9];
        all[0] = u64::from(self.untouched);
        for c in &self.clusters {
            all[(u32::from(c.used) * 8).div_ceil(self.cluster_pages) as usize] += 1;
        }
        all
    }
}

impl Swap {
    /// All devices, by number.
    pub(crate) fn infos(&self) -> Vec<SwapDeviceInfo> {
        self.devices.iter().flatten().map(Device::info).collect()
    }

    /// The clusters of all devices.
    pub(crate) fn maps(&self) -> Vec<SwapMap> {
        self.devices.iter().flatten().map(|d| d.view(d.has_clusters(&self.common.policy))).collect()
    }
}

impl Device {
    fn info(&self) -> SwapDeviceInfo {
        SwapDeviceInfo {
            number: self.number,
            priority: self.priority,
            pages: self.cfg.pages,
            usable_pages: u64::from(self.usable),
            used_pages: u64::from(self.inuse),
            peak_pages: u64::from(self.peak),
            higher_used_percent: self.first_use.filter(|u| u.1 > 0).map(|u| 100.0 * u.0 as f64 / u.1 as f64),
            removing: !self.writable,
        }
    }

    fn view(&self, has_lists: bool) -> SwapMap {
        let touched = self.clusters.touched();
        let untouched = self.clusters.len() - touched;
        let orders = 0..=self.clusters.shift().min(NR_ORDERS as u32 - 1);
        let mut free_places = [0; NR_ORDERS];
        for order in orders.clone() {
            free_places[order as usize] = u64::from(untouched) << (self.clusters.shift() - order);
        }
        let clusters = (0..touched).map(|c| {
            for order in orders.clone() {
                free_places[order as usize] += self.free_windows(c, order);
            }
            self.view_cluster(c)
        });
        let clusters = clusters.collect();
        let (device, cluster_pages) = (self.info(), self.clusters.pages());
        SwapMap { device, cluster_pages, has_lists, clusters, untouched, free_places }
    }

    fn free_windows(&self, c: u32, order: u32) -> u64 {
        let pages = self.clusters.pages() as usize;
        match &self.clusters.get(c).slots {
            None => (pages >> order) as u64,
            Some(s) => {
                s.map[..pages].chunks_exact(1 << order).filter(|window| window.iter().all(|&b| b == 0)).count() as u64
            }
        }
    }

    fn view_cluster(&self, c: u32) -> SwapCluster {
        let cluster = self.clusters.get(c);
        let pages = self.clusters.pages() as usize;
        let list = match cluster.flag {
            Flag::None => SwapList::Discard,
            Flag::Free => SwapList::Free,
            Flag::Nonfull => SwapList::Nonfull(cluster.order),
            Flag::Frag => SwapList::Frag(cluster.order),
            Flag::Full => SwapList::Full,
        };
        // All of what waits to be discarded is marked bad.
        let slots = cluster.slots.as_ref().filter(|_| cluster.flag != Flag::None);
        let count = |byte: u8| slots.map_or(0, |s| s.map[..pages].iter().filter(|&&b| b == byte).count() as u16);
        SwapCluster { list, used: cluster.count, cache_only: count(HAS_CACHE), bad: count(BAD) }
    }
}
