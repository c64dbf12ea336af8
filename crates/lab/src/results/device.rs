//! Block devices, swap devices, and memory.

use refault_mm::{SwapMap, Watermarks};

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

    /// A number of the device by its name; none: there is no such number.
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
    /// Pages managed by the buddy allocator.
    pub managed_pages: u64,
    /// Slots of swap in use at the end.
    pub swap_used_pages: u64,
    /// `vm.min_free_kbytes` in force at the end: as given, or as boot and khugepaged set it.
    pub min_free_kbytes: u64,
    /// The zones at the end.
    pub zones: Vec<ZoneResult>,
}

/// A zone of a node, as `/proc/zoneinfo` has it, in pages.
#[derive(Clone, Copy, Debug)]
pub struct ZoneResult {
    /// `DMA`, `DMA32` or `Normal`.
    pub name: &'static str,
    /// Managed by the buddy allocator.
    pub managed: u64,
    /// Free at the end.
    pub free: u64,
    /// Its watermarks.
    pub marks: Watermarks,
}

impl NodeResult {
    /// Names of its numbers beside counters and sizes.
    pub const METRICS: [&str; 6] =
        ["free_pages", "managed_pages", "min_free_kbytes", "min_pages", "low_pages", "high_pages"];

    /// One of its numbers.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        let sum = |of: fn(&Watermarks) -> u64| self.zones.iter().map(|z| of(&z.marks)).sum();
        let n: u64 = match name {
            "free_pages" => self.free_pages,
            "managed_pages" => self.managed_pages,
            "min_free_kbytes" => self.min_free_kbytes,
            "min_pages" => sum(|m| m.min),
            "low_pages" => sum(|m| m.low),
            "high_pages" => sum(|m| m.high),
            _ => return None,
        };
        Some(n as f64)
    }
}
