//! `memory.high` and `memory.swap.high`: a task that charges beyond them reclaims on the way out,
//! and sleeps.
//!
//! Mechanism: `docs/mechanisms.md#limits-and-commands`.

use crate::cgroupfs::Cgroupfs;
use crate::ids::MemcgId;
use crate::scan::MAX_RECLAIM_RETRIES;
use crate::world::{ThrottleReason, World};

impl<W: World> Cgroupfs<'_, W> {
    /// Ends the calls made on behalf of a task, which returns to user space. If they charged beyond
    /// a `high`, reclaims now, as long as pages are freed, and then tells the task to sleep
    /// ([`ThrottleReason::High`]). A driver that never calls this has no `memory.high`.
    pub(crate) fn return_to_user(&mut self) {
        let Some((id, nr)) = self.mem.groups.memcgs.over_high.take() else { return };
        let mut retries = MAX_RECLAIM_RETRIES;
        let mut wanted = nr;
        loop {
            let reclaimed = self.reclaim_high(id, wanted);
            let delay_ns = self.mem.groups.memcgs.high_delay_ns(id, nr);
            self.mem.groups.count_swap_high(id);
            if delay_ns == 0 {
                break;
            }
            if reclaimed == 0 && retries == 0 {
                self.mem.frames.throttle(self.world, ThrottleReason::High, delay_ns);
                break;
            }
            if reclaimed == 0 {
                retries -= 1;
            }
            wanted = self.mem.cfg.lru.swap_cluster_max;
        }
        // Pages that reclaim itself charged are not held against anyone.
        self.mem.groups.memcgs.over_high = None;
    }

    /// Reclaims what the calls since the last [`Engine::return_to_user`] charged beyond a `high`,
    /// and tells nobody to sleep. For drivers whose writes take a while: at the return, pages still
    /// being written would count as used.
    pub(crate) fn reclaim_over_high(&mut self) {
        let Some((id, nr)) = self.mem.groups.memcgs.over_high else { return };
        self.reclaim_high(id, nr);
        self.mem.groups.memcgs.over_high = Some((id, nr));
    }

    fn reclaim_high(&mut self, id: MemcgId, nr: u64) -> u64 {
        let mut reclaimed = 0;
        let mut at = Some(id);
        while let Some(m) = at.filter(|&m| m != MemcgId::ROOT) {
            let memcg = self.mem.groups.memcgs.get(m);
            at = memcg.parent;
            if memcg.usage > memcg.high {
                self.mem.groups.memcgs.event(m, |e| &mut e.high);
                reclaimed += self.alloc().reclaim_memcg(m, nr);
            }
        }
        reclaimed
    }
}
