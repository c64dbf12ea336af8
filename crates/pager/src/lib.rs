//! Real memory on the engine: regions that may be larger than the memory they take.
//!
//! What is out of memory is in a compressed pool, in a swap file, or in both ([`store`]); userfaultfd ([`uffd`]) tells when it is
//! touched. The engine of `refault-mm` decides what leaves memory; it is the one that the lab runs.
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

mod awake;
pub mod calls;
pub mod doctor;
mod effects;
mod error;
pub mod file;
mod heap;
mod high;
pub mod mem;
mod pagemap;
mod patience;
mod region;
pub mod store;
mod threads;
pub mod tree;
pub mod uffd;
mod waiting;

pub use error::Error;
pub use file::{MappedFile, MappedFileConfig};
pub use heap::HugeHeap;
pub use refault_mm::{
    HugeAdvice, MemcgEvents, Policy, SampleStats, SizeCounter, SizeStats, ThpConfig, ThpDefrag, ThpMode, ThpSize,
};
pub use region::{Counts, FaultMode, Limits, PoolConfig, Region, RegionConfig, RegionStats};
