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

    /// Sets the limits of a memcg, as writing to its files does. A `high` or `max` below the usage
    /// of the group reclaims. If that is not enough for `max`, the group is out of memory
    /// ([`crate::Effect::Oom`]): the driver kills a task and sets the limits again.
    pub fn set_memcg_limits<W: World>(&mut self, w: &mut W, id: MemcgId, limits: &MemcgLimits) -> Result<(), String> {
        self.cgroupfs(w).set_memcg_limits(id, limits)
    }

    /// Ends the calls made on behalf of a task, which returns to user space. If they charged beyond
    /// a `high`, reclaims now, as long as pages are freed, and then tells the task to sleep
    /// ([`crate::ThrottleReason::High`]). A driver that never calls this has no `memory.high`.
    pub fn return_to_user<W: World>(&mut self, w: &mut W) {
        self.cgroupfs(w).return_to_user()
    }

    /// Reclaims what the calls since the last [`crate::Engine::return_to_user`] charged beyond a
    /// `high`, and tells nobody to sleep. For drivers whose writes take a while: at the return,
    /// pages still being written would count as used.
    pub fn reclaim_over_high<W: World>(&mut self, w: &mut W) {
        self.cgroupfs(w).reclaim_over_high()
    }

    /// `memory.reclaim`: frees `pages` pages of a memcg and its descendants, with another
    /// swappiness if one is given. No time passes, so writes still under way when all else is gone
    /// are not waited for.
    pub fn reclaim<W: World>(
        &mut self,
        w: &mut W,
        id: MemcgId,
        pages: u64,
        swappiness: Option<u32>,
    ) -> Result<u64, ReclaimAgain> {
        self.cgroupfs(w).reclaim(id, pages, swappiness)
    }

    /// One round of `memory.reclaim`: a quarter of the pages still to free, and a batch at least.
    /// The error: the group is gone.
    pub fn reclaim_round<W: World>(&mut self, w: &mut W, request: &mut ReclaimRequest) -> Result<ReclaimRound, String> {
        self.cgroupfs(w).reclaim_round(request)
    }

    /// Charges a mapping to another group from now on, as its tasks move there: pages, swap and
    /// page tables. Tree nodes stay charged as they were. If a `max` does not allow that, the group
    /// is reclaimed; an excess that stays is tolerated.
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

    /// Chooses the tasks to kill within `over`; returns their indices in `tasks`. First comes the
    /// task with the most pages in memory, in swap and of page tables, shifted by `oom_score_adj`;
    /// with it go all tasks of the highest group that has `oom_group`, except tasks that are never
    /// killed. Empty: nobody may be killed. The events of the groups are counted.
    pub fn oom_kill(&mut self, over: MemcgId, tasks: &[OomTask]) -> Vec<usize> {
        let Memory { pages, groups, frames, swap, .. } = &mut self.mem;
        OomKiller { pages, groups, frames, swap }.kill(over, tasks)
    }
}
