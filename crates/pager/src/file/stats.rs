//! Counters, content and memory of a mapped file.

use crate::control::CpuLatencyQosStats;

/// Events, counted where they happen, from the start on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileCounts {
    /// Faults served.
    pub faults: u64,
    /// Faults among them that were first writes to pages in place.
    pub dirtied: u64,
    /// Pages read.
    pub reads: u64,
    /// Calls that read them.
    pub read_calls: u64,
    /// Pages written.
    pub writes: u64,
    /// Calls that wrote them.
    pub write_calls: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Pages whose write failed: they are dirty as before.
    pub write_errors: u64,
    /// Pages that could not be had. A thread that touches one gets `SIGBUS`.
    pub lost: u64,
    /// Times that the kernel could not put a page in its place, or let it be written.
    pub fill_errors: u64,
    /// Times that the kernel could not change the protection of a page.
    pub protect_errors: u64,
    /// Faults that waited because there was no room.
    pub starved: u64,
    /// Times that there was no room and nothing to reclaim.
    pub oom: u64,
    /// Flushes that went well.
    pub flushes: u64,
    /// Orders of the engine that did not fit the state of a page: defects.
    pub inconsistent: u64,
}

/// A mapped file at a moment. Sizes are in pages of 4 KiB where the name says no other.
#[derive(Clone, Debug, Default)]
pub struct FileStats {
    /// Events so far.
    pub counts: FileCounts,
    /// `memory.max`.
    pub max_pages: u64,
    /// Pages of memory in use: for content and the pager.
    pub memory_pages: u64,
    /// The most there was at one time.
    pub peak_pages: u64,
    /// Bytes of the memory that are tables of the engine and of the pager, stacks and buffers.
    pub own_bytes: u64,
    /// Pages that were changed and not written yet.
    pub dirty_pages: u64,
    /// Pages that are being written.
    pub writeback_pages: u64,
    /// How often and how long processors were kept from halting.
    pub awake: CpuLatencyQosStats,
    /// The counters of the engine, under their kernel names.
    pub vmstat: Vec<(&'static str, u64)>,
}
