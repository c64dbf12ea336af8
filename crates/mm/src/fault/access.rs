//! Accesses and faults: a hit marks the folio, a miss makes one (2.2, 3.2, 8.2).

use crate::config::RefaultTest;
use crate::engine::Engine;
use crate::folio::mapping::{Fill, MappingKind};
use crate::folio::slot::Slot;
use crate::folio::table::State;
use crate::folio::thp::SizeCounter;
use crate::ids::{FolioId, MemcgId, PageId, SwapSlot};
use crate::lru::batch::Batch;
use crate::node::nodes::ZoneId;
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};

/// How a page is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// Read by descriptor.
    Read,
    /// Read by descriptor, going on in the page where the last read on the descriptor ended: not counted as another access.
    ReadOn,
    /// Written by descriptor: the whole page, so nothing is read before.
    Write,
    /// Read through a mapping.
    MapRead,
    /// Written through a mapping.
    MapWrite,
}

impl Touch {
    fn is_mapped(self) -> bool {
        matches!(self, Touch::MapRead | Touch::MapWrite)
    }

    fn is_write(self) -> bool {
        matches!(self, Touch::Write | Touch::MapWrite)
    }
}

/// What an access met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Resident; by mapping: mapped.
    Hit,
    /// Resident, but a mapping had to be made.
    Minor,
    /// The data had to be read, and was.
    Major,
    /// The first touch of an anonymous page, or a whole page written to a file.
    Fresh,
    /// I/O on the page is under way: access it again when it ended.
    Waiting,
    /// There is no room before kswapd or writes that are under way make some: access it again in a while, a tick at most.
    Throttled,
    /// The read failed.
    Failed,
    /// There is no room, and nothing to reclaim.
    Oom(MemcgId),
}

impl Outcome {
    /// Whether the page was in memory.
    pub fn is_hit(self) -> bool {
        matches!(self, Outcome::Hit | Outcome::Minor)
    }
}

impl Engine {
    /// One access. `page` must be registered.
    #[inline(always)]
    pub fn access<W: World>(&mut self, w: &mut W, page: PageId, touch: Touch) -> Outcome {
        if touch == Touch::Read {
            // The common case by table: what a read makes of the page's byte. 0 asks for more than that.
            let byte = &mut self.pages.folios.hot[page.index()];
            let next = self.pages.hit_transition[usize::from(*byte)];
            if next != 0 {
                *byte = next;
                return Outcome::Hit;
            }
            return if u32::from(*byte) & State::UPTODATE != 0 {
                self.read_again(w, page)
            } else {
                self.read_absent(w, page)
            };
        }
        self.access_slow(w, page, touch)
    }

    /// Reads by descriptor in a row, up to the first that is more than a plain hit: how many were made. `None` ends the row, too.
    #[inline(always)]
    pub fn read_hits(&mut self, pages: impl Iterator<Item = Option<PageId>>) -> usize {
        let (hot, next_hot) = (&mut self.pages.folios.hot[..], &self.pages.hit_transition);
        let mut made = 0;
        for page in pages {
            let Some(page) = page else { break };
            let byte = &mut hot[page.index()];
            let next = next_hot[usize::from(*byte)];
            if next == 0 {
                break;
            }
            *byte = next;
            made += 1;
        }
        made
    }

    /// Which reads by descriptor would be more than plain hits, as things are now: a hint for drivers that look ahead. `work` gets
    /// them without a branch: one that goes wrong every few accesses would keep the loads apart. Returns how many they are.
    #[inline(always)]
    pub fn find_work<const N: usize>(&self, pages: impl Iterator<Item = PageId>, work: &mut [PageId; N]) -> usize {
        let (hot, next_hot) = (&self.pages.folios.hot[..], &self.pages.hit_transition);
        let mut n = 0;
        for page in pages {
            work[n % N] = page;
            n += usize::from(next_hot[usize::from(hot[page.index()])] == 0);
        }
        n.min(N)
    }

    #[inline(never)]
    fn access_slow<W: World>(&mut self, w: &mut W, page: PageId, touch: Touch) -> Outcome {
        if self.writeback.flush_due {
            self.flush(w);
        }
        if self.swap.zswap.is_due() {
            self.run_zswap(w);
        }
        let up_to_date = |f: &FolioId| self.pages.folios.st(*f).has(State::UPTODATE);
        if let (Some(f), false) = (self.pages.folios.slot(page).folio().filter(up_to_date), touch.is_mapped()) {
            match touch {
                Touch::Read => self.mark_accessed(f),
                // What is written now would not be in the copy.
                Touch::Write if self.pages.folios.st(f).has(State::MIGRATING) => return Outcome::Waiting,
                Touch::Write => self.set_dirty(w, f),
                _ => {}
            }
            return Outcome::Hit;
        }
        self.fault(w, page, touch)
    }

