//! What can be chosen about memory cgroups.

use super::one_of;
/// How multi-gen LRU chooses among memory cgroups when the whole machine needs memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemcgSelection {
    /// All of them at each priority, and each is aged that needs it: before "optimize multiple
    /// memcgs".
    Iterate,
    /// The first form of that series (Linux 6.1): easy pages anywhere before aging and swapping
    /// anywhere.
    First,
    /// Generations of groups (Linux 6.12).
    MemcgLru,
}

/// When the first condition of [`MemcgSelection::First`] to leave a group holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backoff {
    /// At any priority (the code of Linux 6.1).
    AnyPriority,
    /// At low priorities, 12 and 11 (the text of the series).
    LowPriorities,
}

/// Memory cgroups.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcgConfig {
    /// Multi-gen LRU: whose turn it is when the whole machine needs memory.
    pub selection: MemcgSelection,
    /// With [`MemcgSelection::First`].
    pub backoff: Backoff,
    /// Pages charged ahead; 64 in Linux.
    pub charge_batch: u64,
    /// Tree nodes and page tables are charged to the memcg, as Linux does.
    pub charge_kernel: bool,
    /// Pages charged to the memcg by what the engine does not see (the task's own stack, libraries,
    /// …).
    pub reserved_pages: u64,
    /// What a group's `min` and `low` leave unclaimed goes to its descendants (the mount option
    /// `memory_recursiveprot`, which systemd sets).
    pub recursive_protection: bool,
}

impl Default for MemcgConfig {
    /// As the kernel has it.
    fn default() -> MemcgConfig {
        MemcgConfig {
            selection: MemcgSelection::MemcgLru,
            backoff: Backoff::AnyPriority,
            charge_batch: 64,
            charge_kernel: true,
            reserved_pages: 0,
            recursive_protection: true,
        }
    }
}

impl MemcgConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        one_of(&[
            (self.charge_batch >= 1, "charge_batch is at least 1"),
            (self.charge_batch <= 1 << 32, "charge_batch is at most 2^32"),
            (self.reserved_pages <= 1 << 40, "reserved_pages is at most 2^40"),
        ])
    }
}
