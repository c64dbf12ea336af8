//! Real memory on the engine: regions that may be larger than the memory they take.
//!
//! Pages out of memory are in a compressed pool, in a swap file, or in both ([`store`]);
//! userfaultfd ([`uffd`]) tells when they are touched. The engine of `refault-mm` decides what
//! leaves memory; it is the one that the lab runs.
//!
//! ```no_run
//! use refault_pager::{Region, RegionConfig};
//!
//! // 1 GiB in at most 256 MiB of memory.
//! let mut region = Region::new(&RegionConfig::new(1 << 30, 256 << 20))?;
//! region.as_mut_slice()[123_456_789] = 7;
//! assert_eq!(region.as_slice()[123_456_789], 7);
//! # Ok::<(), refault_pager::Error>(())
//! ```
#![deny(missing_docs)]

pub mod calls;
mod config;
pub mod control;
mod core;
mod cpu_latency_qos;
pub mod doctor;
mod error;
mod evict;
pub mod file;
pub mod mem;
mod pagemap;
mod placement;
mod process;
mod region;
mod staging;
pub mod store;
mod sync;
mod threads;
pub mod uffd;

/// Whole programs: all processes of a tree in one memory, served from outside.
pub mod tree {
    pub use crate::process::{
        Live, ProcessTouch, ProcessWatch, RunEnd, TouchRecording, TreeConfig, TreeStats, exit_like, run, run_watched,
    };
}

pub use config::{FaultMode, PoolConfig, RegionConfig};
pub use control::SampleStats;
pub use error::Error;
pub use file::{MappedFile, MappedFileConfig};
pub use refault_mm::{
    AccessAdvice, HugeAdvice, Kernel, MemcgEvents, Policy, SizeCounter, SizeStats, ThpConfig, ThpDefrag, ThpMode,
    ThpSize,
};
pub use region::{Counts, Limits, Region, RegionStats};