    /// A read by descriptor that is more than a plain hit on a page that is there: with two lists, the second access to it.
    #[inline(never)]
    fn read_again<W: World>(&mut self, w: &mut W, page: PageId) -> Outcome {
        let f = FolioId(page.0);
        if self.writeback.flush_due || !self.pages.folios.is_attached(f) {
            return self.access_slow(w, page, Touch::Read);
        }
        self.mark_accessed(f);
        Outcome::Hit
    }

    /// A read by descriptor of a page that is not in the cache: [`Engine::fault`] for the common case.
    #[inline(never)]
    fn read_absent<W: World>(&mut self, w: &mut W, page: PageId) -> Outcome {
        let node = self.pages.folios.node_of(page);
        let due = self.writeback.flush_due || self.swap.zswap.is_due();
        if due || !self.pages.folios.is_vacant(page) || self.pages.space.fill[node.index()] == Fill::ANON {
            return self.access_slow(w, page, Touch::Read);
        }
        let own = self.pages.folios.lruvec(FolioId(page.0));
        let memcg = self.pages.lruvecs[own.index()].memcg;
        let f = match self.add_file_folio(w, page, Touch::Read, memcg) {
            Err(over) => return self.no_room(over),
            Ok(f) => f,
        };
        let ack = w.effect(Effect::Read { page, order: 0 });
        if ack == Ack::Done {
            // Nothing has marked a new folio: this is the first access, under any policy.
            self.pages.folios.hot[page.index()] |= (State::UPTODATE | State::REFERENCED) as u8;
            return Outcome::Major;
        }
        self.note_read(f, ack);
        if ack == Ack::Pending { Outcome::Waiting } else { Outcome::Failed }
    }

    /// An access that is not a plain hit by descriptor.
    fn fault<W: World>(&mut self, w: &mut W, page: PageId, touch: Touch) -> Outcome {
        let mapping = &self.pages.space.mappings[self.pages.space.mapping_of(page).index()];
        let (kind, memcg, orders) = (mapping.kind, mapping.memcg, mapping.orders);
        let result = match kind {
            MappingKind::File => self.fault_file(w, page, touch, memcg),
            MappingKind::Anon => self.fault_anon(w, page, touch, memcg, orders),
        };
        let outcome = result.unwrap_or_else(|over| self.no_room(over));
        // What is to be tried again counts then.
        if touch.is_mapped() && !matches!(outcome, Outcome::Waiting | Outcome::Throttled) {
            self.groups.memcgs.get_mut(memcg).stat.add(Counter::Pgfault, 1);
        }
        outcome
    }

    fn no_room(&self, over: MemcgId) -> Outcome {
        let exhausted = over == MemcgId::ROOT && self.is_kswapd_first();
        match exhausted || self.is_io_pending(over) {
            true => Outcome::Throttled,
            false => Outcome::Oom(over),
        }
    }

    fn fault_file<W: World>(
        &mut self,
        w: &mut W,
        page: PageId,
        touch: Touch,
        memcg: MemcgId,
    ) -> Result<Outcome, MemcgId> {
        if touch.is_mapped() {
            self.charge_table(w, self.table_of(page), memcg)?;
            if touch == Touch::MapRead {
                self.fault_around(w, page);
            }
        }
        let mut outcome = Outcome::Minor;
        let f = match self.pages.folios.slot(page).folio() {
            Some(f) if self.pages.folios.st(f).has(State::LOCKED) => return Ok(Outcome::Waiting),
            Some(f) => f,
            None => {
                outcome = Outcome::Major;
                self.add_file_folio(w, page, touch, memcg)?
            }
        };
        if !self.pages.folios.st(f).has(State::UPTODATE) {
            if touch == Touch::Write {
                self.pages.folios.set(f, State::UPTODATE);
                outcome = Outcome::Fresh;
            } else {
                outcome = Outcome::Major;
                if touch.is_mapped() {
                    self.count(f, Counter::Pgmajfault, 1);
                }
                let ack = self.read_folio(w, f);
                if self.cfg.file_map_ahead && touch.is_mapped() && ack == Ack::Pending {
                    self.file_map_ahead(w, page, memcg);
                }
                match ack {
                    Ack::Done => {}
                    Ack::Pending => return Ok(Outcome::Waiting),
                    Ack::Failed => return Ok(Outcome::Failed),
                }
            }
        }
        if touch.is_mapped() {
            self.map_touched(w, f, touch);
        } else if touch == Touch::Read {
            self.mark_accessed(f);
        } else if touch == Touch::Write {
            self.set_dirty(w, f);
        }
        Ok(outcome)
    }

