//! Anonymous folios that go to a swap device that answers at once. The outcome is the same as
//! through the swap cache, but the folio is not put there: nobody could see it.
//!
//! Counts that the folios of a batch share are updated at its end, as for clean file folios
//! (`workingset::evict_clean`).
//!
//! Mechanism: `docs/mechanisms.md#the-swap-cache`.

use crate::folio::flags::FolioFlags;
use crate::folio::slot::Slot;
use crate::ids::{FolioId, SwapSlot};
use crate::lru::lru_list::{ANON, FILE};
use crate::reclaim::Reclaim;
use crate::reclaim::shrink::{SLOW, Verdict};
use crate::scan::ShrinkStat;
use crate::stat::Counter;
use crate::workingset::evict_clean::EvictBatch;
use crate::world::{Ack, Content, Effect, World};

/// One mapped page of anonymous memory that has no slot yet, with nothing under way.
#[inline(always)]
fn is_plain_anon(st: FolioFlags) -> bool {
    const PLAIN: u32 = FolioFlags::ANON | FolioFlags::SWAPBACKED | FolioFlags::MAPPED;
    const ODD: u32 = FolioFlags::LOCKED
        | FolioFlags::UNEVICTABLE
        | FolioFlags::WRITEBACK
        | FolioFlags::SWAPCACHE
        | FolioFlags::LARGE;
    st.0 & (PLAIN | ODD) == PLAIN
}

/// A batch of isolated folios of one lruvec, and the counts that are added at its end.
pub(crate) struct ShrinkBatch {
    pub(crate) evict: EvictBatch,
    /// Swap slots that the batch has taken and not charged yet.
    slots: u64,
    /// Swap slots that the group may still use beside `slots`.
    swap_room: u64,
    /// Plain anonymous folios of the batch go straight to swap.
    swaps_at_once: bool,
}

impl ShrinkBatch {
    /// Whether a folio of the batch, with flags `st`, goes straight to swap.
    #[inline(always)]
    pub(crate) fn swaps_out(&self, st: FolioFlags) -> bool {
        self.swaps_at_once && is_plain_anon(st)
    }

    /// Whether a folio of the batch is a clean, unmapped file folio: dropped with the others,
    /// unless something holds it in place.
    #[inline(always)]
    pub(crate) fn takes(&self, st: FolioFlags) -> bool {
        self.evict.t == FILE && !st.has(SLOW)
    }
}

