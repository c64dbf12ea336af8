//! Large folios of anonymous memory: a first touch makes the largest that is allowed and has room, and what splits them.

use std::ops::Range;

use crate::engine::Engine;
use crate::folio::mapping::MappingKind;
use crate::folio::table::{MAX_ORDER, State};
use crate::folio::thp::{HugeAdvice, SizeCounter, SizeStats};
use crate::ids::{FolioId, MappingId, MemcgId, PageId, SwapSlot};
use crate::lru::lruvec::{UNEVICTABLE, list_index};
use crate::node::node::Mark;
use crate::node::nodes::ZoneId;
use crate::stat::Counter;
use crate::world::World;

/// What a large folio did not get.
enum NoRoom {
    NoFrames,
    NoCharge,
}

impl Engine {
    /// `MADV_HUGEPAGE` or `MADV_NOHUGEPAGE` for an anonymous mapping: it holds for faults from now on.
    pub fn advise_huge(&mut self, mapping: MappingId, advice: HugeAdvice) {
        let m = &mut self.pages.space.mappings[mapping.index()];
        if m.kind == MappingKind::Anon {
            m.huge = advice;
            m.orders = self.cfg.thp.orders(advice);
        }
    }

    /// The counters of the sizes of folios, of the whole machine: `hugepages-<size>kB/stats`.
    pub fn size_stats(&self) -> &SizeStats {
        &self.pages.size_stats
    }

    /// The order of the folio that a page belongs to, if it is in memory.
    pub fn folio_order(&self, page: PageId) -> Option<u8> {
        self.folio_of(page).map(|f| self.pages.folios.st(f).order())
    }

    /// Splits the large folio that holds a page, in the swap cache, too: of one whose read failed, each page can be tried by itself then.
    /// False: it is busy.
    pub fn split(&mut self, page: PageId) -> bool {
        self.drain_all();
        self.folio_of(page).is_none_or(|f| self.split_unless_busy(f))
    }

    /// The folio that holds a page: in its slot, or in the swap cache.
    pub(crate) fn folio_of(&self, page: PageId) -> Option<FolioId> {
        self.pages.folios.slot(page).folio().or_else(|| self.swap_entry(page).and_then(|s| self.swap.slots.cached(s)))
    }

    /// The pages of a folio.
    pub(crate) fn pages_of(&self, f: FolioId) -> Range<u32> {
        f.0..f.0 + self.pages.folios.st(f).nr_pages() as u32
    }

    /// The first page of the aligned range of an order around a page, if all its pages exist.
    pub(crate) fn aligned_range(&self, page: PageId, order: u8) -> Option<Range<u32>> {
        let (index, nr) = (self.page_index(page), 1u32 << order);
        let first = page.0.checked_sub((index & u64::from(nr - 1)) as u32)?;
        let all = self.pages.space.table_pages(self.table_of(page) as u32);
        let aligned = index & !u64::from(nr - 1);
        // Indices ascend: with both ends in place, so is what is between them.
        let whole = first >= all.start
            && first + nr <= all.end
            && self.page_index(PageId(first)) == aligned
            && self.page_index(PageId(first + nr - 1)) == aligned + u64::from(nr) - 1;
        whole.then_some(first..first + nr)
    }

    /// A large folio for the first touch of a page, of one of these orders. Not mapped yet.
    pub(crate) fn add_large_folio<W: World>(
        &mut self,
        w: &mut W,
        page: PageId,
        memcg: MemcgId,
        mut orders: u16,
    ) -> Option<FolioId> {
        let huge = self.pages.space.mappings[self.pages.space.mapping_of(page).index()].huge;
        let mut is_empty = false;
        while orders != 0 {
            let order = orders.ilog2() as u8;
            orders &= !(1 << order);
            let Some(range) = self.aligned_range(page, order) else { continue };
            // A smaller range lies within the larger one.
            is_empty = is_empty || range.clone().all(|p| self.pages.folios.slot(PageId(p)).is_empty());
            if !is_empty {
                continue;
            }
            match self.charge_large(w, memcg, 1 << order, huge) {
                Ok(zone) => {
                    self.count_size(memcg, order, SizeCounter::AnonFaultAlloc);
                    self.count_alloc(memcg, 1 << order);
                    let mut st = State::new(order);
                    st.set(State::UPTODATE | State::SWAPBACKED | State::ANON);
                    self.pages.folios.note_frames(PageId(range.start), 1 << order, zone);
                    return Some(self.add_folio(PageId(range.start), st, true));
                }
                Err(why) => {
                    self.count_size(memcg, order, SizeCounter::AnonFaultFallback);
                    if matches!(why, NoRoom::NoCharge) {
                        self.count_size(memcg, order, SizeCounter::AnonFaultFallbackCharge);
                    }
                }
            }
        }
        None
    }

