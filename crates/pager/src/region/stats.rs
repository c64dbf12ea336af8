//! Counters, content and memory of a region.

use crate::control::{CpuLatencyQosStats, SampleStats};
use refault_mm::{MemcgEvents, SizeStats};

use super::Limits;
pub use crate::core::Counts;
use crate::store::AreaStats;

/// A region at a moment. Sizes are in pages of 4 KiB where the name says no other.
#[derive(Clone, Debug, Default)]
pub struct RegionStats {
    /// Events so far.
    pub counts: Counts,
    /// The limits as they are, in bytes.
    pub limits: Limits,
    /// `memory.max`, in pages.
    pub max_pages: u64,
    /// Pages of memory in use: for content, the pool and the pager.
    pub memory_pages: u64,
    /// Most pages that there were at one time.
    pub peak_pages: u64,
    /// Pages of the memory that the pool and the pager use.
    pub overhead_pages: u64,
    /// Bytes of the overhead that are tables of the engine and of the pager, stacks and buffers.
    pub own_bytes: u64,
    /// Bytes of the overhead that the store takes: compressed pages and tables.
    pub store_bytes: u64,
    /// Pages in staging places.
    pub staged_pages: u64,
    /// Pages of the region that are out of memory or on their way: what `swap_max` limits.
    pub swap_pages: u64,
    /// `memory.events` and `memory.swap.events`.
    pub events: MemcgEvents,
    /// The swap area.
    pub area: AreaStats,
    /// How often, and how long, processors were kept from halting.
    pub awake: CpuLatencyQosStats,
    /// Access sampling.
    pub samples: SampleStats,
    /// Counters of the sizes of folios: `hugepages-<size>kB/stats`.
    pub sizes: SizeStats,
    /// The counters of the engine, under their kernel names.
    pub vmstat: Vec<(&'static str, u64)>,
}
