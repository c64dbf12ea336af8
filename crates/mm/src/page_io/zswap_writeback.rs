//! From zswap to the device: the oldest entry of a group, spared once, to make room in the pool or
//! in the group.

use crate::folio::flags::FolioFlags;
use crate::ids::{MemcgId, PageId, SwapSlot, ZoneId};
use crate::node::zones::AllocWatermark;
use crate::page_io::PageIo;
use crate::stat::Counter;
use crate::world::World;
use crate::zswap::ZswapEntry;

/// Fruitless visits after which the worker gives up; also failed writes in a row.
pub(crate) const MAX_FAILURES: u32 = 16;

/// Result of a visit of one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visit {
    /// There is nothing that may be written back.
    Nothing,
    /// An entry was spared, or could not be written.
    Fruitless,
    /// An entry is on its way to the device.
    Written,
}

/// The entry to write back next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Victim {
    pub(crate) slot: SwapSlot,
    pub(crate) page: PageId,
    pub(crate) memcg: MemcgId,
}

impl<W: World> PageIo<'_, W> {
    /// A group is at its `zswap.max`: its own oldest entry makes room for the next. Reclaim asks
    /// for it, and must not reclaim in turn: the page may use the last frames, and exceed limits
    /// for a moment.
    pub(crate) fn make_zswap_room(&mut self, memcg: MemcgId) -> bool {
        let Ok(victim) = self.choose_victim(memcg) else { return false };
        let mut written = self.drop_unneeded(victim);
        if !written && let Some(zone) = self.mem.frames.take_write_back_frame(AllocWatermark::None) {
            self.mem.groups.memcgs.force_charge(victim.memcg, 1);
            written = self.write_back_charged(victim, zone);
        }
        self.note_write_back(written) == Visit::Written
    }

    /// The oldest entry of a group. Error: the group has no entry, or the entry is spared this
    /// time.
    pub(crate) fn choose_victim(&mut self, memcg: MemcgId) -> Result<Victim, Visit> {
        let oldest = self.mem.swap.zswap.oldest(memcg).filter(|_| self.mem.groups.may_write_back(memcg));
        let entry = oldest.and_then(|slot| self.mem.swap.zswap.get(slot).copied());
        let Some(ZswapEntry { slot, page, memcg, referenced, .. }) = entry else { return Err(Visit::Nothing) };
        self.mem.swap.zswap.rotate(slot);
        // A device on which everything fails would give reclaim a page back for each that it takes,
        // for ever.
        if referenced || self.mem.writeback.writes_failed >= u64::from(MAX_FAILURES) {
            return Err(Visit::Fruitless);
        }
        Ok(Victim { slot, page, memcg })
    }

    /// Drops an entry that no page table needs: its slot only waits to be freed. False: it is
    /// needed.
    pub(crate) fn drop_unneeded(&mut self, victim: Victim) -> bool {
        let unneeded = self.mem.swap.slots.count(victim.slot) == 0;
        if unneeded {
            self.mem.swap_cache(self.world).forget_stored(victim.slot);
        }
        unneeded
    }

    /// Decompresses an entry into a folio of the swap cache, for which a frame was charged, and
    /// writes that.
    pub(crate) fn write_back_charged(&mut self, victim: Victim, zone: ZoneId) -> bool {
        let Victim { slot, page, memcg } = victim;
        // Reclaim for that frame may have written this very entry.
        if self.mem.swap.zswap.get(slot).is_none_or(|e| e.page != page) {
            self.mem.memcontrol().cancel_charge(memcg, zone, 1);
            return false;
        }
        let f = self.mem.swap_cache(self.world).add_charged_swap_folio(page, slot, memcg, zone, false);
        self.mem.swap_cache(self.world).zswap_load(page, slot);
        self.mem.pages.count(f, Counter::Zswpwb, 1);
        // Reclaim wants it gone as soon as it is written.
        self.mem.pages.folios.set(f, FolioFlags::UPTODATE | FolioFlags::RECLAIM);
        self.mem.writeout(self.world).start_write(f, true);
        // A folio that could not be written makes no room.
        self.mem.pages.folios.st(f).has(FolioFlags::WRITEBACK) || !self.mem.pages.folios.st(f).has(FolioFlags::DIRTY)
    }

    /// Counts what became of an entry.
    pub(crate) fn note_write_back(&mut self, written: bool) -> Visit {
        let stats = &mut self.mem.swap.zswap.stats;
        match written {
            true => stats.written_back_pages += 1,
            false => stats.reject_reclaim_fail += 1,
        }
        if written { Visit::Written } else { Visit::Fruitless }
    }
}
