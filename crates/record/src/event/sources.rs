//! The events of kernels that a recorder takes.

use super::{Kind, Part};

/// An event of a kernel, and what it is to a recorder.
pub(super) struct Source {
    pub(super) event: &'static str,
    pub(super) part: Part,
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
    part: Part,
    kind: Kind,
    first: &'static [&'static str],
    second: &'static [&'static str],
) -> Source {
    Source { event, part, kind, first, second, range: [""; 2] }
}

/// Fields that some kernels and machines do not have.
pub(super) const OF_SOME: &[&str] = &["order", "error_code"];

pub(super) const SOURCES: [Source; 28] = [
    source("filemap/mm_filemap_get_pages", Part::Cache, Kind::Read, &["index"], &["last_index"]),
    source("filemap/mm_filemap_add_to_page_cache", Part::Cache, Kind::Add, &["index"], OF_SOME),
    source("filemap/mm_filemap_delete_from_page_cache", Part::Cache, Kind::Delete, &["index"], OF_SOME),
    source("filemap/mm_filemap_fault", Part::Faults, Kind::Fault, &["index"], &[]),
    source("filemap/mm_filemap_map_pages", Part::Faults, Kind::Around, &["index"], &["last_index"]),
    source("exceptions/page_fault_user", Part::Faults, Kind::Address, &["address"], OF_SOME),
    source("exceptions/page_fault_kernel", Part::Faults, Kind::Address, &["address"], OF_SOME),
    source("ext4/ext4_da_write_begin", Part::Writes, Kind::Write, &["pos"], &["len"]),
    source("ext4/ext4_write_begin", Part::Writes, Kind::Write, &["pos"], &["len"]),
    source("xfs/xfs_file_buffered_write", Part::Writes, Kind::Write, &["offset"], &["count", "bytecount"]),
    source("f2fs/f2fs_write_begin", Part::Writes, Kind::Write, &["pos"], &["len"]),
    source("vmscan/mm_vmscan_memcg_reclaim_begin", Part::Reclaim, Kind::ReclaimBegin, &[], &[]),
    source("vmscan/mm_vmscan_memcg_reclaim_end", Part::Reclaim, Kind::ReclaimEnd, &[], &[]),
    source("vmscan/mm_vmscan_direct_reclaim_begin", Part::Reclaim, Kind::ReclaimBegin, &[], &[]),
    source("vmscan/mm_vmscan_direct_reclaim_end", Part::Reclaim, Kind::ReclaimEnd, &[], &[]),
    source("vmscan/mm_vmscan_node_reclaim_begin", Part::Reclaim, Kind::ReclaimBegin, &[], &[]),
    source("vmscan/mm_vmscan_node_reclaim_end", Part::Reclaim, Kind::ReclaimEnd, &[], &[]),
    source("vmscan/mm_vmscan_memcg_softlimit_reclaim_begin", Part::Reclaim, Kind::ReclaimBegin, &[], &[]),
    source("vmscan/mm_vmscan_memcg_softlimit_reclaim_end", Part::Reclaim, Kind::ReclaimEnd, &[], &[]),
    source("ext4/ext4_free_inode", Part::Deletion, Kind::Freed, &[], &[]),
    source("syscalls/sys_enter_fadvise64", Part::Advice, Kind::Advise, &["fd"], &["advice"]).of_range("offset", "len"),
    source("syscalls/sys_enter_readahead", Part::Advice, Kind::ReadAhead, &["fd"], &[]).of_range("offset", "count"),
    source("syscalls/sys_enter_madvise", Part::Advice, Kind::AdviseMemory, &["behavior"], &[])
        .of_range("start", "len_in"),
    source("ext4/ext4_sync_file_enter", Part::Syncs, Kind::Sync, &[], &[]),
    source("xfs/xfs_file_fsync", Part::Syncs, Kind::Sync, &[], &[]),
    source("f2fs/f2fs_sync_file_enter", Part::Syncs, Kind::Sync, &[], &[]),
    source("iomap/iomap_dio_rw_begin", Part::Direct, Kind::Direct, &["count"], &[]),
    source("iomap/iomap_iter", Part::Direct, Kind::DirectStep, &["flags"], &[]),
];

/// Replacements of the events that kernels before 6.12 lack: probes, in a group of a recorder's
/// own.
pub(super) const PROBED: [Source; 3] = [
    source("read", Part::Cache, Kind::Begin, &["size"], &[]).of_range("pos", "bytes"),
    source("fault", Part::Faults, Kind::Fault, &["index"], &[]),
    source("around", Part::Faults, Kind::Around, &["index"], &["last_index"]),
];
