//! The swap cache. [`stack::SwapStack`] owns devices, zero bitmap and zswap.
//!
//! | file | what is in it |
//! |---|---|
//! | `stack` | `SwapStack`, the part of the engine that holds them |
//! | `cache` | folios that have slots |
//! | `load` | zeros, and what zswap has, as pages come in |
//!
//! It may call: `swap`, `zswap`, `memcontrol`. It is called by: `page_io`, `reclaim`, `cgroupfs`,
//! `fault`.

use crate::config::Config;
use crate::lru::pages::ResidentPages;
use crate::memcg::groups::Groups;
use crate::memcontrol::Memcontrol;
use crate::node::frames::Frames;
use crate::swap_cache::stack::SwapStack;

pub(crate) mod cache;
pub(crate) mod load;
pub(crate) mod stack;

/// The swap cache: what taking and giving back slots may change.
pub(crate) struct SwapCache<'a, W> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut ResidentPages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
    pub(crate) swap: &'a mut SwapStack,
    pub(crate) world: &'a mut W,
}

impl<W> SwapCache<'_, W> {
    /// See [`Memcontrol`]; with the world, which is told what is free.
    #[inline(always)]
    fn memcontrol_and_world(&mut self) -> (Memcontrol<'_>, &mut W) {
        let charged = Memcontrol { cfg: self.cfg, pages: self.pages, groups: self.groups, frames: self.frames };
        (charged, self.world)
    }
}
