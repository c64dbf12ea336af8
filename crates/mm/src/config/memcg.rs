//! Choices about memory cgroups.

use super::one_of;
/// How multi-gen LRU chooses among memory cgroups when the whole machine needs memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemcgSelection {
    /// All groups at each priority; each is aged if it needs that: before "optimize multiple
    /// memcgs".
    Iterate,
    /// The first form of "optimize multiple memcgs" (Linux 6.1): easy pages of any group before
    /// aging and swapping in any.
    First,
    /// Generations of groups (since Linux 6.3).
    MemcgLru,
}

/// Priorities at which [`MemcgSelection::First`] may leave a group by its first condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backoff {
    /// At any priority (the code of Linux 6.1).
    AnyPriority,
    /// At low priorities, 12 and 11 (the text of the series).
    LowPriorities,
    /// Neither of the two conditions of Linux 6.1. A group is left when a batch of it was swapped
    /// while kswapd avoids swapping, because another group has something easier, unless swappiness
    /// is 200 (version 14 of the series, August 2022).
    AvoidSwapping,
}

/// Groups that a run of reclaim visits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemcgWalk {
    /// Groups until the target is met; the next run goes on behind the last one (since Linux 6.11).
    Incremental,
    /// All groups at every priority.
    Whole,
}

/// Memory cgroups.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcgConfig {
    /// Choice of multi-gen LRU among groups when the whole machine needs memory.
    pub selection: MemcgSelection,
    /// With [`MemcgSelection::First`]: when a run leaves a group.
    pub backoff: Backoff,
    /// With [`MemcgSelection::First`] and [`MemcgSelection::Iterate`]: a group that has given what
    /// the run aims at is scanned as at the lowest priority from then on (version 14 of the
    /// series).
    pub target_lowers_priority: bool,
    /// With [`MemcgSelection::MemcgLru`]: kswapd stops as soon as every zone is safe ("try to stop
    /// at high watermarks", Linux 6.7 and 6.6.8).
    pub stop_at_high_mark: bool,
    /// Groups that a run visits, where multi-gen LRU does not choose among them.
    pub walk: MemcgWalk,
    /// Pages in memory of a removed group go to its parent at once ("Eliminate Dying Memory
    /// Cgroup", since Linux 7.1), and do not stay charged to it until they are reclaimed.
    pub lru_reparent: bool,
    /// Pages that are charged ahead at a time; 64 in Linux.
    pub charge_batch: u64,
    /// Groups for which a CPU keeps pages charged ahead; 7 since Linux 6.16.
    pub charge_stocks: u64,
    /// Tree nodes and page tables are charged to the memcg, as Linux does.
    pub charge_kernel: bool,
    /// Pages charged to the memcg by what the engine does not see (the task's own stack, libraries,
    /// …).
    pub reserved_pages: u64,
    /// Protection that a group's `min` and `low` leave unclaimed goes to its descendants (the mount
    /// option `memory_recursiveprot`, which systemd sets).
    pub recursive_protection: bool,
}

impl Default for MemcgConfig {
    /// As the kernel has it.
    fn default() -> MemcgConfig {
        MemcgConfig {
            selection: MemcgSelection::MemcgLru,
            backoff: Backoff::AnyPriority,
            target_lowers_priority: false,
            stop_at_high_mark: true,
            walk: MemcgWalk::Incremental,
            lru_reparent: false,
            charge_batch: 64,
            charge_stocks: 1,
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
            ((1..=1 << 16).contains(&self.charge_stocks), "charge_stocks is 1 to 65536"),
            (self.reserved_pages <= 1 << 40, "reserved_pages is at most 2^40"),
        ])
    }
}