    /// A large folio for a page in swap and the pages around it, of one of these orders, where all of them are there in a row and nowhere
    /// else, on a device that answers at once. Not read yet. What is a page of zeros and what is not are not read as one, and with zswap,
    /// which may hold some of them, nothing is.
    pub(crate) fn add_large_swap_folio<W: World>(
        &mut self,
        w: &mut W,
        page: PageId,
        slot: SwapSlot,
        memcg: MemcgId,
        orders: u16,
    ) -> Option<FolioId> {
        // 2 MiB are not read back as one.
        let mut orders = orders & !(1 << MAX_ORDER);
        if orders == 0 || self.cfg.zswap.is_some() || !self.swap.slots.is_synchronous(slot) {
            return None;
        }
        let huge = self.pages.space.mappings[self.pages.space.mapping_of(page).index()].huge;
        while orders != 0 {
            let order = orders.ilog2() as u8;
            orders &= !(1 << order);
            let Some(range) = self.aligned_range(page, order) else { continue };
            let (behind, nr) = (page.0 - range.start, 1 << order);
            if slot.offset() % nr != behind {
                continue;
            }
            let first = SwapSlot::new(slot.device(), slot.offset() - behind);
            let in_place = |p: u32| {
                let expected = first.nth(p - range.start);
                self.swap_entry(PageId(p)) == Some(expected)
                    && self.swap.slots.count(expected) == 1
                    && self.swap.slots.cached(expected).is_none()
            };
            if !range.clone().all(in_place) || self.swap.zeromap.run(first, nr).is_none() {
                continue;
            }
            let Ok(zone) = self.charge_large(w, memcg, u64::from(nr), huge) else { continue };
            self.count_alloc(memcg, u64::from(nr));
            return Some(self.place_swap_folio(PageId(range.start), order, first, zone, true));
        }
        None
    }

    /// Whether every page of a folio in the swap cache is in swap for its mapping, and none was given up.
    pub(crate) fn is_all_swapped(&self, f: FolioId) -> bool {
        let (pages, slot) = (self.pages_of(f), self.pages.folios.swap(f));
        let dropped = self.pages.dropping.range(PageId(pages.start)..PageId(pages.end)).next().is_some();
        !dropped && pages.into_iter().all(|p| self.swap_entry(PageId(p)) == Some(slot.nth(p - f.0)))
    }

    /// Counts for a size, and under the names that 2 MiB have of old.
    pub(crate) fn count_size(&mut self, memcg: MemcgId, order: u8, c: SizeCounter) {
        self.pages.size_stats.add(order, c);
        if order != MAX_ORDER {
            return;
        }
        let counter = match c {
            SizeCounter::AnonFaultAlloc => Counter::ThpFaultAlloc,
            SizeCounter::AnonFaultFallback => Counter::ThpFaultFallback,
            SizeCounter::AnonFaultFallbackCharge => Counter::ThpFaultFallbackCharge,
            SizeCounter::Swpout => Counter::ThpSwpout,
            SizeCounter::SwpoutFallback => Counter::ThpSwpoutFallback,
            SizeCounter::Split => Counter::ThpSplitPage,
            SizeCounter::Swpin => return,
        };
        self.groups.memcgs.get_mut(memcg).stat.add(counter, 1);
    }

