//! Memory tiers: which nodes are fast, where pages go when they leave one, and when they come back.
//!
//! This module decides and keeps count; it holds no page and moves none. Time comes in as a number,
//! properties of a page as plain values, and the action goes out as a value. So each rule can be
//! read, and tested, alone:
//!
//! | file | idea |
//! |---|---|
//! | `perf` | what a node of memory can do, presets, abstract distance |
//! | `topology` | tiers, the top tier, demotion targets |
//! | `stamp` | when a page was marked, in a few bits |
//! | `cadence` | when a task marks pages, and how many |
//! | `limit`, `threshold` | promotions a second, and how fast a page must be touched to be one |
//! | `promotion` | the policies: decisions on hint faults |
//! | `sysctl` | what can be set, under the names that Linux gives it |
//!
//! Mechanism: `docs/mechanisms.md#memory-tiers`.

mod cadence;
mod limit;
mod perf;
mod promotion;
#[cfg(test)]
mod props;
mod stamp;
mod sysctl;
mod threshold;
mod topology;

pub use cadence::{MmScan, PteRange, ScanPeriod, TaskScan};
pub use limit::RateLimit;
pub use perf::{NodePerf, NodePreset};
pub use promotion::{HintAction, HintFault, Promoter, PromotionPolicy, PromotionStats, Rejection, free_space_enough};
pub use stamp::{Stamp, StampClock};
pub use sysctl::{NUMA_BALANCING_MEMORY_TIERING, NUMA_BALANCING_NORMAL, TieringConfig};
pub use threshold::HotThreshold;
pub use topology::{NodeTier, Tiers};
