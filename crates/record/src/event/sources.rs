//! The events of kernels that a recorder takes.

use super::{Feature, Kind};

/// An event of a kernel, and what it is to a recorder.
pub(super) struct Source {
    pub(super) event: &'static str,
    pub(super) feature: Feature,
    pub(super) kind: Kind,
    /// Alternatives for the two numbers besides the inode.
    pub(super) first: &'static [&'static str],
    pub(super) second: &'static [&'static str],
    /// Where a range begins, and its length.
    pub(super) range: [&'static str; 2],
}

impl Source {
    const fn of_range(self, offset: &'static str, bytes: &'static str) -> Source {
        Source { range: [offset, bytes], ..self }
    }
}

const fn source(
    event: &'static str,
    feature: Feature,
    kind: Kind,
    first: &'static [&'static str],
    second: &'static [&'static str],
) -> Source {
    Source { event, feature, kind, first, second, range: [""; 2] }
}

/// Fields that some kernels and machines do not have.
pub(super) const OF_SOME: &[&str] = &["order", "error_code"];

pub(super) const SOURCES: [Source; 28] = [
    source("filemap/mm_filemap_get_pages", Feature::Cache, Kind::Read, &["index"], &["last_index"]),
    source("filemap/mm_filemap_add_to_page_cache", Feature::Cache, Kind::Add, &["index"], OF_SOME),
    source("filemap/mm_filemap_delete_from_page_cache", Feature::Cache, Kind::Delete, &["index"], OF_SOME),
    source("filemap/mm_filemap_fault", Feature::Faults, Kind::Fault, &["index"], &[]),
    source("filemap/mm_filemap_map_pages", Feature::Faults, Kind::Around, &["index"], &["last_index"]),
    source("exceptions/page_fault_user", Feature::Faults, Kind::Address, &["address"], OF_SOME),
    source("exceptions/page_fault_kernel", Feature::Faults, Kind::Address, &["address"], OF_SOME),
    source("ext4/ext4_da_write_begin", Feature::Writes, Kind::Write, &["pos"], &["len"]),
    source("ext4/ext4_write_begin", Feature::Writes, Kind::Write, &["pos"], &["len"]),
    source("xfs/xfs_file_buffered_write", Feature::Writes, Kind::Write, &["offset"], &["count", "bytecount"]),
    source("f2fs/f2fs_write_begin", Feature::Writes, Kind::Write, &["pos"], &["len"]),
    source("vmscan/mm_vmscan_memcg_reclaim_begin", Feature::Reclaim, Kind::ReclaimBegin, &[], &[]),
    source("vmscan/mm_vmscan_memcg_reclaim_end", Feature::Reclaim, Kind::ReclaimEnd, &[], &[]),
    source("vmscan/mm_vmscan_direct_reclaim_begin", Feature::Reclaim, Kind::ReclaimBegin, &[], &[]),
    source("vmscan/mm_vmscan_direct_reclaim_end", Feature::Reclaim, Kind::ReclaimEnd, &[], &[]),
    source("vmscan/mm_vmscan_node_reclaim_begin", Feature::Reclaim, Kind::ReclaimBegin, &[], &[]),
    source("vmscan/mm_vmscan_node_reclaim_end", Feature::Reclaim, Kind::ReclaimEnd, &[], &[]),
    source("vmscan/mm_vmscan_memcg_softlimit_reclaim_begin", Feature::Reclaim, Kind::ReclaimBegin, &[], &[]),
    source("vmscan/mm_vmscan_memcg_softlimit_reclaim_end", Feature::Reclaim, Kind::ReclaimEnd, &[], &[]),
    source("ext4/ext4_free_inode", Feature::Deletion, Kind::Freed, &[], &[]),
    source("syscalls/sys_enter_fadvise64", Feature::Advice, Kind::Advise, &["fd"], &["advice"])
        .of_range("offset", "len"),
    source("syscalls/sys_enter_readahead", Feature::Advice, Kind::ReadAhead, &["fd"], &[]).of_range("offset", "count"),
    source("syscalls/sys_enter_madvise", Feature::Advice, Kind::AdviseMemory, &["behavior"], &[])
        .of_range("start", "len_in"),
    source("ext4/ext4_sync_file_enter", Feature::Syncs, Kind::Sync, &[], &[]),
    source("xfs/xfs_file_fsync", Feature::Syncs, Kind::Sync, &[], &[]),
    source("f2fs/f2fs_sync_file_enter", Feature::Syncs, Kind::Sync, &[], &[]),
    source("iomap/iomap_dio_rw_begin", Feature::Direct, Kind::Direct, &["count"], &[]),
    source("iomap/iomap_iter", Feature::Direct, Kind::DirectStep, &["flags"], &[]),
];

/// Replacements of the events that kernels before 6.12 lack: probes, in a group of a recorder's
/// own.
pub(super) const PROBED: [Source; 3] = [
    source("read", Feature::Cache, Kind::Begin, &["size"], &[]).of_range("pos", "bytes"),
    source("fault", Feature::Faults, Kind::Fault, &["index"], &[]),
    source("around", Feature::Faults, Kind::Around, &["index"], &["last_index"]),
];