    /// A new folio in the page cache, not read yet. Its shadow decides whether it starts active.
    #[inline(always)]
    pub(crate) fn add_file_folio<W: World>(
        &mut self,
        w: &mut W,
        page: PageId,
        touch: Touch,
        memcg: MemcgId,
    ) -> Result<FolioId, MemcgId> {
        let zone = self.charge(w, memcg, 1)?;
        if let Err(over) = self.charge_nodes(w, page, memcg) {
            self.cancel_charge(memcg, zone, 1);
            return Err(over);
        }
        self.count_alloc(memcg, 1);
        self.pages.folios.note_frames(page, 1, zone);
        let own = self.pages.folios.lruvec(FolioId(page.0));
        let old = self.pages.folios.slot_of_absent(page);
        self.note_filled(page, old);
        let mut st = State::new(0);
        // A page that is added to be overwritten says nothing about the working set.
        if let (Some(shadow), false) = (old.as_value(), touch == Touch::Write) {
            st = self.workingset_refault(own, st, shadow, touch.is_mapped());
        }
        Ok(self.add_folio(page, st, touch.is_mapped()))
    }

    /// A new folio, whose frames were noted, waits in the add batch; under multi-gen LRU a faulted one starts in the youngest generation.
    #[inline(always)]
    pub(crate) fn add_folio(&mut self, page: PageId, st: State, in_fault: bool) -> FolioId {
        let st = self.state_of_new(st, in_fault);
        let f = self.pages.folios.alloc(page, st);
        self.batch_push(Batch::Add, f, st);
        f
    }

    #[inline]
    pub(crate) fn state_of_new(&self, mut st: State, in_fault: bool) -> State {
        if in_fault && self.is_multi_gen() {
            st.set(State::ACTIVE);
        }
        st.set(State::ADDING);
        st
    }

    /// Starts to read a folio, from its file or its slot.
    pub(crate) fn read_folio<W: World>(&mut self, w: &mut W, f: FolioId) -> Ack {
        let st = self.pages.folios.st(f);
        let (page, order) = (self.pages.folios.page(f), st.order());
        if st.has(State::ANON) && self.load_from_front(w, f) {
            return Ack::Done;
        }
        let ack = match st.has(State::ANON) {
            true => {
                self.count(f, Counter::Pswpin, st.nr_pages());
                if st.has(State::LARGE) {
                    self.count_size(
                        self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg,
                        order,
                        SizeCounter::Swpin,
                    );
                }
                w.effect(Effect::SwapIn { page, order, slot: self.pages.folios.swap(f) })
            }
            false => w.effect(Effect::Read { page, order }),
        };
        self.note_read(f, ack);
        ack
    }

    fn note_read(&mut self, f: FolioId, ack: Ack) {
        match ack {
            Ack::Done => self.pages.folios.set(f, State::UPTODATE),
            Ack::Pending => {
                self.pages.folios.set(f, State::LOCKED);
                self.pages.reads_pending += 1;
            }
            Ack::Failed => self.count(f, Counter::ReadErrors, 1),
        }
    }

    /// A read that was pending ended; of a large folio, that of any of its pages stands for all. A page whose read failed stays in the cache, not up to date, and the next access
    /// tries again.
    pub fn read_done<W: World>(&mut self, w: &mut W, page: PageId, ok: bool) {
        let Some(f) = self.folio_of(page) else { return };
        if !self.pages.folios.st(f).has(State::LOCKED) || self.pages.folios.st(f).has(State::MIGRATING) {
            return;
        }
        self.pages.folios.clear(f, State::LOCKED);
        self.pages.reads_pending -= 1;
        if ok {
            self.pages.folios.set(f, State::UPTODATE);
        } else {
            self.count(f, Counter::ReadErrors, 1);
        }
        self.finish_dropping_pages(w, f);
    }

    /// A write that was pending ended, likewise. After a failure the folio is dirty again.
    pub fn write_done<W: World>(&mut self, w: &mut W, page: PageId, ok: bool) {
        let Some(f) = self.folio_of(page) else { return };
        if self.pages.folios.st(f).has(State::WRITEBACK) {
            self.end_write(w, f, ok, true);
            self.finish_dropping_pages(w, f);
        }
    }

