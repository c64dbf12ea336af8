//! Memory cgroups, and what an administrator does to them.

use super::watch::{SysctlChanges, Victim, WatchSpec};
use refault_mm::{CacheExtPolicy, MemcgLimits};

/// A memory cgroup.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcgSpec {
    /// Path of the group, such as `/a/b`.
    pub path: String,
    /// Parent group, an index smaller than the group's own; `None`: the root.
    pub parent: Option<usize>,
    /// Limits that can be set.
    pub limits: MemcgLimits,
    /// The group does not exist before an event makes it.
    pub made_by_event: bool,
    /// Policy of the group for file pages; `None`: the policy of the machine.
    pub cache_ext: Option<CacheExtPolicy>,
}

/// Event that an administrator causes while the machine runs.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSpec {
    /// When the event happens; with `after`, nanoseconds after the end of that task.
    pub at_ns: u64,
    /// The task (an index) whose copies must all have ended before; `None`: no task.
    pub after: Option<usize>,
    /// Conditions under which the event happens, from `at_ns` on.
    pub watch: Option<WatchSpec>,
    /// Action of the event.
    pub action: EventAction,
}

/// One thing that an administrator does.
#[derive(Clone, Debug, PartialEq)]
pub enum EventAction {
    /// A group (an index) is made, with the limits that are its own.
    Create(usize),
    /// Limits of a group (an index) change.
    Set {
        /// The group.
        memcg: usize,
        /// The new limits.
        limits: LimitChanges,
    },
    /// A task (an index) moves to another group.
    Move {
        /// The task, every copy of it.
        task: usize,
        /// The group, an index; `None`: the root.
        to: Option<usize>,
        /// Memory charged for it moves along.
        charges: bool,
    },
    /// A group (an index) without tasks and children is removed.
    Remove(usize),
    /// Files in `/proc/sys/vm` are written.
    Sysctl(SysctlChanges),
    /// A swap device (an index) is switched on.
    Swapon(usize),
    /// A swap device (an index) is switched off: everything on it comes back to memory.
    Swapoff(usize),
    /// Pages of memory that are added.
    AddMemory(u64),
    /// A program kills a task or the tasks of a group.
    Kill {
        /// The group (an index) in whose subtree the victim is; `None`: the root.
        within: Option<usize>,
        /// Choice of the victim.
        victim: Victim,
    },
    /// `memory.reclaim`.
    Reclaim {
        /// The group, an index; `None`: the root.
        memcg: Option<usize>,
        /// Pages that are asked back.
        pages: u64,
        /// Instead of that of the groups.
        swappiness: Option<u32>,
        /// Nanoseconds from the start of one request to the next; `None`: it is made once.
        every_ns: Option<u64>,
        /// Up to that time of the scenario.
        until_ns: Option<u64>,
    },
}

/// Limits of a group that change. `None`: stays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LimitChanges {
    /// `memory.min`.
    pub min: Option<u64>,
    /// `memory.low`.
    pub low: Option<u64>,
    /// `memory.high`.
    pub high: Option<u64>,
    /// `memory.max`.
    pub max: Option<u64>,
    /// `memory.swap.high`.
    pub swap_high: Option<u64>,
    /// `memory.swap.max`.
    pub swap_max: Option<u64>,
    /// `memory.zswap.max`.
    pub zswap_max: Option<u64>,
    /// `memory.zswap.writeback`.
    pub zswap_writeback: Option<bool>,
    /// Its own swappiness.
    pub swappiness: Option<u32>,
    /// `memory.oom.group`.
    pub oom_group: Option<bool>,
}

impl LimitChanges {
    /// Limits with these changes.
    pub fn applied_to(&self, limits: &MemcgLimits) -> MemcgLimits {
        MemcgLimits {
            min: self.min.unwrap_or(limits.min),
            low: self.low.unwrap_or(limits.low),
            high: self.high.unwrap_or(limits.high),
            max: self.max.unwrap_or(limits.max),
            swap_high: self.swap_high.unwrap_or(limits.swap_high),
            swap_max: self.swap_max.unwrap_or(limits.swap_max),
            zswap_max: self.zswap_max.unwrap_or(limits.zswap_max),
            zswap_writeback: self.zswap_writeback.unwrap_or(limits.zswap_writeback),
            swappiness: self.swappiness.or(limits.swappiness),
            oom_group: self.oom_group.unwrap_or(limits.oom_group),
        }
    }
}
