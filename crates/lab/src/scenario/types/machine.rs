//! The machine: CPUs, memory, settings of the kernel, devices and swap.

use std::collections::{BTreeMap, BTreeSet};

use refault_mm::tiering::{NodePerf, NodePreset};
use refault_mm::{NodeConfig, ThpConfig};

use crate::contention::ContentionSpec;

/// CPUs, memory and the settings of the kernel.
///
/// Defaults are those of Linux, under every profile of a kernel:
///
/// | setting | default | Linux | elsewhere |
/// |---|---|---|---|
/// | `per_cpu_lists` | on | always; bounds that grow with use since 6.7 | off on a divided machine that does not say it: a batch would stand for so much more memory |
/// | `page_blocks`, `watermark_boost_factor` | on, 15,000 | always; the boost since 5.0 | blocks are off on a divided machine, too |
/// | `buffer_heads` | on | ext4 and others; XFS has none | |
/// | `tick_ns` | 4 ms | `CONFIG_HZ=250`; Debian, Ubuntu | off on a divided machine with nodes (`pmbench`, `mysql-tiering`): time is divided and ticks are not, so that kswapd would wait that many times as long |
/// | `read_ahead_history` | on | since 2.6.31 | off is kept for one benchmark, GETs beside scans of cache_ext |
/// | `dirty_expire_ns`, `dirty_writeback_ns` | 30 s, 5 s | the same | |
/// | `dirty_background_ratio`, `dirty_ratio` | 10, 20 | the same | |
/// | `swappiness`, `page_cluster`, `read_ahead_pages` | 60, 3, 32 | the same | |
/// | `watermark_scale_factor`, `min_free_kbytes` | 10, as boot sets it | the same | |
/// | `stat_flush_interval_ns` | 2 s | the same; exact before 5.13 for a memory cgroup that is reclaimed | exact under profiles before 6.12 |
/// | `min_ttl_ns`, `thp` | off | off; as the distribution configures | |
/// | `file_order` | single pages | by file system: XFS since 5.18, ext4 since 6.16 | |
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSpec {
    /// CPUs.
    pub cpus: u32,
    /// Memory, all of it.
    pub memory_pages: u64,
    /// Pages among them that are taken by things that are never reclaimed.
    pub kernel_pages: u64,
    /// Pages of memory in the zone DMA; never more than an eighth.
    pub dma_pages: u64,
    /// Pages of the rest in the zone DMA32.
    pub dma32_pages: u64,
    /// Pages of memory that boot gave back when reserves of zones had been computed.
    pub init_pages: u64,
    /// CPUs keep free pages for themselves, many at a time.
    pub per_cpu_lists: bool,
    /// Free pages are of kinds, by page blocks.
    pub page_blocks: bool,
    /// `watermark_boost_factor`.
    pub watermark_boost_factor: u32,
    /// File systems keep buffer heads of written pages.
    pub buffer_heads: bool,
    /// Nanoseconds that a task keeps a CPU while others wait.
    pub quantum_ns: u64,
    /// Nanoseconds from one timer tick to the next; 0: a task gives way after each quantum.
    pub tick_ns: u64,
    /// `vm.swappiness`.
    pub swappiness: u32,
    /// `vm.min_free_kbytes`; `None`: as boot sets it, [`MachineSpec::min_free_kbytes`].
    pub min_free_kbytes: Option<u64>,
    /// `vm.watermark_scale_factor`.
    pub watermark_scale_factor: u32,
    /// `vm.page_cluster`: swap readahead of up to 2^this pages.
    pub page_cluster: u32,
    /// `read_ahead_kb` of every device; 0: none.
    pub read_ahead_pages: u32,
    /// Windows of readahead by what is in the page cache, as Linux does; else by the reader alone.
    pub read_ahead_history: bool,
    /// `vm.dirty_background_ratio`.
    pub dirty_background_ratio: u64,
    /// `vm.dirty_ratio`.
    pub dirty_ratio: u64,
    /// `dirty_expire_centisecs`; 0: nothing is written for its age.
    pub dirty_expire_ns: u64,
    /// `dirty_writeback_centisecs`.
    pub dirty_writeback_ns: u64,
    /// Whether groups have shares of their own of what may be dirty.
    pub cgroup_writeback: bool,
    /// The largest order of a folio of a file.
    pub file_order: u8,
    /// `lru_gen/min_ttl_ms`; 0: off.
    pub min_ttl_ns: u64,
    /// `transparent_hugepage`: the sizes of anonymous folios.
    pub thp: ThpConfig,
    /// The mount option `memory_recursiveprot` of cgroups.
    pub recursive_protection: bool,
    /// Nanoseconds between two flushes of the statistics of groups; 0: statistics are exact.
    pub stat_flush_interval_ns: u64,
    /// Keys that the scenario sets itself and whose default depends on something else: statistics
    /// are exact under kernels that add them up before they reclaim, kernels have large swap-in or
    /// not, and a divided machine has no per-CPU lists and no page blocks.
    pub given: BTreeSet<&'static str>,
    /// CPU costs that are not the default, by name, in nanoseconds.
    pub costs: BTreeMap<String, u64>,
    /// Constants of locks and interrupts between CPUs; `None`: CPUs do not wait for each other.
    pub contention: Option<ContentionSpec>,
    /// Nodes of memory with latency and bandwidth; `memory_pages` and `cpus` are sums over the
    /// nodes. Empty: one node, and all accesses cost the same.
    pub nodes: Vec<NodeSpec>,
    /// Factor by which sizes and times were divided ([`scale`](crate::scenario::Scenario::scale)),
    /// for the periods of tiering.
    pub scale: u64,
}

