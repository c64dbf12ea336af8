//! Statistics of memory cgroups that lag: Linux adds up what CPUs counted for a group and its
//! descendants every 2 s, and two-list reclaim and the refault tests by distance read the sums.

/// Sums over a group and its descendants as of the last flush.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlushedStats {
    /// Pages on lists.
    pub(crate) size: [u64; 5],
    /// `workingset_activate`, anon and file.
    pub(crate) activations: [u64; 2],
}
