//! When dirty pages of files are written.

use super::one_of;
/// When dirty pages of files are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirtyConfig {
    /// Share of the cache that may be dirty before the flusher starts, in percent; 10 in Linux.
    pub background_ratio: u64,
    /// Share of the cache that may be dirty before tasks that write have to wait, in percent; 20 in
    /// Linux.
    pub ratio: u64,
    /// `dirty_expire_centisecs`, in nanoseconds: the age from which on dirty pages are written by
    /// [`crate::Engine::flush_expired`]; 30 s in Linux.
    pub expire_ns: u64,
    /// Whether a group's own dirty pages are looked at, beside those of the machine (cgroup
    /// writeback): memory cgroups of version 1 have none.
    pub cgroup_writeback: bool,
    /// Where groups have no dirty limit of their own, reclaim that met nothing but dirty pages
    /// waits for the flusher that it has woken; else the group is out of memory.
    pub waits_for_flusher: bool,
    /// `dirty_writeback_centisecs`, in nanoseconds: interval at which the flusher looks for old
    /// dirty pages; 5 s in Linux.
    pub writeback_ns: u64,
}

impl Default for DirtyConfig {
    /// As the kernel has it.
    fn default() -> DirtyConfig {
        DirtyConfig {
            background_ratio: 10,
            ratio: 20,
            expire_ns: 30_000_000_000,
            cgroup_writeback: true,
            waits_for_flusher: true,
            writeback_ns: 5_000_000_000,
        }
    }
}

impl DirtyConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        one_of(&[
            (self.background_ratio <= 100, "dirty_background_ratio is 0 to 100"),
            (self.ratio <= 100, "dirty_ratio is 0 to 100"),
        ])
    }
}
