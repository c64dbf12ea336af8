//! Getting memory: frames and charges, with reclaim where there is no room.
//!
//! | file | what is in it |
//! |---|---|
//! | `frames` | frames: the fast path, direct reclaim |
//! | `charge` | charges to groups, page tables and tree nodes |
//! | `large` | both for large folios |
//! | `zswap_worker` | emptying the pool of zswap, for which it needs memory |
//!
//! It may call: `reclaim` and what is below it. It is called by: `fault`, `cgroupfs`.

use crate::charged::Charged;
use crate::config::Config;
use crate::lru::pages::Pages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;
use crate::reclaim::Reclaim;
use crate::scan::ScanControl;
use crate::swap_cache::SwapFront;
use crate::swap_cache::stack::SwapStack;
use crate::writeback::Writeback;

pub(crate) mod charge;
pub(crate) mod frames;
pub(crate) mod large;
pub(crate) mod zswap_worker;

/// Getting memory: what it may change, for it may reclaim.
pub(crate) struct Alloc<'a, W> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut Pages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
    pub(crate) swap: &'a mut SwapStack,
    pub(crate) writeback: &'a mut Writeback,
    pub(crate) now_ns: u64,
    pub(crate) world: &'a mut W,
}

impl<W> Alloc<'_, W> {
    lend! {
        /// See [`Charged`].
        fn charged() -> Charged<'_> { cfg, pages, groups, frames }
        /// A reclaim that aims at what `sc` says.
        fn reclaim_with(sc: ScanControl) -> Reclaim<'_, W> { cfg, pages, groups, frames, swap, writeback, now_ns, world; sc }
        /// See [`SwapFront`].
        fn swap_front() -> SwapFront<'_, W> { cfg, pages, groups, frames, swap, writeback, now_ns, world }
    }
}