    /// A write that was pending is not made after all, because the page was needed before it began: what a driver can do that keeps
    /// pages for a while before it writes them. The folio is dirty as before, and nothing failed.
    pub fn write_cancelled<W: World>(&mut self, w: &mut W, page: PageId) {
        let Some(f) = self.folio_of(page) else { return };
        if self.pages.folios.st(f).has(State::WRITEBACK) {
            self.pages.folios.clear(f, State::WRITEBACK | State::RECLAIM);
            self.count_writeback(f, -(self.pages.folios.st(f).nr_pages() as i64));
            self.set_dirty_again(f);
            self.finish_dropping_pages(w, f);
        }
    }

    /// Maps the touched page; a write to a file page dirties it at once.
    fn map_touched<W: World>(&mut self, w: &mut W, f: FolioId, touch: Touch) {
        let anon = self.pages.folios.st(f).has(State::ANON);
        self.map_folio_with(w, f, true, anon || touch == Touch::MapWrite);
        if touch == Touch::MapWrite && !anon {
            self.set_dirty(w, f);
        }
    }

    /// Maps a folio again, young or not.
    pub(crate) fn map_folio<W: World>(&mut self, w: &mut W, f: FolioId, young: bool) {
        let writable = self.pages.folios.st(f).has(State::ANON);
        self.map_folio_with(w, f, young, writable);
    }

    pub(crate) fn map_folio_with<W: World>(&mut self, w: &mut W, f: FolioId, young: bool, writable: bool) {
        for page in self.pages_of(f).map(PageId) {
            self.map_page(w, f, page, young, writable);
        }
    }

    /// Maps one page of a folio.
    pub(crate) fn map_page<W: World>(&mut self, w: &mut W, f: FolioId, page: PageId, young: bool, writable: bool) {
        self.pages.space.set_mapped(page, self.pages.folios.node_of(page), true);
        w.effect(Effect::Map { page, young, writable });
        self.pages.folios.set(f, State::MAPPED);
    }

    fn fault_anon<W: World>(
        &mut self,
        w: &mut W,
        page: PageId,
        touch: Touch,
        memcg: MemcgId,
        orders: u16,
    ) -> Result<Outcome, MemcgId> {
        if !self.pages.dropping.is_empty() && self.pages.dropping.contains(&page) {
            return Ok(Outcome::Waiting);
        }
        self.charge_table(w, self.table_of(page), memcg)?;
        if let Some(f) = self.pages.folios.slot(page).folio() {
            if self.pages.folios.st(f).has(State::LOCKED) {
                return Ok(Outcome::Waiting);
            }
            self.map_page(w, f, page, true, true);
            return Ok(Outcome::Minor);
        }
        if let Some(slot) = self.swap_entry(page) {
            return self.swap_in(w, page, slot, touch, memcg, orders);
        }
        if orders != 0
            && let Some(f) = self.add_large_folio(w, page, memcg, orders)
        {
            if touch.is_write() {
                // The entries of all its pages start dirty.
                self.pages.folios.set(f, State::DIRTY);
            }
            self.map_touched(w, f, touch);
            return Ok(Outcome::Fresh);
        }
        let zone = self.charge(w, memcg, 1)?;
        self.count_alloc(memcg, 1);
        let mut st = State::new(0);
        st.set(State::UPTODATE | State::SWAPBACKED | State::ANON);
        self.pages.folios.note_frames(page, 1, zone);
        let f = self.add_folio(page, st, true);
        self.map_touched(w, f, touch);
        Ok(Outcome::Fresh)
    }

    /// The swap entry in an anonymous slot.
    pub(crate) fn swap_entry(&self, page: PageId) -> Option<SwapSlot> {
        if self.pages.space.fill[self.pages.folios.node_of(page).index()] != Fill::ANON {
            return None;
        }
        self.pages.folios.slot(page).as_value().map(|v| SwapSlot(v as u32))
    }