impl Default for MachineSpec {
    /// A 64-bit PC, with the memory yet to be said.
    fn default() -> MachineSpec {
        MachineSpec {
            cpus: 1,
            memory_pages: 0,
            kernel_pages: 0,
            dma_pages: NodeConfig::PC_ZONES[0],
            dma32_pages: NodeConfig::PC_ZONES[1],
            init_pages: 0,
            per_cpu_lists: true,
            page_blocks: true,
            watermark_boost_factor: 15_000,
            buffer_heads: true,
            quantum_ns: 50_000,
            tick_ns: 4_000_000,
            swappiness: 60,
            min_free_kbytes: None,
            watermark_scale_factor: 10,
            page_cluster: 3,
            read_ahead_pages: 32,
            read_ahead_history: true,
            dirty_background_ratio: 10,
            dirty_ratio: 20,
            dirty_expire_ns: 30_000_000_000,
            dirty_writeback_ns: 5_000_000_000,
            cgroup_writeback: true,
            file_order: 0,
            min_ttl_ns: 0,
            thp: ThpConfig::default(),
            recursive_protection: true,
            stat_flush_interval_ns: 2_000_000_000,
            given: BTreeSet::new(),
            costs: BTreeMap::new(),
            contention: None,
            nodes: Vec::new(),
            scale: 1,
        }
    }
}

impl MachineSpec {
    /// `vm.min_free_kbytes` as given, or as boot sets it: by the formula, raised by khugepaged
    /// where huge pages are on.
    pub fn min_free_kbytes(&self) -> u64 {
        let by_formula = (16 * self.memory_pages * 4).isqrt().clamp(128, 262_144);
        let raised = NodeConfig {
            khugepaged: true,
            low_zones: [self.dma_pages, self.dma32_pages],
            ..NodeConfig::new(self.memory_pages)
        };
        self.min_free_kbytes.unwrap_or(match self.thp.runs_khugepaged() {
            true => raised.min_mark_pages() * 4,
            false => by_formula,
        })
    }
}

/// A node of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Its size.
    pub pages: u64,
    /// Preset of the node: its kind of memory.
    pub preset: NodePreset,
    /// The figures of the preset, or what the scenario says.
    pub perf: NodePerf,
    /// CPUs on it.
    pub cpus: u32,
}

/// A block device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// Its name.
    pub name: String,
    /// Kind of device: one of [`PRESETS`].
    pub preset: String,
    /// Differences from the preset.
    pub overrides: DeviceOverrides,
}

/// The presets of devices.
pub const PRESETS: [&str; 6] = ["hdd", "sata-ssd", "nvme", "ramdisk", "zram", "pmem"];

/// Differences from a preset. `None`: as the preset has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceOverrides {
    /// Requests that are served at once.
    pub channels: Option<u32>,
    /// Requests under way, waiting ones included, from which on a thread that swaps out must wait.
    pub queue: Option<u32>,
    /// Nanoseconds of a read beside the transfer.
    pub read_latency_ns: Option<u64>,
    /// Bandwidth of reads.
    pub read_bytes_per_s: Option<u64>,
    /// Time of a write beside the transfer.
    pub write_latency_ns: Option<u64>,
    /// Bandwidth of writes.
    pub write_bytes_per_s: Option<u64>,
    /// Average seek (hdd).
    pub seek_average_ns: Option<u64>,
    /// Seek to the next track (hdd).
    pub seek_track_ns: Option<u64>,
    /// Revolutions a minute (hdd).
    pub rpm: Option<u32>,
    /// The largest request.
    pub max_request_pages: Option<u32>,
    /// Bytes of a page over bytes that it is compressed to (zram).
    pub compression_ratio: Option<f64>,
    /// The most memory that it takes (zram).
    pub mem_limit_pages: Option<u64>,
    /// Time to compress a page (zram).
    pub compress_ns: Option<u64>,
    /// Time to decompress a page (zram).
    pub decompress_ns: Option<u64>,
    /// Reads that fail, of a million.
    pub read_error_per_million: Option<u32>,
    /// Writes that fail, of a million.
    pub write_error_per_million: Option<u32>,
    /// Requests that take longer, of a million.
    pub spike_per_million: Option<u32>,
    /// Nanoseconds by which requests with a latency spike take longer.
    pub spike_ns: Option<u64>,
    /// When the device stops answering.
    pub stuck_at_ns: Option<u64>,
    /// For how long.
    pub stuck_for_ns: Option<u64>,
}

/// A swap device.
#[derive(Clone, Debug, PartialEq)]
pub struct SwapSpec {
    /// The device, an index.
    pub device: usize,
    /// Its size, at most 2^28, the header included.
    pub pages: u64,
    /// Priority of the device; none: below devices with a priority, and below the devices before
    /// it.
    pub priority: Option<i16>,
    /// Clusters that became empty are discarded before they are used again.
    pub discard: bool,
    /// Slots are handed out in sequence.
    pub rotational: bool,
    /// Whether the device is a swap file, which takes no large folios.
    pub file: bool,
    /// Whether the device is on from the start; otherwise an event switches it on.
    pub enabled: bool,
    /// Numbers of pages that cannot be used.
    pub bad_pages: Vec<u64>,
}
