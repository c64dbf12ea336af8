//! A recording of a kernel on the engine: compared with that kernel, or run with other policies and
//! sizes.
//!
//! | file | what is in it |
//! |---|---|
//! | `load` | a recording in memory: its records, its files |
//! | `events` | page cache events of another tool, as a recording |
//! | `start` | the state of memory when it began |
//! | `by_address` | pages that DAMON reclaimed, in recordings that hold them for dropped |
//! | `settings` | limit, policy, kernel and readahead, as the recording says |
//! | `run` | the engine, fed with the recording as the kernel was |
//! | `warm` | memory as it was when the recording began |
//! | `access` | accesses, as the engine sees them |
//! | `calls` | reads of one call |
//! | `advice` | advice of programs |
//! | `in_use` | touches of mapped pages that a recording does not have |
//! | `cache` | what the kernel has in memory, and what it passes over when it drops or reads a range |
//! | `length` | how long files are as they grow: readahead stops there |
//! | `reads` | what both read from disks: pages and requests |
//! | `estimate` | the cost of a size, with what the recording leaves open |
//! | `sampled` | recordings of a sample of pages |
//! | `machine`, `plan` | rows of the machine that was recorded |
//! | `count` | hits and misses of both, by window and by object |
//! | `trust` | which numbers of a replay are as the kernel had them |
//!
//! It replays with `replay`'s cell.

mod access;
mod advice;
mod by_address;
mod cache;
mod calls;
mod count;
mod estimate;
mod events;
mod in_use;
mod length;
mod load;
mod machine;
mod plan;
mod reads;
mod run;
mod sampled;
mod settings;
mod start;
#[cfg(test)]
mod tests;
mod trust;
mod warm;

pub use count::{Agreement, Compared};
pub use estimate::{Estimate, Interval};
pub use events::has_cache_events;
pub(crate) use in_use::RecordedMisses;
pub use load::LoadedRecording;
pub use machine::{CellSettings, MachineFacts, RecordObserver, RecordedCell, RecordedMachine};
pub use plan::{PAGE_SIZE, RecordedPlan};
pub use run::run;
pub use sampled::{SamplePart, units_error};
pub use settings::{Settings, WarmUp};
pub use trust::{AGREEMENT, POINTS, Trust, TrustMetric, apart, kernel_count};
