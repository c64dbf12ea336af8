//! Anonymous folios and the swap cache: taking slots, giving them back.
//!
//! Mechanism: `docs/mechanisms.md#the-swap-cache`.

use crate::config::lru::RefaultTest;
use crate::folio::flags::FolioFlags;
use crate::folio::slot::Slot;
use crate::folio::table::FolioTable;
use crate::ids::{FolioId, MemcgId, PageId, SwapSlot, ZoneId};
use crate::lru::batch::Batch;
use crate::lru::lruvec::Lruvec;
use crate::memcg::group::Memcgs;
use crate::node::page_blocks::MigrateType;
use crate::stat::Counter;
use crate::swap::SwapHost;
use crate::swap_cache::SwapCache;
use crate::world::{Ack, Effect, World};
use crate::zswap::ZswapEntry;

/// The parts of the engine that the swap allocator may touch.
struct Host<'a, W> {
    folios: &'a mut FolioTable,
    memcgs: &'a mut Memcgs,
    lruvecs: &'a [Lruvec],
    w: &'a mut W,
}

impl<W: World> SwapHost for Host<'_, W> {
    fn droppable(&self, f: FolioId) -> Option<(SwapSlot, u8)> {
        let st = self.folios.st(f);
        let busy = st.has(FolioFlags::LOCKED | FolioFlags::WRITEBACK) || !st.has(FolioFlags::UPTODATE);
        (st.has(FolioFlags::SWAPCACHE) && !busy).then(|| (self.folios.swap(f), st.order()))
    }

    fn dropped(&mut self, f: FolioId) {
        leave_swap_cache(self.folios, self.memcgs, self.lruvecs, f);
    }

    fn discard(&mut self, first: SwapSlot, pages: u32) -> Ack {
        self.w.effect(Effect::Discard { first, pages })
    }
}

/// The data of the folio exists only in memory now: it is dirty.
fn leave_swap_cache(folios: &mut FolioTable, memcgs: &mut Memcgs, lruvecs: &[Lruvec], f: FolioId) {
    let st = folios.st(f);
    debug_assert!(st.has(FolioFlags::SWAPCACHE) && st.has(FolioFlags::ANON), "{f:?} is not in the swap cache: {st:?}");
    debug_assert!(!st.has(FolioFlags::WRITEBACK), "{f:?} is being written to its slot: {st:?}");
    note_swap_cache(folios, memcgs, lruvecs, f, -1);
    folios.clear(f, FolioFlags::SWAPCACHE);
    folios.set(f, FolioFlags::DIRTY);
    folios.set_swap(f, SwapSlot::NONE);
}

/// Pages in the swap cache, by memcg.
fn note_swap_cache(folios: &FolioTable, memcgs: &mut Memcgs, lruvecs: &[Lruvec], f: FolioId, sign: i64) {
    let nr = folios.st(f).nr_pages() as i64 * sign;
    let m = memcgs.get_mut(lruvecs[folios.lruvec(f).index()].memcg);
    m.swap_cached = m.swap_cached.checked_add_signed(nr).expect("the swap cache never holds less than nothing");
}

