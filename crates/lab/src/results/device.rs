//! Block devices, swap devices, and memory.

use refault_mm::SwapMap;

use crate::device::{DeviceStats, ZramStats};

/// A block device.
#[derive(Clone, Debug)]
pub struct DeviceResult {
    /// Its name.
    pub name: String,
    /// Counters of the device.
    pub stats: DeviceStats,
    /// Pages and memory of a zram device with swap on it.
    pub zram: Option<ZramStats>,
}

/// A swap device.
#[derive(Clone, Debug)]
pub struct SwapResult {
    /// The name of the device it is on.
    pub device: String,
    /// Its clusters, and how full it is.
    pub map: SwapMap,
}

impl SwapResult {
    /// The names of its numbers.
    pub const METRICS: [&str; 5] = ["used_pages", "used_percent", "peak_pages", "peak_percent", "higher_used_percent"];

    /// One of them. None, too: there is no such number of this device.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        let d = &self.map.device;
        let percent = |pages: u64| 100.0 * pages as f64 / d.usable_pages.max(1) as f64;
        match name {
            "used_pages" => Some(d.used_pages as f64),
            "used_percent" => Some(percent(d.used_pages)),
            "peak_pages" => Some(d.peak_pages as f64),
            "peak_percent" => Some(percent(d.peak_pages)),
            // A device that was never used has 0.
            "higher_used_percent" => Some(d.higher_used_percent.unwrap_or(0.0)),
            _ => None,
        }
    }
}

/// The memory node.
#[derive(Clone, Debug, Default)]
pub struct NodeResult {
    /// Free at the end.
    pub free_pages: u64,
    /// All of it.
    pub managed_pages: u64,
    /// Slots of swap in use at the end.
    pub swap_used_pages: u64,
}
