//! The swap cache, and what stands in front of the swap devices. [`stack::SwapStack`] owns devices,
//! zero bitmap and zswap.
//!
//! | file | what is in it |
//! |---|---|
//! | `stack` | `SwapStack`, the part of the engine that holds them |
//! | `cache` | folios that have slots |
//! | `front` | the zero bitmap and zswap, as pages go out and come in |
//! | `zswap_writeback` | compressed pages that go on to the device |
//!
//! It may call: `swap`, `zswap`, `workingset`, `writeback`, `charged`. It is called by: `reclaim`,
//! `alloc`, `fault`.

use crate::charged::Charged;
use crate::config::Config;
use crate::lru::pages::Pages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;
use crate::swap_cache::stack::SwapStack;
use crate::writeback::{Writeback, Writeout};

pub(crate) mod cache;
pub(crate) mod front;
pub(crate) mod stack;
pub(crate) mod zswap_writeback;

/// The swap cache: what taking and giving back slots may change.
pub(crate) struct SwapCache<'a, W> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut Pages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
    pub(crate) swap: &'a mut SwapStack,
    pub(crate) world: &'a mut W,
}

impl<W> SwapCache<'_, W> {
    lend_charged_and_world!();
}

/// What stands in front of the swap devices, and what moving pages through it may change.
pub(crate) struct SwapFront<'a, W> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut Pages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
    pub(crate) swap: &'a mut SwapStack,
    pub(crate) writeback: &'a mut Writeback,
    pub(crate) now_ns: u64,
    pub(crate) world: &'a mut W,
}

impl<W> SwapFront<'_, W> {
    lend! {
        /// See [`Charged`].
        fn charged() -> Charged<'_> { cfg, pages, groups, frames }
        /// See [`SwapCache`].
        fn swap_cache() -> SwapCache<'_, W> { cfg, pages, groups, frames, swap, world }
        /// See [`Writeout`].
        fn writeout() -> Writeout<'_, W> { cfg, pages, groups, frames, writeback, now_ns, world }
    }
}
