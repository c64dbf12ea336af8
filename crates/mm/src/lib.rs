//! Linux's memory management as a deterministic state machine: page reclaim with two lists or many generations,
//! working-set detection by shadow entries, memory cgroups.
//!
//! No I/O, no clock, no thread, no system call, no `unsafe`. A driver holds an [`Engine`], reports accesses, and
//! implements [`World`]: effects that must be carried out, and the accessed bits that the engine asks for.
//!
//! ```
//! use refault_mm::{Ack, Config, Effect, Engine, MappingKind, MemcgId, Outcome, PageId, Policy, Touch, World};
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

mod advise;
mod aging;
mod alloc;
mod anon;
mod batch;
mod charge;
mod config;
mod dirty;
mod drop;
mod engine;
mod evict;
mod evict_first;
mod exit;
mod fault;
mod fault_around;
mod folio;
mod foresee;
mod high;
mod hint;
mod ids;
mod keep_awake;
mod kswapd;
mod large;
mod list;
mod lru;
mod lru_gen;
mod lruvec;
mod mapping;
mod memcg;
mod memcg_admin;
mod memcg_lru;
mod memcg_move;
mod memcg_offline;
mod memcg_oom;
#[cfg(test)]
mod memcg_props;
mod memcg_quiet;
mod memcg_reclaim;
mod memcg_tree;
mod migrate;
mod multi_gen;
mod node;
mod nodes;
pub mod opt;
mod polling;
mod pool_balance;
mod protection;
mod psi;
mod readahead;
mod resize;
mod sample;
mod scan;
mod shadow;
mod shadow_nodes;
mod shrink;
mod slot;
mod stat;
mod stat_flush;
mod swap;
mod swapoff;
mod thp;
pub mod tiering;
mod two_list;
mod validate;
mod vmscan;
mod workingset;
mod world;
mod zeromap;
mod zspool;
mod zswap;

pub use advise::Advice;
pub use alloc::Work;
pub use config::{
    Backoff, Bound, Clock, Config, Lru, LruGenCaps, MemcgSelection, NodeConfig, NumaConfig, Policy, Recency,
    RefaultCounting, RefaultTest, WritebackSort, ZswapConfig,
};
pub use engine::Engine;
pub use fault::{Outcome, Touch};
pub use folio::MAX_ORDER;
pub use hint::Hint;
pub use ids::{FolioId, LruvecId, MappingId, MemcgId, NodeId, PageId, SwapSlot, XaNodeId};
pub use keep_awake::{KeepAwake, KeepAwakeStats, LOOK_NS, LOOK_WAKES};
pub use kswapd::KswapdStep;
pub use mapping::MappingKind;
pub use memcg::{MemcgEvents, MemcgLimits};
pub use memcg_oom::OomTask;
pub use memcg_reclaim::{ReclaimAgain, ReclaimRequest, ReclaimRound};
pub use node::Watermarks;
pub use polling::{Polling, PollingStats};
pub use pool_balance::{PoolBalance, PoolBalanceStats, PoolExtent, PoolTier};
pub use protection::effective_protection;
pub use psi::{Psi, PsiKind, PsiLine};
pub use readahead::Readahead;
pub use sample::{SampleBudget, SampleStats};
pub use stat::{Counter, Gauge, Stats};
pub use swap::{
    MAX_SWAP_DEVICE_PAGES, MAX_SWAP_DEVICES, SwapAllocator, SwapCluster, SwapDeviceConfig, SwapDeviceInfo, SwapList,
    SwapMap, SwapOverflow, SwapPolicy, SwapRotational, SwapSpace, SwapWork,
};
pub use swapoff::{Swapoff, SwapoffError};
pub use thp::{HugeAdvice, SizeCounter, SizeStats, ThpConfig, ThpDefrag, ThpMode, ThpSize};
pub use world::{Ack, Content, Effect, ThrottleReason, World};
pub use zspool::ZsPool;
pub use zswap::{ZswapStats, ZswapStep};
