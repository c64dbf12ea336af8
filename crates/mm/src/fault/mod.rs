//! Accesses that are more than a hit: faults, reads ahead, advice, and memory that is given up.
//!
//! | file | what is in it |
//! |---|---|
//! | `access` | what an access meets |
//! | `io` | reads, and I/O that has ended |
//! | `swap_in` | anonymous folios from swap, and large ones |
//! | `readahead`, `history` | reading ahead; by what is in the page cache |
//! | `advise` | `madvise` and `fadvise` |
//! | `zap` | memory that its owner gives up |
//! | `hint` | hint faults |
//! | `swapoff` | taking a swap device away |
//!
//! It may call: `alloc` and what is below it. It is called by: the driver.

use crate::alloc::Alloc;
use crate::charged::Charged;
use crate::config::Config;
use crate::lru::pages::Pages;
use crate::memcg::groups::Groups;
use crate::migrate::Migrate;
use crate::node::frames::Frames;
use crate::reclaim::Reclaim;
use crate::scan::ScanControl;
use crate::swap_cache::SwapCache;
use crate::swap_cache::stack::SwapStack;
use crate::writeback::{Writeback, Writeout};

pub(crate) mod access;
pub(crate) mod advise;
pub(crate) mod hint;
mod history;
pub(crate) mod io;
pub(crate) mod readahead;
pub(crate) mod swap_in;
pub(crate) mod swapoff;
pub(crate) mod zap;

/// An access that is more than a hit: what it may change, for it may reclaim.
pub(crate) struct Fault<'a, W> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut Pages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
    pub(crate) swap: &'a mut SwapStack,
    pub(crate) writeback: &'a mut Writeback,
    pub(crate) now_ns: u64,
    pub(crate) world: &'a mut W,
}

impl<W> Fault<'_, W> {
    lend_charged_and_world!();

    lend! {
        /// See [`Charged`].
        fn charged() -> Charged<'_> { cfg, pages, groups, frames }
        /// A reclaim that aims at what `sc` says.
        fn reclaim_with(sc: ScanControl) -> Reclaim<'_, W> { cfg, pages, groups, frames, swap, writeback, now_ns, world; sc }
        /// See [`Writeout`].
        fn writeout() -> Writeout<'_, W> { cfg, pages, groups, frames, writeback, now_ns, world }
        /// See [`SwapCache`].
        fn swap_cache() -> SwapCache<'_, W> { cfg, pages, groups, frames, swap, world }
        /// See [`Migrate`].
        fn migration() -> Migrate<'_, W> { cfg, pages, groups, frames, writeback, now_ns, world }
        /// See [`Alloc`].
        fn alloc() -> Alloc<'_, W> { cfg, pages, groups, frames, swap, writeback, now_ns, world }
    }
}