    /// 8.2: a device that answers at once goes round the swap cache; others read through it.
    fn swap_in<W: World>(
        &mut self,
        w: &mut W,
        page: PageId,
        slot: SwapSlot,
        touch: Touch,
        memcg: MemcgId,
        orders: u16,
    ) -> Result<Outcome, MemcgId> {
        let (mut outcome, mut read_ahead) = (Outcome::Minor, false);
        let f = match self.swap.slots.cached(slot) {
            Some(f) => f,
            None => {
                outcome = Outcome::Major;
                let large = if self.cfg.thp.swap_in { orders } else { 0 };
                match self.add_large_swap_folio(w, page, slot, memcg, large) {
                    Some(f) => f,
                    None => {
                        read_ahead = true;
                        self.add_swap_folio(w, page, slot, memcg)?
                    }
                }
            }
        };
        let st = self.pages.folios.st(f);
        if st.has(State::LOCKED) {
            return Ok(Outcome::Waiting);
        }
        if !st.has(State::UPTODATE) {
            self.count(f, Counter::Pgmajfault, 1);
            let in_front = self.is_in_front(slot) && !self.swap.slots.is_synchronous(slot);
            let ack = self.read_folio(w, f);
            // A device that answers at once gains nothing by reading ahead.
            if read_ahead && (ack == Ack::Pending || in_front) {
                // Reclaim could take what was there at once.
                self.pages.folios.set(f, State::LOCKED);
                self.swap_read_ahead(w, page, memcg);
                if ack == Ack::Done {
                    self.pages.folios.clear(f, State::LOCKED);
                }
            }
            match ack {
                Ack::Done => {}
                Ack::Pending => return Ok(Outcome::Waiting),
                Ack::Failed => return Ok(Outcome::Failed),
            }
        }
        self.note_swap_ra_hit(f);
        // A large folio that is in swap as a whole is mapped as a whole, else the page that was touched.
        let whole = st.has(State::LARGE) && self.is_all_swapped(f);
        let pages = if whole { self.pages_of(f) } else { page.0..page.0 + 1 };
        for p in pages.clone() {
            self.pages.folios.store(PageId(p), Slot::resident(f));
            self.swap.slots.put(self.pages.folios.swap(f).nth(p - f.0));
        }
        let synchronous = self.swap.slots.is_synchronous(slot) && !w.keeps_swap_copy(slot);
        self.settle_swap(w);
        // The copy in swap is dropped if it will be stale at once, if swap is short, or if reading again costs nothing.
        let drop_copy = synchronous || touch.is_write() || self.is_swap_full(f);
        if drop_copy && !self.pages.folios.st(f).has(State::WRITEBACK) {
            self.release_swap_cache(w, f);
        }
        pages.for_each(|p| self.map_page(w, f, PageId(p), true, true));
        Ok(outcome)
    }

    /// A folio for a page that is in swap, not read yet.
    pub(crate) fn add_swap_folio<W: World>(
        &mut self,
        w: &mut W,
        page: PageId,
        slot: SwapSlot,
        memcg: MemcgId,
    ) -> Result<FolioId, MemcgId> {
        let zone = self.charge(w, memcg, 1)?;
        // Reclaim for it may have had zswap write this very page back: then it is in the swap cache already.
        if let Some(f) = self.swap.slots.cached(slot) {
            self.cancel_charge(memcg, zone, 1);
            return Ok(f);
        }
        Ok(self.add_charged_swap_folio(page, slot, memcg, zone, true))
    }

    /// The same for a page that is charged already. `in_fault`: someone waits for it.
    pub(crate) fn add_charged_swap_folio(
        &mut self,
        page: PageId,
        slot: SwapSlot,
        memcg: MemcgId,
        zone: ZoneId,
        in_fault: bool,
    ) -> FolioId {
        self.count_alloc(memcg, 1);
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
        let mut st = State::new(order);
        st.set(State::SWAPBACKED | State::ANON | State::SWAPCACHE);
        self.pages.folios.note_frames(page, st.nr_pages(), zone);
        let f = self.pages.folios.alloc(page, st);
        self.pages.folios.set_swap(f, slot);
        // Until it is read and mapped, the slots of its pages go on to hold their swap entries.
        for p in self.pages_of(f) {
            self.pages.folios.store(PageId(p), Slot::value(u64::from(slot.nth(p - f.0).0)));
        }
        let shadow = self.swap.slots.shadow(slot);
        self.swap.slots.add_to_cache(slot, order, f);
        self.note_swap_cache(f, 1);
        if let Some(shadow) = shadow.filter(|_| self.cfg.refault != RefaultTest::None) {
            st = self.workingset_refault(self.pages.folios.lruvec(f), st, shadow, in_fault);
        }
        let st = self.state_of_new(st, in_fault);
        self.pages.folios.put(f, st);
        self.batch_push(Batch::Add, f, st);
        f
    }
}