    /// Frames and a charge for a large folio. A smaller one will do as well, so nobody runs out of memory for it.
    fn charge_large<W: World>(
        &mut self,
        w: &mut W,
        memcg: MemcgId,
        nr: u64,
        huge: HugeAdvice,
    ) -> Result<ZoneId, NoRoom> {
        let reclaim = self.cfg.thp.may_reclaim(huge);
        let zone = self.take_large_frames(w, nr, huge).ok_or(NoRoom::NoFrames)?;
        let charged = match self.groups.memcgs.try_charge(memcg, nr, true) {
            Ok(()) => true,
            Err(over) => reclaim && self.charge_slow(w, memcg, nr, over, false).is_ok(),
        };
        if charged {
            return Ok(zone);
        }
        self.frames.nodes.give_back(zone, nr);
        Err(NoRoom::NoCharge)
    }

    /// At most one round of reclaim, and kswapd is left alone but for `defer`.
    fn take_large_frames<W: World>(&mut self, w: &mut W, nr: u64, huge: HugeAdvice) -> Option<ZoneId> {
        if !self.frames.nodes.is_limited() {
            return Some(ZoneId::default());
        }
        if let Some(zone) = self.frames.nodes.take(self.frames.nid, nr, Mark::Low) {
            return Some(zone);
        }
        if self.cfg.thp.wakes_kswapd(huge) {
            self.wake_all_kswapds(w);
        }
        if let Some(zone) = self.frames.nodes.take(self.frames.nid, nr, Mark::Min) {
            return Some(zone);
        }
        if !self.cfg.thp.may_reclaim(huge) || self.frames.nodes.get(self.frames.nid).is_exhausted() {
            return None;
        }
        self.reclaim_memcg(w, MemcgId::ROOT, nr);
        [Mark::Low, Mark::Min].into_iter().find_map(|mark| self.frames.nodes.take(self.frames.nid, nr, mark))
    }

    /// Splits a large folio into single pages that keep its flags and its generation. It must not be locked or under writeback.
    /// On a list, the parts come to the list's head; taken off by reclaim, so are they, and the caller sees to them.
    pub(crate) fn split_folio(&mut self, f: FolioId) {
        let whole = self.pages.folios.st(f);
        debug_assert!(whole.has(State::LARGE) && !whole.has(State::LOCKED | State::WRITEBACK | State::ADDING));
        let own = self.pages.folios.lruvec(f);
        self.count_size(self.pages.lruvecs[own.index()].memcg, whole.order(), SizeCounter::Split);
        self.pages.work.split += whole.nr_pages();
        let list = whole.has(State::LRU).then(|| {
            self.pages.folios.links.del(f);
            let (v, t) = (&self.pages.lruvecs[own.index()], whole.type_index());
            match whole.generation() {
                _ if whole.has(State::UNEVICTABLE) => v.lists[UNEVICTABLE],
                Some(i) => v.r#gen.lists[i][t][self.pages.folios.zone_list(f)],
                None => v.lists[list_index(t, whole.has(State::ACTIVE))],
            }
        });
        let stamp = self.pages.folios.links.stamp(f);
        let slots = whole.has(State::SWAPCACHE).then(|| self.pages.folios.swap(f));
        for page in self.pages_of(f).map(PageId) {
            let mut st = whole.of_order(0);
            if !self.pages.space.is_mapped(page) {
                st.clear(State::MAPPED);
            }
            let part = self.pages.folios.split_off(page, st);
            self.pages.folios.links.set_stamp(part, stamp);
            if let Some(slot) = slots {
                let slot = slot.nth(page.0 - f.0);
                self.pages.folios.set_swap(part, slot);
                self.swap.slots.add_to_cache(slot, 0, part);
            }
            if let Some(list) = list {
                self.pages.folios.put_on(list, part, st, false);
            }
        }
    }

    /// Splits a folio for good, so that a part of it may be treated apart. False: it is busy.
    pub(crate) fn split_unless_busy(&mut self, f: FolioId) -> bool {
        let st = self.pages.folios.st(f);
        let free = st.has(State::LRU) && !st.has(State::LOCKED | State::WRITEBACK);
        if free && st.has(State::LARGE) {
            self.split_folio(f);
        }
        free
    }
}
