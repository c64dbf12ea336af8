//! The memory of a machine: all that a reclaim may change, and with it all that may end in one.
//!
//! Getting memory, a fault, an administrator's command, a store to swap and reclaim itself each
//! hold [`Memory`] as a whole and the world; what needs less borrows less of it here.
//!
//! It may call: what it consists of. It is called by: `page_io`, `reclaim`, `alloc`, `cgroupfs`,
//! `fault`, and the engine, which owns it.

mod split;

use crate::config::Config;
use crate::ids::{FolioId, LruvecId};
use crate::lru::pages::ResidentPages;
use crate::memcg::groups::Groups;
use crate::memcontrol::Memcontrol;
use crate::migrate::MigrateContext;
use crate::node::frames::Frames;
use crate::swap_cache::SwapCache;
use crate::swap_cache::stack::SwapStack;
use crate::writeback::{Writeback, Writeout};

/// The parts of the engine, and the time.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) cfg: Config,
    pub(crate) pages: ResidentPages,
    pub(crate) groups: Groups,
    pub(crate) frames: Frames,
    pub(crate) swap: SwapStack,
    pub(crate) writeback: Writeback,
    pub(crate) now_ns: u64,
}

impl Memory {
    pub(crate) fn new(cfg: Config) -> Result<Memory, String> {
        cfg.check()?;
        let frames = Frames::new(&cfg)?;
        Ok(Memory {
            pages: ResidentPages::new(&cfg, frames.nodes.all.len(), frames.nodes.zone_lists()),
            groups: Groups::new(&cfg, frames.nodes.all.len()),
            swap: SwapStack::new(&cfg),
            writeback: Writeback::default(),
            now_ns: 0,
            frames,
            cfg,
        })
    }

    /// Pages that a group may have, for the policy beside its lists: the lowest limit of the group
    /// and its ancestors.
    pub(crate) fn room_of(&self, v: LruvecId) -> u64 {
        let memcg = self.pages.lruvecs[v.index()].memcg;
        let chain = std::iter::successors(Some(memcg), |&id| self.groups.memcgs.get(id).parent);
        chain.map(|id| self.groups.memcgs.get(id).max).min().unwrap_or(u64::MAX)
    }

    /// The policy beside the lists learns of a folio that has come into the page cache.
    #[cold]
    pub(crate) fn cache_ext_added(&mut self, v: LruvecId, f: FolioId) {
        let room = self.room_of(v);
        if let Some(ext) = &mut self.pages.ext {
            ext.added(v, f, room);
        }
    }

    /// See [`Memcontrol`].
    #[inline(always)]
    pub(crate) fn memcontrol(&mut self) -> Memcontrol<'_> {
        Memcontrol { cfg: &self.cfg, pages: &mut self.pages, groups: &mut self.groups, frames: &mut self.frames }
    }

    /// See [`Writeout`].
    #[inline(always)]
    pub(crate) fn writeout<'a, W>(&'a mut self, world: &'a mut W) -> Writeout<'a, W> {
        let Memory { cfg, pages, groups, frames, writeback, now_ns, .. } = self;
        Writeout { cfg, pages, groups, frames, writeback, now_ns: *now_ns, world }
    }

    /// See [`SwapCache`].
    #[inline(always)]
    pub(crate) fn swap_cache<'a, W>(&'a mut self, world: &'a mut W) -> SwapCache<'a, W> {
        let Memory { cfg, pages, groups, frames, swap, .. } = self;
        SwapCache { cfg, pages, groups, frames, swap, world }
    }

    /// See [`MigrateContext`].
    #[inline(always)]
    pub(crate) fn migration<'a, W>(&'a mut self, world: &'a mut W) -> MigrateContext<'a, W> {
        let Memory { cfg, pages, groups, frames, writeback, now_ns, .. } = self;
        MigrateContext { cfg, pages, groups, frames, writeback, now_ns: *now_ns, world }
    }
}
