//! Charging pages to a memcg: reclaim when the limit is met, and what to say when that does not
//! help.
//!
//! Mechanism: `docs/mechanisms.md#charging`.

use std::ops::Range;

use crate::alloc::Alloc;
use crate::ids::{MemcgId, PageId, XaNodeId, ZoneId};
use crate::lru::pages::ResidentPages;
use crate::memcg::group::NODE_CHARGE_BYTES;
use crate::node::page_blocks::MigrateType;
use crate::scan::{MAX_RECLAIM_RETRIES, ScanControl};
use crate::stat::Counter;
use crate::world::{Effect, World};

impl<W: World> Alloc<'_, W> {
    /// Reclaims until a group uses no more than `limit` pages. False: it still uses more.
    pub(crate) fn shrink_to(&mut self, id: MemcgId, limit: u64) -> bool {
        let (mut retries, mut drained) = (MAX_RECLAIM_RETRIES, false);
        loop {
            let usage = self.mem.groups.memcgs.get(id).usage;
            if usage <= limit {
                return true;
            }
            if !drained {
                self.mem.pages.drain_all();
                self.mem.groups.drain_stocks(id);
                drained = true;
                continue;
            }
            if self.reclaim_memcg(id, usage - limit) == 0 {
                if retries == 0 || self.mem.frames.reclaim_blocked {
                    return false;
                }
                retries -= 1;
            }
        }
    }

    /// Charges `nr` pages, reclaiming if a limit is met. The error names the memcg that could not
    /// be relieved.
    #[inline(always)]
    pub(crate) fn charge(&mut self, memcg: MemcgId, nr: u64) -> Result<ZoneId, MemcgId> {
        self.charge_for(memcg, nr, MigrateType::Movable)
    }

    /// As [`Alloc::charge`], for pages of a migratetype.
    #[inline(always)]
    fn charge_for(&mut self, memcg: MemcgId, nr: u64, kind: MigrateType) -> Result<ZoneId, MemcgId> {
        let zone = self.take_frames(nr, kind)?;
        if let Err(over) = self.mem.groups.memcgs.try_charge(memcg, nr, true)
            && let Err(over) = self.charge_slow(memcg, nr, over, true)
        {
            self.mem.frames.nodes.give_back_for(zone, nr, kind);
            return Err(over);
        }
        Ok(zone)
    }

    /// Reclaims for a charge that met a limit. `oom`: if that does not help, the group is out of
    /// memory.
    #[inline(never)]
    pub(crate) fn charge_slow(&mut self, memcg: MemcgId, nr: u64, mut over: MemcgId, oom: bool) -> Result<(), MemcgId> {
        let (mut retries, mut drained) = (MAX_RECLAIM_RETRIES, false);
        loop {
            self.mem.groups.memcgs.event(over, |e| &mut e.max);
            let reclaimed = self.reclaim_memcg(over, nr);
            if self.mem.groups.memcgs.margin(over) < nr {
                if self.mem.frames.paused.is_some() {
                    return Err(over);
                }
                if !drained {
                    self.mem.groups.memcgs.drain_stock(memcg);
                    self.mem.groups.drain_stocks(over);
                    drained = true;
                } else if self.mem.frames.reclaim_blocked {
                    // The task sleeps until the device takes more writes: pages written by then are
                    // free.
                    return Err(over);
                } else if reclaimed == 0 {
                    // Two-list reclaim drains batches only when a list has something to scan: a
                    // group whose folios all wait in batches would never be scanned. Reclaim of the
                    // whole machine drains batches in passing.
                    self.mem.pages.drain_all();
                    if retries == 0 {
                        return if oom { self.out_of_memory(over) } else { Err(over) };
                    }
                    retries -= 1;
                }
            }
            match self.mem.groups.memcgs.try_charge(memcg, nr, false) {
                Ok(()) => return Ok(()),
                Err(next) => over = next,
            }
        }
    }

    /// Declares a group out of memory, unless I/O is under way: then the driver waits for it and
    /// asks again. Readahead does without the page.
    fn out_of_memory(&mut self, over: MemcgId) -> Result<(), MemcgId> {
        if !self.mem.frames.nofs && !self.is_io_pending(over) {
            self.mem.groups.memcgs.event(over, |e| &mut e.oom);
            self.world.effect(Effect::Oom { memcg: over });
        }
        Err(over)
    }

    /// Charges one page for the page table that a mapped page needs, if the table does not exist
    /// yet.
    #[inline]
    pub(crate) fn charge_table(&mut self, table: usize, memcg: MemcgId) -> Result<(), MemcgId> {
        if self.mem.pages.space.tables[table].present {
            return Ok(());
        }
        if self.mem.cfg.memcg.charge_kernel {
            let zone = self.charge_for(memcg, 1, MigrateType::Unmovable)?;
            self.mem.frames.nodes.note_kernel(zone, 1, MigrateType::Unmovable);
            let m = self.mem.groups.memcgs.get_mut(memcg);
            m.kernel += 1;
            m.page_tables += 1;
        }
        self.mem.pages.space.tables[table].present = true;
        Ok(())
    }

    /// Charges the nodes that a page's slot needs and that do not exist yet. May reclaim.
    /// `note_slot` makes them.
    #[inline(always)]
    pub(crate) fn charge_nodes(&mut self, page: PageId, leaf: XaNodeId, memcg: MemcgId) -> Result<(), MemcgId> {
        if self.mem.pages.space.fill[leaf.index()].count > 1 || !self.mem.cfg.memcg.charge_kernel {
            return Ok(());
        }
        self.charge_missing_nodes(memcg, |pages| pages.missing_nodes(page))
    }

    /// As [`Alloc::charge_nodes`], for the slots of all pages of a large folio.
    pub(crate) fn charge_range_nodes(&mut self, range: Range<u32>, memcg: MemcgId) -> Result<(), MemcgId> {
        if !self.mem.cfg.memcg.charge_kernel {
            return Ok(());
        }
        self.charge_missing_nodes(memcg, |pages| pages.missing_range_nodes(range.clone()))
    }

    #[cold]
    fn charge_missing_nodes(&mut self, memcg: MemcgId, missing: impl Fn(&ResidentPages) -> u64) -> Result<(), MemcgId> {
        let mut paid = 0;
        // Reclaim may take shadow nodes, and with them a parent that was there when we counted.
        while paid < missing(&self.mem.pages) {
            if !self.mem.groups.memcgs.consume_object(memcg, NODE_CHARGE_BYTES) {
                let zone = match self.charge_for(memcg, 1, MigrateType::Reclaimable) {
                    Ok(zone) => zone,
                    Err(over) => {
                        (0..paid).for_each(|_| self.mem.memcontrol().free_node_object(memcg));
                        return Err(over);
                    }
                };
                self.mem.frames.nodes.note_kernel(zone, 1, MigrateType::Reclaimable);
                self.mem.groups.memcgs.add_object_page(memcg, NODE_CHARGE_BYTES);
            }
            paid += 1;
        }
        Ok(())
    }

    /// Frees at least `nr` pages of a memcg and its descendants if it can; returns how many it
    /// freed.
    pub(crate) fn reclaim_memcg(&mut self, memcg: MemcgId, nr: u64) -> u64 {
        let nr = nr.max(self.mem.cfg.lru.cluster_pages());
        let mut sc = ScanControl::for_memcg(memcg, nr, None);
        sc.may_pause = self.mem.frames.paused.is_none();
        if !sc.is_cgroup_reclaim() {
            self.mem.pages.count_machine(Counter::Allocstall, 1);
        }
        self.reclaim_with(sc).try_to_free()
    }
}
