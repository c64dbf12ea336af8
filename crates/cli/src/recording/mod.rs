//! A recording of a kernel on the engine: what `verify` compares and `size` tries sizes with.
//!
//! | file | what is in it |
//! |---|---|
//! | `load` | a recording in memory: its records, its files |
//! | `start` | the state of memory when it began |
//! | `settings` | limit, policy, kernel and readahead, as the recording says |
//! | `run` | the engine, fed with the recording as the kernel was |
//! | `cache` | what the kernel has in memory, and what it passes over when it drops or reads a range |
//! | `length` | how long files are as they grow: readahead stops there |
//! | `reads` | what both read from disks: pages and requests |
//! | `estimate` | the cost of a size, with what the recording leaves open |
//! | `count` | hits and misses of both, by window and by object |
//!
//! It replays with `replay`'s cell.

mod cache;
mod count;
mod estimate;
mod length;
mod load;
mod reads;
mod run;
mod settings;
mod start;

pub(crate) use count::Compared;
pub(crate) use estimate::Estimate;
pub(crate) use load::Loaded;
pub(crate) use run::run;
pub(crate) use settings::Settings;
