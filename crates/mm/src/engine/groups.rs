//! Memory cgroups: made, limited, asked to shrink, removed.

use crate::cgroupfs::memory_reclaim::{ReclaimAgain, ReclaimRequest, ReclaimRound};
use crate::cgroupfs::oom::{OomKiller, OomTask};
use crate::engine::Engine;
use crate::ids::{MappingId, MemcgId};
use crate::memcg::group::MemcgLimits;
use crate::memcontrol::Memcontrol;
use crate::memory::Memory;
use crate::world::World;

impl Engine {
    /// A new memcg under `parent`, with `memory.max` and `memory.swap.max` in pages (`u64::MAX`:
    /// none).
    pub fn add_memcg(
        &mut self,
        parent: MemcgId,
        name: &str,
        max_pages: u64,
        swap_max_pages: u64,
    ) -> Result<MemcgId, String> {
        let Memory { cfg, pages, groups, frames, swap, .. } = &mut self.mem;
        Memcontrol { cfg, pages, groups, frames }.add_memcg(&swap.slots, parent, name, max_pages, swap_max_pages)
    }

    /// Sets the limits of a memcg, as writing to its files does. A `high` or `max` below what it
    /// uses reclaims; where that is not enough for `max`, it is out of memory
    /// ([`crate::Effect::Oom`]), and the driver kills someone and sets it again.
    pub fn set_memcg_limits<W: World>(&mut self, w: &mut W, id: MemcgId, limits: &MemcgLimits) -> Result<(), String> {
        self.cgroupfs(w).set_memcg_limits(id, limits)
    }

    /// The task on whose behalf the last calls were made is done with what it accessed, and goes
    /// on. If it charged beyond a `high` it reclaims now, while that gets on, and then is told to
    /// sleep ([`crate::ThrottleReason::High`]). A driver that never calls this has no
    /// `memory.high`.
    pub fn return_to_user<W: World>(&mut self, w: &mut W) {
        self.cgroupfs(w).return_to_user()
    }

    /// Reclaims what the calls since the last [`crate::Engine::return_to_user`] charged beyond a
    /// `high`, and says nothing of sleep. For drivers whose writes take a while: pages that are on
    /// their way out would count as used.
    pub fn reclaim_over_high<W: World>(&mut self, w: &mut W) {
        self.cgroupfs(w).reclaim_over_high()
    }

    /// `memory.reclaim`: frees so many pages of a memcg and its descendants, with another
    /// swappiness if one is given. No time passes: what is still being written when all else is
    /// gone is not waited for.
    pub fn reclaim<W: World>(
        &mut self,
        w: &mut W,
        id: MemcgId,
        pages: u64,
        swappiness: Option<u32>,
    ) -> Result<u64, ReclaimAgain> {
        self.cgroupfs(w).reclaim(id, pages, swappiness)
    }

    /// A round of `memory.reclaim`: a quarter of what is missing. An error: the group is not there
    /// any more.
    pub fn reclaim_round<W: World>(&mut self, w: &mut W, request: &mut ReclaimRequest) -> Result<ReclaimRound, String> {
        self.cgroupfs(w).reclaim_round(request)
    }

    /// The tasks that use a mapping move to another group: its pages, its swap and its page tables
    /// are charged there from now on. Tree nodes stay charged as they were. If that is more than a
    /// `max` allows, the group is reclaimed; what cannot be is tolerated.
    pub fn move_mapping<W: World>(&mut self, w: &mut W, mapping: MappingId, to: MemcgId) -> Result<(), String> {
        self.cgroupfs(w).move_mapping(mapping, to)
    }

    /// Removes a memcg without children, as `rmdir` does; its tasks are gone. Its pages in memory
    /// go to its parent ([`crate::MemcgConfig::lru_reparent`]), or stay charged to it, and are
    /// first in line when its ancestors are reclaimed. Its mappings go to its parent then, or once
    /// nothing of them is left.
    pub fn remove_memcg(&mut self, id: MemcgId) -> Result<(), String> {
        let (now_ns, parent) = (self.mem.now_ns, self.mem.groups.memcgs.all.get(id.index()).and_then(|m| m.parent));
        self.mem.memcontrol().remove_memcg(now_ns, id)?;
        if let (true, Some(parent)) = (self.mem.cfg.memcg.lru_reparent, parent) {
            self.mem.swap.reparent_stored(&mut self.mem.groups, id, parent);
        }
        Ok(())
    }

    /// Whether the calls since the last [`crate::Engine::return_to_user`] charged beyond a `high`.
    #[inline(always)]
    pub fn is_over_high(&self) -> bool {
        self.mem.groups.memcgs.over_high.is_some()
    }

    /// The victims, by their places in `tasks`: of the tasks within `over` the one with the largest
    /// resident set, swap and page tables, and with it all tasks of the highest group that has
    /// `oom_group` (those that are never killed excepted). None: nobody may be killed. The events
    /// of the groups are counted.
    pub fn oom_kill(&mut self, over: MemcgId, tasks: &[OomTask]) -> Vec<usize> {
        let Memory { pages, groups, frames, swap, .. } = &mut self.mem;
        OomKiller { pages, groups, frames, swap }.kill(over, tasks)
    }
}
