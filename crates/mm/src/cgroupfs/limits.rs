//! Setting the limits of a group, as writing to its files does.
//!
//! Mechanism: `docs/mechanisms.md#limits-and-commands`.

use crate::cgroupfs::Cgroupfs;
use crate::ids::MemcgId;
use crate::memcg::group::MemcgLimits;
use crate::world::{Effect, World};

impl<W: World> Cgroupfs<'_, W> {
    /// Sets the limits of a memcg, as writing to its files does. A `high` or `max` below the usage
    /// of the group reclaims. If that is not enough for `max`, the group is out of memory
    /// ([`Effect::Oom`]): the driver kills a task and sets the limits again.
    pub(crate) fn set_memcg_limits(&mut self, id: MemcgId, limits: &MemcgLimits) -> Result<(), String> {
        self.mem.groups.online_memcg(id)?;
        if id == MemcgId::ROOT {
            return Err("the root has no limits".into());
        }
        if limits.swappiness.is_some_and(|s| s > 200) {
            return Err("swappiness is 0 to 200".into());
        }
        let m = self.mem.groups.memcgs.get_mut(id);
        m.protection.setting = [limits.min, limits.low];
        (m.high, m.max) = (limits.high, limits.max);
        (m.swap_high, m.swap_max, m.zswap_max) = (limits.swap_high, limits.swap_max, limits.zswap_max);
        (m.swappiness, m.oom_group) = (limits.swappiness, limits.oom_group);
        m.zswap.writeback = limits.zswap_writeback;
        self.mem.groups.memcgs.propagate_protection(id);
        self.mem.groups.memcgs.any_protected |= limits.min > 0 || limits.low > 0;
        self.mem.groups.memcgs.any_high |= limits.high != u64::MAX || limits.swap_high != u64::MAX;
        self.mem.groups.memcgs.tolerate(id);
        self.alloc().shrink_to(id, limits.high);
        // Where the swap device takes no more writes for now, there is more to reclaim later.
        if !self.alloc().shrink_to(id, limits.max)
            && !self.mem.frames.reclaim_blocked
            && !self.alloc().is_io_pending(id)
        {
            self.mem.groups.memcgs.event(id, |e| &mut e.oom);
            self.world.effect(Effect::Oom { memcg: id });
        }
        self.mem.memcontrol().reap_memcgs();
        Ok(())
    }
}
