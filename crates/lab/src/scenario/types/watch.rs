//! Changes by an administrator of the machine while it runs, and daemons that watch it.

use refault_mm::{Counter, PsiKind};

/// Settings in `/proc/sys/vm` that change. `None`: stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SysctlChanges {
    /// `vm.swappiness`.
    pub swappiness: Option<u32>,
    /// `vm.min_free_kbytes`.
    pub min_free_kbytes: Option<u64>,
    /// `vm.watermark_scale_factor`.
    pub watermark_scale_factor: Option<u32>,
    /// `vm.drop_caches`: pages of files.
    pub drop_caches: bool,
}

/// An event happens when conditions hold.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchSpec {
    /// Name of the daemon that looks; none: the conditions are the event's own.
    pub daemon: Option<&'static str>,
    /// The event comes when every condition of at least one inner list holds.
    pub any: Vec<Vec<Condition>>,
    /// Nanoseconds between two looks at the conditions.
    pub poll_ns: u64,
    /// Nanoseconds for which the conditions must have held.
    pub hold_ns: u64,
    /// Nanoseconds after the event in which it does not happen again.
    pub cooldown_ns: u64,
    /// Most times that the event happens.
    pub times: u64,
}

/// Conditions that may hold of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `MemAvailable` of `/proc/meminfo` is less.
    AvailableBelow(MemoryAmount),
    /// `memory.available` of the kubelet is less: memory less the working set, which is all but
    /// inactive pages of files.
    NodeAvailableBelow(MemoryAmount),
    /// `SwapFree` is less.
    FreeSwapBelow(MemoryAmount),
    /// An average of ten seconds of `memory.pressure` is higher, in percent.
    Avg10Above {
        /// Group, an index; `None`: the machine.
        memcg: Option<usize>,
        /// Some or full.
        kind: PsiKind,
        /// Percent.
        percent: f64,
    },
    /// Stalls since the last look are longer.
    StallAbove {
        /// Group, an index; `None`: the machine.
        memcg: Option<usize>,
        /// Some or full.
        kind: PsiKind,
        /// Stalls that are exceeded, in nanoseconds.
        ns: u64,
    },
    /// A counter of the machine rose by more since the last look.
    CounterRises {
        /// The counter.
        counter: Counter,
        /// Rise of the counter that must be exceeded.
        above: u64,
    },
}

/// An amount of memory, or a share of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryAmount {
    /// Pages.
    Pages(u64),
    /// Percent of all that there is.
    Percent(f64),
}

impl MemoryAmount {
    /// The amount in pages, of `all` pages.
    pub fn pages(self, all: u64) -> u64 {
        match self {
            MemoryAmount::Pages(pages) => pages,
            MemoryAmount::Percent(percent) => (all as f64 * percent / 100.0) as u64,
        }
    }
}

/// Whom a daemon kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The task with the highest `oom_score`, as the kernel computes it.
    OomScore,
    /// The largest of the tasks with the highest `oom_score_adj`.
    OomScoreAdj,
    /// The group that uses most memory, inactive pages of files left out.
    LargestGroup,
    /// The group that has most in swap.
    SwapGroup,
    /// The group whose pages reclaim scanned most since the last look.
    ScannedGroup,
}

impl Victim {
    /// All kinds of victims, by name.
    pub const ALL: [(&'static str, Victim); 5] = [
        ("oom-score", Victim::OomScore),
        ("oom-score-adj", Victim::OomScoreAdj),
        ("largest-group", Victim::LargestGroup),
        ("swap-group", Victim::SwapGroup),
        ("scanned-group", Victim::ScannedGroup),
    ];
}