impl<W: World> SwapCache<'_, W> {
    /// The same for a page that is charged already. `in_fault`: someone waits for it.
    pub(crate) fn add_charged_swap_folio(
        &mut self,
        page: PageId,
        slot: SwapSlot,
        memcg: MemcgId,
        zone: ZoneId,
        in_fault: bool,
    ) -> FolioId {
        self.pages.count_memcg(memcg, Counter::Pgalloc, 1);
        self.place_swap_folio(page, 0, slot, zone, in_fault)
    }

    /// Puts a new folio into the swap cache, with its first page and slot.
    pub(crate) fn place_swap_folio(
        &mut self,
        page: PageId,
        order: u8,
        slot: SwapSlot,
        zone: ZoneId,
        in_fault: bool,
    ) -> FolioId {
        let mut st = FolioFlags::new(order);
        debug_assert!(self.swap.slots.is_referenced(slot, order), "{slot:?} is read and holds nothing");
        st.set(FolioFlags::SWAPBACKED | FolioFlags::ANON | FolioFlags::SWAPCACHE);
        self.pages.folios.note_frames(page, st.nr_pages(), zone);
        let f = self.pages.folios.alloc(page, st);
        self.pages.folios.set_swap(f, slot);
        // Until it is read and mapped, the slots of its pages go on to hold their swap entries.
        for p in self.pages.pages_of(f) {
            self.pages.folios.store(PageId(p), Slot::value(u64::from(slot.nth(p - f.0).0)));
        }
        let shadow = self.swap.slots.shadow(slot);
        self.swap.slots.add_to_cache(slot, order, f);
        self.note_swap_cache(f, 1);
        self.place_refault(f, st, shadow, in_fault);
        f
    }

    /// Puts a new folio that comes from swap on its way to a list, by the shadow that its slot
    /// held.
    #[inline]
    pub(crate) fn place_refault(&mut self, f: FolioId, mut st: FolioFlags, shadow: Option<u64>, in_fault: bool) {
        if let Some(shadow) = shadow.filter(|_| self.cfg.lru.refault != RefaultTest::None) {
            st = self.pages.workingset_refault(
                self.groups,
                self.swap.slots.free_pages(),
                self.pages.folios.lruvec(f),
                st,
                shadow,
                in_fault,
            );
        }
        let st = self.pages.state_of_new(st, in_fault);
        self.pages.folios.put(f, st);
        self.pages.batch_push(Batch::Add, f, st);
    }

    /// Gives an anonymous folio swap slots, puts it into the swap cache and makes it dirty, so that
    /// it will be written. False: there are no slots.
    pub(crate) fn add_to_swap(&mut self, f: FolioId) -> bool {
        let memcg = self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg;
        let st = self.pages.folios.st(f);
        debug_assert!(st.has(FolioFlags::ANON) && !st.has(FolioFlags::SWAPCACHE), "{f:?} gets slots: {st:?}");
        let Some(slot) = self.take_slots(st.order(), memcg) else { return false };
        self.swap.slots.add_to_cache(slot, st.order(), f);
        self.pages.folios.set_swap(f, slot);
        self.note_swap_cache(f, 1);
        self.pages.folios.set(f, FolioFlags::SWAPCACHE | FolioFlags::DIRTY);
        true
    }

    /// Slots for a folio of an order, charged to its group. None: there are none.
    pub(crate) fn take_slots(&mut self, order: u8, memcg: MemcgId) -> Option<SwapSlot> {
        let nr = 1u64 << order;
        if self.groups.memcgs.swap_room(memcg, u64::MAX) < nr {
            self.groups.memcgs.note_swap_failed(memcg, true);
            return None;
        }
        let mut host = Host {
            folios: &mut self.pages.folios,
            memcgs: &mut self.groups.memcgs,
            lruvecs: &self.pages.lruvecs,
            w: self.world,
        };
        let slot = self.swap.slots.alloc(order, memcg, self.pages.cpu, &mut host);
        self.settle_swap();
        match slot {
            Some(_) => self.groups.memcgs.add_swap(memcg, nr as i64),
            None => self.groups.memcgs.note_swap_failed(memcg, false),
        }
        slot
    }

    /// A folio of one page joins the swap cache with a slot of its own; the page's slot holds the
    /// swap entry from then on.
    pub(crate) fn join_swap_cache(&mut self, f: FolioId, slot: SwapSlot) {
        self.pages.folios.set_swap(f, slot);
        self.pages.folios.store(self.pages.folios.page(f), Slot::value(u64::from(slot.0)));
        self.swap.slots.add_to_cache(slot, 0, f);
        self.note_swap_cache(f, 1);
        self.pages.folios.set(f, FolioFlags::SWAPCACHE);
    }

    /// Pages in the swap cache, by memcg.
    fn note_swap_cache(&mut self, f: FolioId, sign: i64) {
        note_swap_cache(&self.pages.folios, &mut self.groups.memcgs, &self.pages.lruvecs, f, sign);
    }

    /// Takes a folio out of the swap cache if no page table needs a slot of it. Its data exists
    /// only here then: dirty.
    pub(crate) fn release_swap_cache(&mut self, f: FolioId) {
        self.release_slots(f, false);
    }

    /// The same for a folio that was read from a device that answers at once: Linux does that past
    /// the swap cache, and so frees its slots otherwise.
    pub(crate) fn release_read_folio(&mut self, f: FolioId) {
        self.release_slots(f, true);
    }

    fn release_slots(&mut self, f: FolioId, is_read_past: bool) {
        let (slot, order) = (self.pages.folios.swap(f), self.pages.folios.st(f).order());
        if self.swap.slots.is_referenced(slot, order) {
            return;
        }
        leave_swap_cache(&mut self.pages.folios, &mut self.groups.memcgs, &self.pages.lruvecs, f);
        match is_read_past {
            true => self.swap.slots.free_read(slot, order),
            false => self.swap.slots.drop_cache(slot, order, None),
        }
        self.settle_swap();
    }

    /// Frees the slot of a page that was read from it, and to which no other page table refers.
    #[inline]
    pub(crate) fn free_read_slot(&mut self, slot: SwapSlot) {
        let quiet = self.swap.zswap.is_empty() && !self.swap.slots.has_background_work();
        let Some(memcg) = (if quiet { self.swap.slots.free_sole(slot) } else { None }) else {
            self.swap.slots.put(slot);
            return self.settle_swap();
        };
        self.groups.memcgs.add_swap(memcg, -1);
        self.swap.zeromap.clear(slot, 1);
        self.world.effect(Effect::FreeSlot { slot });
    }

    /// Settles the taking and freeing of slots: uncharges freed slots, tells the driver of them,
    /// and does background work of the devices.
    #[inline]
    pub(crate) fn settle_swap(&mut self) {
        // Most swap-ins and swap-outs leave nothing to settle.
        if self.swap.slots.has_freed() || self.swap.slots.has_background_work() {
            self.settle_freed_slots();
        }
    }

    fn settle_freed_slots(&mut self) {
        loop {
            while let Some(freed) = self.swap.slots.pop_freed() {
                self.groups.memcgs.add_swap(freed.memcg, -i64::from(freed.nr));
                for slot in (0..freed.nr).map(|i| freed.slot.nth(i)) {
                    self.swap.zeromap.clear(slot, 1);
                    self.forget_stored(slot);
                    self.world.effect(Effect::FreeSlot { slot });
                }
            }
            if !self.swap.slots.has_background_work() {
                return;
            }
            let mut host = Host {
                folios: &mut self.pages.folios,
                memcgs: &mut self.groups.memcgs,
                lruvecs: &self.pages.lruvecs,
                w: self.world,
            };
            self.swap.slots.background_work(&mut host);
        }
    }

    /// A discard that was pending ended, well or not: the cluster that starts with this slot can be
    /// used again.
    pub(crate) fn discard_done(&mut self, first: SwapSlot) {
        self.swap.slots.discard_done(first);
        self.settle_swap();
    }

    /// The slot is free, or gets other data: no compressed copy of the old is kept.
    pub(crate) fn forget_stored(&mut self, slot: SwapSlot) {
        if self.swap.zswap.is_empty() {
            return;
        }
        let pages = self.swap.zswap.pool_pages();
        let Some(ZswapEntry { memcg, bytes, .. }) = self.swap.zswap.remove(slot) else { return };
        self.world.effect(Effect::ZswapDrop { slot });
        self.frames.nodes.free_kernel_pages(pages - self.swap.zswap.pool_pages(), MigrateType::Movable);
        self.groups.memcgs.uncharge_zswap(memcg, u64::from(bytes));
    }

    /// A slot is charged to another group: so is what is stored under it, which counts as stored
    /// now.
    pub(crate) fn move_stored(&mut self, slot: SwapSlot, to: MemcgId) {
        let Some(ZswapEntry { page, memcg, bytes, .. }) = self.swap.zswap.remove(slot) else { return };
        self.groups.memcgs.uncharge_zswap(memcg, u64::from(bytes));
        self.swap.zswap.insert(slot, page, to, bytes);
        self.groups.memcgs.charge_zswap(to, u64::from(bytes));
    }

    /// Drops an anonymous folio whose data is in swap, or that was lazily freed.
    pub(crate) fn free_anon(&mut self, f: FolioId, target: MemcgId) {
        let st = self.pages.folios.st(f);
        debug_assert!(
            st.has(FolioFlags::ANON) && !st.has(FolioFlags::MAPPED | FolioFlags::WRITEBACK),
            "{f:?} goes: {st:?}"
        );
        if !st.has(FolioFlags::SWAPCACHE) {
            let first = self.pages.folios.page(f).0;
            for p in first..first + st.nr_pages() as u32 {
                self.pages.folios.store(PageId(p), Slot::EMPTY);
            }
            self.pages.count(f, Counter::Pglazyfreed, st.nr_pages());
        } else {
            let slot = self.pages.folios.swap(f);
            let shadow = self.pages.workingset_eviction(f, target);
            self.swap.slots.drop_cache(slot, st.order(), shadow.as_value());
            self.note_swap_cache(f, -1);
            self.settle_swap();
        }
        let (mut charged, world) = self.memcontrol_and_world();
        charged.free_folio(world, f, st);
    }
}