impl<W: World> Reclaim<'_, W> {
    /// Whether plain anonymous folios may go straight to the device: they may be unmapped and
    /// written, and neither zswap nor a policy beside the lists takes part.
    fn may_swap_at_once(&self) -> bool {
        let allowed = self.sc.may_unmap && self.sc.may_writepage;
        let direct = self.mem.cfg.zswap.is_none() && self.mem.swap.zswap.is_empty();
        allowed && direct && self.mem.pages.ext.is_none()
    }

    /// Checks, unmaps and writes a plain anonymous folio of the batch, and frees it unless the
    /// device takes a while.
    #[inline]
    pub(crate) fn swap_out(
        &mut self,
        f: FolioId,
        st: FolioFlags,
        d: &mut ShrinkBatch,
        stat: &mut ShrinkStat,
    ) -> Verdict {
        if let Err(stays) = self.check_page(f, st) {
            return stays;
        }
        let Some(slot) = self.take_slot(d, stat) else { return Verdict::Activate };
        let page = self.mem.pages.folios.page(f);
        self.world.effect(Effect::Unmap { page });
        // With its first slot it counts as dirty anyway.
        self.world.test_and_clear_dirty(page);
        self.mem.pages.space.set_mapped(page, self.mem.pages.folios.node_of(page), false);
        let content = self.world.content(page);
        if content == Content::Zero && self.mem.cfg.swap.policy.zeromap {
            return self.swap_out_zeros(f, slot, d, stat);
        }
        self.mem.swap.zeromap.clear(slot, 1);
        let ack = self.world.effect(Effect::SwapOut { page, order: 0, slot });
        if ack != Ack::Done {
            return self.swap_out_later(f, slot, ack, d, stat);
        }
        let st = self.mem.pages.folios.st(f);
        let shadow = self.mem.pages.shadow_in(&mut d.evict, st);
        self.mem.swap.slots.fill_slot(slot, shadow.as_value());
        self.mem.frames.note_reclaim_written(&self.mem.cfg, self.world, 1);
        self.mem.memcontrol().release_evicted(self.world, f, st, Slot::value(u64::from(slot.0)), &mut d.evict);
        Verdict::Freed
    }

    /// An unmapped folio is in the swap cache, and dirty.
    fn join_unmapped(&mut self, f: FolioId, slot: SwapSlot) {
        self.mem.swap_cache(self.world).join_swap_cache(f, slot);
        self.mem.swap.slots.get(slot);
        self.mem.pages.folios.clear(f, FolioFlags::MAPPED | FolioFlags::EXEC);
        self.mem.pages.folios.set(f, FolioFlags::DIRTY);
    }

    /// Nothing is written of a page of zeros.
    fn swap_out_zeros(&mut self, f: FolioId, slot: SwapSlot, d: &mut ShrinkBatch, stat: &mut ShrinkStat) -> Verdict {
        self.finish_batch(d, stat);
        self.join_unmapped(f, slot);
        self.mem.swap_cache(self.world).store_zeros(f, Content::Zero);
        self.mem.writeout(self.world).clear_dirty(f);
        self.mem.pages.count(f, Counter::NrVmscanWrite, 1);
        stat.pageout += 1;
        stat.reclaimed += 1;
        let target = self.sc.target;
        self.mem.swap_cache(self.world).free_anon(f, target);
        self.resume_batch(d);
        Verdict::Freed
    }

    /// The device takes a while, or has failed: the folio waits in the swap cache.
    fn swap_out_later(
        &mut self,
        f: FolioId,
        slot: SwapSlot,
        ack: Ack,
        d: &mut ShrinkBatch,
        stat: &mut ShrinkStat,
    ) -> Verdict {
        self.finish_batch(d, stat);
        self.join_unmapped(f, slot);
        self.mem.pages.folios.set(f, FolioFlags::RECLAIM);
        self.mem.pages.count(f, Counter::Pswpout, 1);
        let mut out = self.mem.writeout(self.world);
        out.begin_write(f);
        if ack != Ack::Pending {
            out.end_write(f, false, false);
        }
        self.mem.pages.count(f, Counter::NrVmscanWrite, 1);
        stat.pageout += 1;
        self.resume_batch(d);
        Verdict::Keep
    }

    /// Takes a slot for a folio of the batch: mostly the next one, which is charged at the batch's
    /// end.
    #[inline]
    fn take_slot(&mut self, d: &mut ShrinkBatch, stat: &mut ShrinkStat) -> Option<SwapSlot> {
        let memcg = self.mem.pages.lruvecs[d.evict.own.index()].memcg;
        if d.slots < d.swap_room
            && let Some(slot) = self.mem.swap.slots.alloc_behind_last(self.mem.pages.cpu, memcg)
        {
            d.slots += 1;
            return Some(slot);
        }
        self.finish_batch(d, stat);
        let slot = self.mem.swap_cache(self.world).take_slots(0, memcg);
        self.resume_batch(d);
        slot
    }

    /// Prepares for a batch of isolated folios.
    pub(crate) fn start_batch(&self, first: Option<FolioId>) -> ShrinkBatch {
        let evict = self.mem.pages.start_evict_batch(first, self.sc.target);
        let swaps_at_once = evict.t == ANON && self.may_swap_at_once();
        let mut d = ShrinkBatch { evict, slots: 0, swap_room: 0, swaps_at_once };
        if swaps_at_once {
            d.swap_room = self.swap_room_of(&d);
        }
        d
    }

    /// Goes on with a batch whose counts were all added, after something that may have changed the
    /// state it relies on.
    pub(crate) fn resume_batch(&self, d: &mut ShrinkBatch) {
        self.mem.pages.resume_evict_batch(&mut d.evict);
        if d.swaps_at_once {
            d.swap_room = self.swap_room_of(d);
        }
    }

    fn swap_room_of(&self, d: &ShrinkBatch) -> u64 {
        self.mem.groups.memcgs.swap_room(self.mem.pages.lruvecs[d.evict.own.index()].memcg, u64::MAX)
    }

    /// Accounts for what a batch has dropped, and for the slots that it has taken.
    #[inline]
    pub(crate) fn finish_batch(&mut self, d: &mut ShrinkBatch, stat: &mut ShrinkStat) {
        if d.slots > 0 {
            let memcg = self.mem.pages.lruvecs[d.evict.own.index()].memcg;
            self.mem.groups.memcgs.add_swap(memcg, std::mem::take(&mut d.slots) as i64);
        }
        let dropped = d.evict.dropped;
        if dropped == 0 {
            return;
        }
        if d.evict.t == ANON {
            // All these pages were written.
            for c in [Counter::Pswpout, Counter::NrWritten, Counter::NrVmscanWrite] {
                self.mem.pages.count_lruvec(d.evict.own, c, dropped);
            }
            self.mem.writeback.writes_failed = 0;
            stat.pageout += dropped;
        }
        self.mem.memcontrol().finish_evict_batch(&mut d.evict, stat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folio_that_is_busy_or_in_the_swap_cache_is_not_plain() {
        let plain = FolioFlags(
            FolioFlags::ANON | FolioFlags::SWAPBACKED | FolioFlags::MAPPED | FolioFlags::DIRTY | FolioFlags::UPTODATE,
        );
        assert!(is_plain_anon(plain));
        for odd in [
            FolioFlags::LOCKED,
            FolioFlags::WRITEBACK,
            FolioFlags::SWAPCACHE,
            FolioFlags::UNEVICTABLE,
            FolioFlags::new(2).0,
        ] {
            assert!(!is_plain_anon(FolioFlags(plain.0 | odd)), "{odd:#x}");
        }
        for needed in [FolioFlags::ANON, FolioFlags::SWAPBACKED, FolioFlags::MAPPED] {
            assert!(!is_plain_anon(FolioFlags(plain.0 & !needed)), "{needed:#x}");
        }
    }
}
