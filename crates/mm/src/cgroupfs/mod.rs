//! Memory cgroups as an administrator sees them: limits, `memory.reclaim`, `memory.high`, moves,
//! and who is killed.
//!
//! | file | what is in it |
//! |---|---|
//! | `limits` | setting limits |
//! | `memory_reclaim` | `memory.reclaim` |
//! | `memory_high` | `memory.high` |
//! | `move_mapping` | moving a mapping to another group |
//! | `oom` | who is killed |
//!
//! It may call: `alloc` and what is below it. It is called by: the driver.

use crate::alloc::Alloc;
use crate::charged::Charged;
use crate::config::Config;
use crate::lru::pages::Pages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;
use crate::reclaim::Reclaim;
use crate::scan::ScanControl;
use crate::swap_cache::SwapCache;
use crate::swap_cache::stack::SwapStack;
use crate::writeback::Writeback;

pub(crate) mod limits;
pub(crate) mod memory_high;
pub(crate) mod memory_reclaim;
pub(crate) mod move_mapping;
pub(crate) mod oom;

/// An administrator at work on groups: what may change, for it may reclaim.
pub(crate) struct Cgroupfs<'a, W> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut Pages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
    pub(crate) swap: &'a mut SwapStack,
    pub(crate) writeback: &'a mut Writeback,
    pub(crate) now_ns: u64,
    pub(crate) world: &'a mut W,
}

impl<W> Cgroupfs<'_, W> {
    lend! {
        /// See [`Charged`].
        fn charged() -> Charged<'_> { cfg, pages, groups, frames }
        /// A reclaim that aims at what `sc` says.
        fn reclaim_with(sc: ScanControl) -> Reclaim<'_, W> { cfg, pages, groups, frames, swap, writeback, now_ns, world; sc }
        /// See [`SwapCache`].
        fn swap_cache() -> SwapCache<'_, W> { cfg, pages, groups, frames, swap, world }
        /// See [`Alloc`].
        fn alloc() -> Alloc<'_, W> { cfg, pages, groups, frames, swap, writeback, now_ns, world }
    }
}
