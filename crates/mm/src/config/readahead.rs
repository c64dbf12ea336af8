//! Pages that are read, and mapped, beyond those that were asked for.

use super::one_of;
use crate::ids::MAX_ORDER;

/// How the order of the folios that readahead makes grows from window to window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderGrowth {
    /// By two over the order of the folio with the mark: the first window of a file has folios of
    /// four pages. Linux 5.18 to 6.12.
    ByMark,
    /// By two over the order that the open file keeps: the first window has single pages; each
    /// window that a mark opens has an order of two more, and ends where a folio of that order
    /// would. Linux 6.18.
    ByFile,
}

/// Pages by which a fault on a mapped file lowers `mmap_miss` of the open file, the count of faults
/// that had to read. A high count ends reading around faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MmapMissDecrease {
    /// Each page that fault-around finds in its window; again when a fault that had to read begins
    /// anew. Before Linux 6.10.
    All,
    /// Each page that fault-around finds, unless it was evicted from the working set before. Linux
    /// 6.10 to 7.1.
    NotWorkingset,
    /// The page of the fault alone, and only if it was there when the fault began. Linux 7.2.
    FaultedPage,
}

/// Reading ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadaheadConfig {
    /// `page_cluster`: a swap-in from a queueing device reads up to 2^page_cluster pages; 3 in
    /// Linux, 0 = one.
    pub page_cluster: u32,
    /// Whether the driver maps pages that were read ahead at once, whatever the device: then no
    /// fault on them tells whether they were of use, so a window grows by a run of faults, each
    /// where the last window ended. Not of Linux, where such pages wait in the swap cache.
    pub swap_map_ahead: bool,
    /// `read_ahead_kb`, in pages: the largest window of a sequential read; 32 in Linux, 0 = off.
    pub file_pages: u32,
    /// Whether reads go by the page cache, as in Linux. A miss that does not go on where the last
    /// read ended counts the pages in memory in front of it: a stream leaves them behind, so they
    /// are worth a window. The mark of the next window is a flag of a page and not of the open
    /// file, so that streams may take turns. Otherwise a file is read by one stream or at random.
    pub history: bool,
    /// Whether runs of faults on files read ahead, up to `read_ahead_pages`. Linux reads around
    /// every fault instead, and maps what it finds in the cache, so that later faults are cheap. A
    /// driver without cheap faults had better read only what is needed.
    pub file_map_ahead: bool,
    /// Largest order of a folio of a file, where the driver sets none for the file; 0: each page is
    /// a folio. Only windows of `history` and writes of several pages make large folios.
    pub file_order: u8,
    /// Growth of the order of files' folios.
    pub order_growth: OrderGrowth,
    /// Pages by which a fault lowers the misses of a mapped file.
    pub mmap_hits: MmapMissDecrease,
}

impl Default for ReadaheadConfig {
    /// As the kernel has it.
    fn default() -> ReadaheadConfig {
        ReadaheadConfig {
            page_cluster: 3,
            swap_map_ahead: false,
            file_pages: 32,
            history: false,
            file_map_ahead: false,
            file_order: 0,
            order_growth: OrderGrowth::ByMark,
            mmap_hits: MmapMissDecrease::NotWorkingset,
        }
    }
}

impl ReadaheadConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        one_of(&[
            (self.page_cluster <= 9, "page_cluster is 0 to 9"),
            (self.file_pages <= 1 << 16, "read_ahead_pages is at most 65536"),
            (self.file_order <= MAX_ORDER, "large_folios is at most 9"),
        ])
    }
}

/// Pages that a fault by mapping maps around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultAroundConfig {
    /// Pages mapped around a file fault, a power of two; 16 (64 KiB) in Linux, 1 = off.
    pub pages: u64,
    /// Neighbours of a mapped fault, and the page itself, start with the accessed bit set (x86).
    /// Off on some ARM.
    pub young: bool,
}

impl Default for FaultAroundConfig {
    /// As the kernel has it, on x86.
    fn default() -> FaultAroundConfig {
        FaultAroundConfig { pages: 16, young: true }
    }
}

impl FaultAroundConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        one_of(&[(self.pages.is_power_of_two() && self.pages <= 512, "fault_around_pages is a power of two up to 512")])
    }
}
