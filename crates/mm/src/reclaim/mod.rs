//! Reclaim: a run is a value, [`Reclaim`], that holds what it may change and what it aims at.
//!
//! | file | what is in it |
//! |---|---|
//! | `vmscan` | priorities, nodes, the walk over groups |
//! | `policy` | the seam for policies, as far as reclaim goes |
//! | `two_list`, `evict` | shrinking an lruvec with two lists, and with generations |
//! | `shrink`, `unmap` | what becomes of an isolated folio |
//! | `memcg_lru`, `memcg_iter_reclaim`, `empty_memcgs` | whose turn it is, under multi-gen LRU |
//! | `kswapd` | one step of background reclaim |
//! | `lru_gen` | the debugfs files |
//! | `peek` | what comes next, for drivers that want to know |
//!
//! It may call: `lru`, `workingset`, `swap_cache`, `writeback`, `migrate`, `charged`. It is called
//! by: `alloc`, `cgroupfs`, `fault`, and the driver for kswapd.

use crate::charged::Charged;
use crate::config::Config;
use crate::lru::pages::Pages;
use crate::memcg::groups::Groups;
use crate::migrate::Migrate;
use crate::node::frames::Frames;
use crate::scan::ScanControl;
use crate::swap_cache::stack::SwapStack;
use crate::swap_cache::{SwapCache, SwapFront};
use crate::writeback::{Writeback, Writeout};

pub(crate) mod empty_memcgs;
pub(crate) mod evict;
pub(crate) mod kswapd;
pub(crate) mod lru_gen;
pub(crate) mod memcg_iter_reclaim;
pub(crate) mod memcg_lru;
#[cfg(test)]
mod memcg_props;
pub(crate) mod peek;
pub(crate) mod policy;
pub(crate) mod shrink;
pub(crate) mod two_list;
pub(crate) mod unmap;
pub(crate) mod vmscan;

/// A reclaim under way: what it may change, and what it aims at.
pub(crate) struct Reclaim<'a, W> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut Pages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
    pub(crate) swap: &'a mut SwapStack,
    pub(crate) writeback: &'a mut Writeback,
    pub(crate) now_ns: u64,
    pub(crate) world: &'a mut W,
    pub(crate) sc: ScanControl,
}

impl<W> Reclaim<'_, W> {
    lend_charged_and_world!();

    lend! {
        /// See [`Charged`].
        fn charged() -> Charged<'_> { cfg, pages, groups, frames }
        /// See [`Writeout`].
        fn writeout() -> Writeout<'_, W> { cfg, pages, groups, frames, writeback, now_ns, world }
        /// See [`SwapCache`].
        fn swap_cache() -> SwapCache<'_, W> { cfg, pages, groups, frames, swap, world }
        /// See [`SwapFront`].
        fn swap_front() -> SwapFront<'_, W> { cfg, pages, groups, frames, swap, writeback, now_ns, world }
        /// See [`Migrate`].
        fn migration() -> Migrate<'_, W> { cfg, pages, groups, frames, writeback, now_ns, world }
    }
}
