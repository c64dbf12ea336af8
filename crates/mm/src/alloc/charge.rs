//! Charging pages to a memcg: reclaim when the limit is met, and what to say when that does not help (6.4).

use crate::engine::Engine;
use crate::ids::MemcgId;
use crate::node::nodes::ZoneId;
use crate::stat::Counter;
use crate::world::{Effect, World};

/// Rounds without progress before a charge is given up.
const MAX_RECLAIM_RETRIES: u32 = 16;

impl Engine {
    /// Charges `nr` pages, reclaiming if a limit is met. The error names the memcg that could not be relieved.
    #[inline(always)]
    pub(crate) fn charge<W: World>(&mut self, w: &mut W, memcg: MemcgId, nr: u64) -> Result<ZoneId, MemcgId> {
        let zone = self.take_frames(w, nr)?;
        if let Err(over) = self.groups.memcgs.try_charge(memcg, nr, true)
            && let Err(over) = self.charge_slow(w, memcg, nr, over, true)
        {
            self.frames.nodes.give_back(zone, nr);
            return Err(over);
        }
        Ok(zone)
    }

    /// Takes back a charge that turned out to be of no use.
    pub(crate) fn cancel_charge(&mut self, memcg: MemcgId, zone: ZoneId, nr: u64) {
        self.groups.memcgs.uncharge(memcg, nr);
        self.frames.nodes.give_back(zone, nr);
    }

    /// Reclaims for a charge that met a limit. `oom`: if that does not help, the group is out of memory.
    #[inline(never)]
    pub(crate) fn charge_slow<W: World>(
        &mut self,
        w: &mut W,
        memcg: MemcgId,
        nr: u64,
        mut over: MemcgId,
        oom: bool,
    ) -> Result<(), MemcgId> {
        let (mut retries, mut drained) = (MAX_RECLAIM_RETRIES, false);
        loop {
            self.groups.memcgs.event(over, |e| &mut e.max);
            let reclaimed = self.reclaim_memcg(w, over, nr);
            if self.groups.memcgs.margin(over) < nr {
                if !drained {
                    self.groups.memcgs.drain_stock(memcg);
                    self.drain_stocks(over);
                    drained = true;
                } else if self.frames.reclaim_blocked {
                    // The task sleeps until the device takes more: what it has written by then is free.
                    return Err(over);
                } else if reclaimed == 0 {
                    // Two-list reclaim drains batches only when a list has something to scan: a group so small that all of it
                    // waits in batches would never be scanned. A machine drains them in passing.
                    self.drain_all();
                    if retries == 0 {
                        return if oom { self.out_of_memory(w, over) } else { Err(over) };
                    }
                    retries -= 1;
                }
            }
            match self.groups.memcgs.try_charge(memcg, nr, false) {
                Ok(()) => return Ok(()),
                Err(next) => over = next,
            }
        }
    }

    /// Nothing to reclaim. While writes are under way that is no verdict yet: the driver waits for them and asks again.
    fn out_of_memory<W: World>(&mut self, w: &mut W, over: MemcgId) -> Result<(), MemcgId> {
        if !self.is_io_pending(over) {
            self.groups.memcgs.event(over, |e| &mut e.oom);
            w.effect(Effect::Oom { memcg: over });
        }
        Err(over)
    }

    /// Charges the page of page tables that a mapped page needs, if it is the first of its table.
    #[inline]
    pub(crate) fn charge_table<W: World>(&mut self, w: &mut W, table: usize, memcg: MemcgId) -> Result<(), MemcgId> {
        if self.pages.space.tables[table].present {
            return Ok(());
        }
        if self.cfg.charge_kernel {
            let zone = self.charge(w, memcg, 1)?;
            self.frames.nodes.note_kernel(zone, 1);
            let m = self.groups.memcgs.get_mut(memcg);
            m.kernel += 1;
            m.page_tables += 1;
        }
        self.pages.space.tables[table].present = true;
        Ok(())
    }

    /// Counts pages that were handed out.
    #[inline]
    pub(crate) fn count_alloc(&mut self, memcg: MemcgId, nr: u64) {
        self.groups.memcgs.get_mut(memcg).stat.add(Counter::Pgalloc, nr);
    }
}
