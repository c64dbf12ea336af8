//! Linux's memory management as a deterministic state machine: page reclaim with two lists or many
//! generations, working-set detection by shadow entries, memory cgroups.
//!
//! No I/O, no clock, no thread, no system call, no `unsafe`. A driver holds an [`Engine`], reports
//! accesses, and implements [`World`]: effects that must be carried out, and the accessed bits that
//! the engine asks for.
//!
//! ```
//! use refault_mm::{Ack, Config, Effect, Engine, MappingKind, MemcgId, Outcome, PageId, Policy,
//! Touch, World};
//!
//! struct Instant; // a world in which every read and write is done at once
//! impl World for Instant {
//!     fn effect(&mut self, _: Effect) -> Ack { Ack::Done }
//!     fn test_and_clear_young(&mut self, _: PageId) -> bool { false }
//!     fn test_and_clear_dirty(&mut self, _: PageId) -> bool { false }
//! }
//!
//! let mut engine = Engine::new(Config::new(Policy::Mglru))?;
//! let group = engine.add_memcg(MemcgId::ROOT, "/job", 256, u64::MAX)?;
//! let (_, first) = engine.add_mapping(MappingKind::File, group, 0..1000)?;
//! assert_eq!(engine.access(&mut Instant, first, Touch::Read), Outcome::Major);
//! assert_eq!(engine.access(&mut Instant, first, Touch::Read), Outcome::Hit);
//! # Ok::<(), String>(())
//! ```
#![deny(missing_docs)]

#[macro_use]
mod by_policy;

mod alloc;
mod cache_ext;
mod cgroupfs;
mod config;
mod engine;
mod fault;
mod folio;
mod ids;
mod lru;
mod memcg;
mod memcontrol;
mod memory;
mod migrate;
mod node;
pub mod opt;
mod page_io;
mod psi;
mod reclaim;
mod scan;
mod stat;
mod swap;
mod swap_cache;
pub mod tiering;
mod touch;
mod validate;
mod workingset;
mod world;
mod writeback;
mod zswap;

/// The world of the tests of several crates. Unit tests have it from its source: from the crate it
/// would be a world of another build of this one.
#[cfg(test)]
#[path = "../../testing/src/world.rs"]
#[allow(dead_code, reason = "each crate's tests use a part of it")]
mod world_at_once;
#[cfg(test)]
extern crate self as refault_mm;

pub use cache_ext::builtin::CacheExtPolicy;
pub use cache_ext::list::{Eviction, Iter, ListId, Lists};
pub use cache_ext::ops::{Cache, CacheExtOps, CloneOps, FolioMap};
pub use cgroupfs::memory_reclaim::{ReclaimAgain, ReclaimRequest, ReclaimRound};
pub use cgroupfs::oom::OomTask;
pub use config::dirty::DirtyConfig;
pub use config::kernel::{Kernel, KernelRule, Locking};
pub use config::lru::{
    Bound, CacheProtection, Clock, Deactivation, FaultedPages, Generations, KswapdRevival, Lru, LruConfig, LruGenCaps,
    Recency, ReclaimCost, RefaultCounting, RefaultTest, ScanBudget, WritebackSort,
};
pub use config::memcg::{Backoff, MemcgConfig, MemcgSelection, MemcgWalk};
pub use config::node::{NodeConfig, NumaConfig};
pub use config::readahead::{FaultAroundConfig, MmapMissDecrease, OrderGrowth, ReadaheadConfig};
pub use config::recency::{AccessAdvice, AdviceRecency};
pub use config::settings::{Chosen, Other, SUBJECTS, Setting, THP, TIERING, Value, Values, ZSWAP, settings};
pub use config::shadow::ShadowConfig;
pub use config::swap::{
    MAX_SWAP_DEVICE_PAGES, MAX_SWAP_DEVICES, SwapAllocator, SwapConfig, SwapDeviceConfig, SwapOverflow, SwapPolicy,
    SwapRotational, SwapSplit,
};
pub use config::thp::{HugeAdvice, ThpConfig, ThpDefrag, ThpMode, ThpSize};
pub use config::zswap::ZswapConfig;
pub use config::{Config, Policy};
pub use engine::Engine;
pub use engine::reclaim::PausedReclaim;
pub use fault::advise::Advice;
pub use fault::readahead::Readahead;
pub use fault::swapoff::{Swapoff, SwapoffError};
pub use folio::mapping::MappingKind;
pub use folio::size_stats::{SizeCounter, SizeStats};
pub use ids::{FolioId, LruvecId, MAX_ORDER, MappingId, MemcgId, NodeId, PageId, SwapSlot, XaNodeId};
pub use memcg::group::{MemcgEvents, MemcgLimits};
pub use memcg::protection::effective_protection;
pub use node::hint::HintOutcome;
pub use node::kswapd::KswapdStep;
pub use node::zones::Watermarks;
pub use psi::{Psi, PsiKind, PsiLine};
pub use stat::{Counter, Gauge, ReclaimWork, Stats};
pub use swap::{SwapCluster, SwapDeviceInfo, SwapList, SwapMap, SwapSpace, SwapWork};
pub use touch::{Outcome, Touch};
pub use world::{Ack, Content, Effect, ThrottleReason, World};
pub use writeback::expired::FlushStep;
pub use zswap::ZswapStats;
pub use zswap::ZswapStep;
pub use zswap::zspool::ZsPool;
