//! Swap-in without the swap cache: a fault on a page whose copy in swap is dropped once it is read
//! (Linux's `SWP_SYNCHRONOUS_IO`, and writes). The result is that of the swap cache: if the device
//! answers at once, nobody could see the folio there.
//!
//! Mechanism: `docs/mechanisms.md#the-swap-cache`.

use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, MemcgId, PageId, SwapSlot};
use crate::stat::Counter;
use crate::touch::{Outcome, Touch};
use crate::world::{Ack, Effect, World};

impl<W: World> FaultContext<'_, W> {
    /// Whether a slot can be read and freed at once: it holds the data itself, for one page table
    /// alone, to be read as a single page, and the copy is not needed afterwards.
    #[inline]
    pub(crate) fn may_swap_in_uncached(&self, slot: SwapSlot, touch: Touch, orders: u16) -> bool {
        let swap = &self.mem.swap;
        let single = orders == 0 || !self.mem.cfg.thp.swap_in;
        let drops_copy = touch.is_write() || (swap.slots.is_synchronous(slot) && !self.world.keeps_swap_copy(slot));
        single && drops_copy && swap.slots.is_sole(slot) && !swap.needs_no_read(slot)
    }

    /// Makes, reads and maps a folio, and gives the slot back.
    pub(crate) fn swap_in_uncached(
        &mut self,
        page: PageId,
        slot: SwapSlot,
        memcg: MemcgId,
    ) -> Result<Outcome, MemcgId> {
        let f = self.add_folio_of_slot(page, slot, memcg)?;
        let own = self.mem.pages.folios.lruvec(f);
        self.mem.pages.count_lruvec(own, Counter::Pgmajfault, 1);
        self.mem.pages.count_lruvec(own, Counter::Pswpin, 1);
        let ack = self.world.effect(Effect::SwapIn { page, order: 0, slot });
        if ack != Ack::Done {
            return Ok(self.swap_in_later(page, f, slot, ack));
        }
        self.mem.swap_cache(self.world).free_read_slot(slot);
        // Its data exists only here now.
        let mut st = self.mem.pages.folios.st(f);
        st.clear(FolioFlags::SWAPCACHE);
        st.set(FolioFlags::UPTODATE | FolioFlags::DIRTY);
        self.mem.pages.folios.put(f, st);
        self.mem.pages.map_page(self.world, f, page, true, true);
        Ok(Outcome::Major)
    }

    /// A folio for the page, not read yet. While it is put on a list it counts as one in the swap
    /// cache.
    fn add_folio_of_slot(&mut self, page: PageId, slot: SwapSlot, memcg: MemcgId) -> Result<FolioId, MemcgId> {
        let zone = self.alloc().charge(memcg, 1)?;
        self.mem.pages.count_memcg(memcg, Counter::Pgalloc, 1);
        self.mem.pages.folios.note_frames(page, 1, zone);
        let in_fault = self.mem.pages.is_fault_a_use(page);
        let mut st = FolioFlags::new(0);
        st.set(FolioFlags::SWAPBACKED | FolioFlags::ANON | FolioFlags::SWAPCACHE);
        let f = self.mem.pages.folios.alloc(page, st);
        let shadow = self.mem.swap.slots.shadow(slot);
        self.mem.swap_cache(self.world).place_refault(f, st, shadow, in_fault);
        Ok(f)
    }

    /// The device takes a while, or has failed: the folio waits in the swap cache.
    fn swap_in_later(&mut self, page: PageId, f: FolioId, slot: SwapSlot, ack: Ack) -> Outcome {
        let memcg = self.mem.pages.lruvecs[self.mem.pages.folios.lruvec(f).index()].memcg;
        self.mem.swap_cache(self.world).join_swap_cache(f, slot);
        self.mem.pages.note_read(f, ack);
        if ack == Ack::Failed {
            return Outcome::Failed;
        }
        self.swap_read_ahead(page, memcg);
        Outcome::Waiting
    }
}
