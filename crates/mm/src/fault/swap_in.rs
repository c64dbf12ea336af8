//! Faults on anonymous memory that make a folio: from swap, or a large one from nothing.
//!
//! Mechanism: `docs/mechanisms.md#the-swap-cache`, `docs/mechanisms.md#large-folios`.

use crate::alloc::large::NoRoom;
use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::folio::size_stats::SizeCounter;
use crate::folio::slot::Slot;
use crate::ids::{FolioId, MAX_ORDER, MemcgId, PageId, SwapSlot};
use crate::stat::Counter;
use crate::touch::{Outcome, Touch};
use crate::world::{Ack, World};

impl<W: World> FaultContext<'_, W> {
    /// Brings a page in from swap. A device that answers at once goes round the swap cache; pages
    /// of other devices are read through it.
    pub(crate) fn swap_in(
        &mut self,
        page: PageId,
        slot: SwapSlot,
        touch: Touch,
        memcg: MemcgId,
        orders: u16,
    ) -> Result<Outcome, MemcgId> {
        if self.may_swap_in_uncached(slot, touch, orders) {
            return self.swap_in_uncached(page, slot, memcg);
        }
        let (mut outcome, mut read_ahead) = (Outcome::Minor, false);
        let f = match self.mem.swap.slots.cached(slot) {
            Some(f) => f,
            None => {
                outcome = Outcome::Major;
                let large = if self.mem.cfg.thp.swap_in { orders } else { 0 };
                match self.add_large_swap_folio(page, slot, memcg, large) {
                    Some(f) => f,
                    None => {
                        read_ahead = true;
                        self.add_swap_folio(page, slot, memcg)?
                    }
                }
            }
        };
        let st = self.mem.pages.folios.st(f);
        if st.has(FolioFlags::LOCKED) {
            return Ok(Outcome::Waiting);
        }
        if !st.has(FolioFlags::UPTODATE) {
            self.mem.pages.count(f, Counter::Pgmajfault, 1);
            let no_read = self.mem.swap.needs_no_read(slot) && !self.mem.swap.slots.is_synchronous(slot);
            let ack = self.read_folio(f);
            // A device that answers at once gains nothing by reading ahead.
            if read_ahead && (ack == Ack::Pending || no_read) {
                // Locked, so that reclaim for the pages read ahead does not evict this folio.
                self.mem.pages.folios.set(f, FolioFlags::LOCKED);
                self.swap_read_ahead(page, memcg);
                if ack == Ack::Done {
                    self.mem.pages.folios.clear(f, FolioFlags::LOCKED);
                }
            }
            match ack {
                Ack::Done => {}
                Ack::Pending => return Ok(Outcome::Waiting),
                Ack::Failed => return Ok(Outcome::Failed),
            }
        }
        self.note_swap_ra_hit(f);
        // A large folio that is in swap as a whole is mapped as a whole, else the page that was
        // touched.
        let whole = st.has(FolioFlags::LARGE) && self.mem.swap.is_all_swapped(&self.mem.pages, f);
        let pages = if whole { self.mem.pages.pages_of(f) } else { page.0..page.0 + 1 };
        for p in pages.clone() {
            self.mem.pages.folios.store(PageId(p), Slot::resident(f));
            self.mem.swap.slots.put(self.mem.pages.folios.swap(f).nth(p - f.0));
        }
        self.mem.swap_cache(self.world).settle_swap();
        self.drop_swap_copy(f, slot, touch);
        pages.for_each(|p| self.mem.pages.map_page(self.world, f, PageId(p), true, true));
        Ok(outcome)
    }

    /// The copy in swap is dropped if it will be stale at once, if swap is short, or if reading
    /// again costs nothing.
    fn drop_swap_copy(&mut self, f: FolioId, slot: SwapSlot, touch: Touch) {
        let synchronous = self.mem.swap.slots.is_synchronous(slot) && !self.world.keeps_swap_copy(slot);
        let drop_copy =
            synchronous || touch.is_write() || self.mem.swap.is_swap_full(&self.mem.pages, &self.mem.groups, f);
        if drop_copy && !self.mem.pages.folios.st(f).has(FolioFlags::WRITEBACK) {
            match synchronous {
                true => self.mem.swap_cache(self.world).release_read_folio(f),
                false => self.mem.swap_cache(self.world).release_swap_cache(f),
            }
        }
    }

    /// A folio for a page that is in swap, not read yet.
    pub(crate) fn add_swap_folio(&mut self, page: PageId, slot: SwapSlot, memcg: MemcgId) -> Result<FolioId, MemcgId> {
        let zone = self.alloc().charge(memcg, 1)?;
        // Reclaim for it may have had zswap write this very page back: then it is in the swap cache
        // already.
        if let Some(f) = self.mem.swap.slots.cached(slot) {
            self.mem.memcontrol().cancel_charge(memcg, zone, 1);
            return Ok(f);
        }
        let in_fault = self.mem.pages.is_fault_a_use(page);
        Ok(self.mem.swap_cache(self.world).add_charged_swap_folio(page, slot, memcg, zone, in_fault))
    }

    /// A large folio for the first touch of a page, of one of these orders. Not mapped yet.
    pub(crate) fn add_large_folio(&mut self, page: PageId, memcg: MemcgId, mut orders: u16) -> Option<FolioId> {
        let huge = self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()].huge;
        let mut is_empty = false;
        while orders != 0 {
            let order = orders.ilog2() as u8;
            orders &= !(1 << order);
            let Some(range) = self.mem.pages.aligned_range(page, order) else { continue };
            // A smaller range lies within the larger one.
            is_empty = is_empty || range.clone().all(|p| self.mem.pages.folios.slot(PageId(p)).is_empty());
            if !is_empty {
                continue;
            }
            match self.alloc().charge_large(memcg, 1 << order, huge) {
                Ok(zone) => {
                    self.mem.pages.count_size(memcg, order, SizeCounter::AnonFaultAlloc);
                    self.mem.pages.count_memcg(memcg, Counter::Pgalloc, 1 << order);
                    let mut st = FolioFlags::new(order);
                    st.set(FolioFlags::UPTODATE | FolioFlags::SWAPBACKED | FolioFlags::ANON);
                    self.mem.pages.folios.note_frames(PageId(range.start), 1 << order, zone);
                    let in_fault = self.mem.pages.is_fault_a_use(page);
                    return Some(self.mem.pages.add_folio(PageId(range.start), st, in_fault));
                }
                Err(why) => {
                    self.mem.pages.count_size(memcg, order, SizeCounter::AnonFaultFallback);
                    if matches!(why, NoRoom::NoCharge) {
                        self.mem.pages.count_size(memcg, order, SizeCounter::AnonFaultFallbackCharge);
                    }
                }
            }
        }
        None
    }

    /// A large folio, not read yet, for a page in swap and the pages around it, of one of these
    /// orders. All of them are in swap alone, in slots in a row, on a device that answers at once.
    /// Pages of zeros and other pages are not read as one; with zswap, which may hold some, none
    /// are.
    fn add_large_swap_folio(&mut self, page: PageId, slot: SwapSlot, memcg: MemcgId, orders: u16) -> Option<FolioId> {
        // 2 MiB are not read back as one.
        let mut orders = orders & !(1 << MAX_ORDER);
        if orders == 0 || self.mem.cfg.zswap.is_some() || !self.mem.swap.slots.is_synchronous(slot) {
            return None;
        }
        let huge = self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()].huge;
        while orders != 0 {
            let order = orders.ilog2() as u8;
            orders &= !(1 << order);
            let Some(range) = self.mem.pages.aligned_range(page, order) else { continue };
            let (behind, nr) = (page.0 - range.start, 1 << order);
            if slot.offset() % nr != behind {
                continue;
            }
            let first = SwapSlot::new(slot.device(), slot.offset() - behind);
            let in_place = |p: u32| {
                let expected = first.nth(p - range.start);
                self.mem.pages.swap_entry(PageId(p)) == Some(expected)
                    && self.mem.swap.slots.count(expected) == 1
                    && self.mem.swap.slots.cached(expected).is_none()
            };
            if !range.clone().all(in_place) || self.mem.swap.zeromap.run(first, nr).is_none() {
                continue;
            }
            let Ok(zone) = self.alloc().charge_large(memcg, u64::from(nr), huge) else { continue };
            self.mem.pages.count_memcg(memcg, Counter::Pgalloc, u64::from(nr));
            let in_fault = self.mem.pages.is_fault_a_use(page);
            return Some(self.mem.swap_cache(self.world).place_swap_folio(
                PageId(range.start),
                order,
                first,
                zone,
                in_fault,
            ));
        }
        None
    }
}
