//! The folio table: the resident folios, with their state and list.
//!
//! A folio has the number of its first page, and its flags, its list and its place stand in the
//! page's own entry (see `slot`): a fault, an eviction or a move touches one cache line of 12-byte
//! entries and no more. The state that a hit by descriptor reads and sets lies apart, a byte a
//! page: a hit needs nothing else, and the bytes of a million pages fit a processor's second-level
//! cache.

use crate::folio::flags::FolioFlags;
use crate::folio::list::{Links, List, Target};
use crate::folio::slot::{Entry, Location, Slot};
use crate::ids::{FolioId, LruvecId, NodeId, PageId, SwapSlot, XaNodeId, ZoneId};

/// All folios, and what stands in the slots of all pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct FolioTable {
    pub(crate) links: Links,
    /// The low byte of the flags, by page; 0 where the page is not resident and up to date.
    pub(crate) hot: Vec<u8>,
    /// By page: the swap slot of a folio in the swap cache. Empty until the first such folio.
    swap: Vec<SwapSlot>,
}

impl FolioTable {
    /// Bytes of a page's entry.
    pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>();

    /// A new, empty list.
    pub(crate) fn new_list(&mut self) -> List {
        self.links.new_list()
    }

    /// Reserves room for `pages` more pages.
    pub(crate) fn reserve(&mut self, pages: usize) {
        self.links.entries.reserve(pages);
        self.hot.reserve(pages);
    }

    /// One more page, with nothing in its slot.
    #[inline]
    pub(crate) fn push_page(&mut self, location: Location) {
        self.links.push(Entry::new(location));
        self.hot.push(0);
    }

    #[inline(always)]
    fn at(&self, f: FolioId) -> &Entry {
        &self.links.entries[f.index()]
    }

    #[inline(always)]
    fn at_mut(&mut self, f: FolioId) -> &mut Entry {
        &mut self.links.entries[f.index()]
    }

    /// A bit for each page of a range of at most 64: the page is in memory and up to date, or may
    /// be so as a page of a large folio.
    #[inline]
    pub(crate) fn may_be_up_to_date(&self, ids: std::ops::Range<u32>) -> u64 {
        const THERE: u8 = (FolioFlags::UPTODATE | FolioFlags::TAIL) as u8;
        let (words, rest) = self.hot[ids.start as usize..ids.end as usize].as_chunks::<8>();
        // The product brings the lowest bit of each byte into the highest byte.
        let of_eight = |word: &[u8; 8]| {
            let word = u64::from_le_bytes(*word);
            let lowest = (word | word >> FolioFlags::TAIL.trailing_zeros()) & 0x0101_0101_0101_0101;
            lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56
        };
        let mut there = words.iter().enumerate().fold(0, |bits, (i, word)| bits | of_eight(word) << (8 * i));
        for (i, byte) in rest.iter().enumerate() {
            there |= u64::from(byte & THERE != 0) << (8 * words.len() + i);
        }
        there
    }

    /// Loads the oldest entries of a list into the processor's caches: their misses overlap instead
    /// of following one another.
    #[inline]
    pub(crate) fn prefetch_tail(&self, list: List, nr: usize) {
        let (entries, hot) = (&self.links.entries[..], &self.hot[..]);
        let mut sum = 0;
        for places in self.links.oldest_places(list, nr) {
            for &id in places {
                // The id at an empty place is beyond all pages.
                if let (Some(byte), Some(e)) = (hot.get(id as usize), entries.get(id as usize)) {
                    sum += u64::from(*byte) + e.touch();
                }
            }
        }
        // Else the loads would be optimised away.
        std::hint::black_box(sum);
    }

    /// Loads the entry of a page into the processor's caches.
    #[inline(always)]
    pub(crate) fn prefetch(&self, page: PageId) -> u64 {
        self.links.entries[page.index()].touch()
    }

    /// A folio from `page` on, in state `st` and on no list, in the slot of its first page.
    #[inline]
    pub(crate) fn alloc(&mut self, page: PageId, st: FolioFlags) -> FolioId {
        let f = FolioId(page.0);
        self.at_mut(f).make_folio(st);
        self.hot[page.index()] = st.0 as u8;
        if st.has(FolioFlags::LARGE) {
            (f.0 + 1..f.0 + st.nr_pages() as u32).for_each(|p| self.store(PageId(p), Slot::resident(f)));
        }
        f
    }

    /// A page of a large folio becomes a folio of its own, on no list; the content of its slot
    /// stays.
    pub(crate) fn split_off(&mut self, page: PageId, st: FolioFlags) -> FolioId {
        let was = self.slot(page);
        let part = self.alloc(page, st);
        if was.folio().is_none() {
            self.links.entries[page.index()].store(page, was);
        }
        part
    }

    /// Ends a folio of one page, and leaves `left` in its slot.
    #[inline(always)]
    pub(crate) fn evict(&mut self, f: FolioId, left: Slot) {
        debug_assert!(self.is_used(f) && left.folio().is_none(), "{f:?} is not resident, or stays so");
        self.at_mut(f).put(left);
        self.hot[f.index()] = 0;
    }

    /// Ends folios of one page each. `leave` gets the page of each, its state and its node, and
    /// returns what stays in the slot.
    #[inline(always)]
    pub(crate) fn evict_each(
        &mut self,
        folios: &[FolioId],
        mut leave: impl FnMut(PageId, FolioFlags, XaNodeId) -> Slot,
    ) {
        let (entries, hot) = (&mut self.links.entries[..], &mut self.hot[..]);
        for &f in folios {
            let (e, byte) = (&mut entries[f.index()], &mut hot[f.index()]);
            debug_assert!(e.is_folio(), "{f:?} is not resident");
            let left = leave(PageId(f.0), FolioFlags(e.cold() | u32::from(*byte)), e.location.node());
            e.put(left);
            *byte = 0;
        }
    }

    /// Takes the oldest off a list, see [`Links::take_oldest`].
    #[inline(always)]
    pub(crate) fn take_oldest(
        &mut self,
        list: List,
        nr: usize,
        out: &mut Vec<FolioId>,
        take: impl FnMut(FolioFlags) -> Option<FolioFlags>,
    ) -> usize {
        self.links.take_oldest(&mut self.hot, list, nr, out, take)
    }

    /// Puts a folio on a list, in state `st`: at its head, or at its tail.
    #[inline(always)]
    pub(crate) fn put_on(&mut self, list: List, f: FolioId, st: FolioFlags, tail: bool) {
        self.hot[f.index()] = st.0 as u8;
        if tail {
            self.at_mut(f).set_cold(st);
            self.links.add_tail(list, f);
        } else {
            self.links.add_as(list, f, st);
        }
    }

    /// Puts folios at the head of lists, see [`Links::add_each`].
    #[inline]
    pub(crate) fn add_each<const N: usize>(&mut self, folios: &[FolioId], to: &[Target; N]) -> u64 {
        self.links.add_each(&mut self.hot, folios, to).expect("different lists")
    }

    /// Flags that any of these folios has, and flags that all of them have.
    #[inline]
    pub(crate) fn flags_of(&self, folios: &[FolioId]) -> (u32, u32) {
        let (entries, hot) = (&self.links.entries[..], &self.hot[..]);
        let st = folios.iter().map(|f| entries[f.index()].cold() | u32::from(hot[f.index()]));
        st.fold((0, u32::MAX), |(any, all), st| (any | st, all & st))
    }

    /// The lruvec of these folios, if it is the same for all and no folio has a flag of `odd`.
    #[inline]
    pub(crate) fn plain_lruvec(&self, folios: &[FolioId], odd: u32) -> Option<LruvecId> {
        let first = *folios.first()?;
        let (own, base) = (self.lruvec(first), self.links.owners[self.node_of(self.page(first)).index()]);
        let (entries, owners, hot) = (&self.links.entries[..], &self.links.owners[..], &self.hot[..]);
        let (mut any, mut other) = (0, 0);
        for f in folios {
            let e = &entries[f.index()];
            any |= e.cold() | u32::from(hot[f.index()]);
            other |= owners[e.location.node().index()].0 ^ base.0;
        }
        (any & odd == 0 && other == 0 && self.links.are_on_one_node(folios)).then_some(own)
    }

    /// Ends a folio: its slot holds what was put there instead.
    #[inline]
    pub(crate) fn release(&mut self, f: FolioId) {
        self.hot[f.index()] = 0;
        if self.at(f).is_folio() {
            let st = FolioFlags(self.at(f).cold());
            if st.has(FolioFlags::LARGE) {
                self.release_tails(f, st.nr_pages() as u32);
            }
            let left = self.slot(self.page(f));
            let left = if left.folio().is_some() { Slot::EMPTY } else { left };
            self.at_mut(f).put(left);
        }
    }

    #[cold]
    fn release_tails(&mut self, f: FolioId, nr: u32) {
        for page in (f.0 + 1..f.0 + nr).map(PageId) {
            if self.slot(page).folio() == Some(f) {
                self.store(page, Slot::EMPTY);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn st(&self, f: FolioId) -> FolioFlags {
        FolioFlags(self.at(f).cold() | u32::from(self.hot[f.index()]))
    }

    /// Replaces all flags.
    #[inline(always)]
    pub(crate) fn put(&mut self, f: FolioId, st: FolioFlags) {
        self.at_mut(f).set_cold(st);
        self.hot[f.index()] = st.0 as u8;
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, f: FolioId, bits: u32) {
        if bits & !FolioFlags::HOT != 0 {
            let e = self.at_mut(f);
            e.set_cold(FolioFlags(e.cold() | bits));
        }
        if bits & FolioFlags::HOT != 0 {
            self.hot[f.index()] |= bits as u8;
        }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self, f: FolioId, bits: u32) {
        if bits & !FolioFlags::HOT != 0 {
            let e = self.at_mut(f);
            e.set_cold(FolioFlags(e.cold() & !bits));
        }
        if bits & FolioFlags::HOT != 0 {
            self.hot[f.index()] &= !(bits as u8);
        }
    }

    /// Whether there is a folio of that number.
    pub(crate) fn is_used(&self, f: FolioId) -> bool {
        self.at(f).is_folio()
    }

    /// Whether the slot of a page holds the folio of its number.
    #[inline(always)]
    pub(crate) fn is_attached(&self, f: FolioId) -> bool {
        self.at(f).is_attached()
    }

    /// The leaf node of a page that has no folio, but a value or nothing in its slot; none: it has
    /// a folio.
    #[inline(always)]
    pub(crate) fn vacant_node(&self, page: PageId) -> Option<XaNodeId> {
        let e = &self.links.entries[page.index()];
        e.is_vacant().then_some(e.location.node())
    }

    /// The first page of a folio.
    #[inline(always)]
    pub(crate) fn page(&self, f: FolioId) -> PageId {
        PageId(f.0)
    }

    #[inline(always)]
    pub(crate) fn lruvec(&self, f: FolioId) -> LruvecId {
        self.links.lruvec(f)
    }

    /// The memory node of a folio.
    #[inline(always)]
    pub(crate) fn nid(&self, f: FolioId) -> NodeId {
        self.zone_of(f).nid()
    }

    /// The zone of the frames of a folio.
    #[inline(always)]
    pub(crate) fn zone_of(&self, f: FolioId) -> ZoneId {
        self.links.frame(self.page(f))
    }

    /// Index of the zone of a folio, among the zones of its node.
    #[inline(always)]
    pub(crate) fn zone_list(&self, f: FolioId) -> usize {
        self.zone_of(f).zone()
    }

    /// Notes the zone of the frames of `nr` pages from `first` on.
    #[inline(always)]
    pub(crate) fn note_frames(&mut self, first: PageId, nr: u64, zone: ZoneId) {
        self.links.note_frames(first, nr, zone);
    }

    pub(crate) fn swap(&self, f: FolioId) -> SwapSlot {
        self.swap.get(f.index()).copied().unwrap_or(SwapSlot::NONE)
    }

    pub(crate) fn set_swap(&mut self, f: FolioId, slot: SwapSlot) {
        if self.swap.len() <= f.index() {
            self.swap.resize(self.len(), SwapSlot::NONE);
        }
        self.swap[f.index()] = slot;
    }

    /// The content of a page's slot.
    #[inline(always)]
    pub(crate) fn slot(&self, page: PageId) -> Slot {
        let e = &self.links.entries[page.index()];
        if e.is_attached() { Slot::resident(FolioId(page.0)) } else { self.slot_apart(page) }
    }

    /// As [`FolioTable::slot`], for a page that is most likely not resident.
    #[inline(always)]
    pub(crate) fn slot_of_absent(&self, page: PageId) -> Slot {
        self.links.entries[page.index()].vacant().unwrap_or_else(|| self.slot_apart(page))
    }

    fn slot_apart(&self, page: PageId) -> Slot {
        let e = &self.links.entries[page.index()];
        e.apart().unwrap_or_else(|| Slot::value(u64::from(self.swap(FolioId(page.0)).0)))
    }

    /// Stores into a slot without regard to its node. A folio of that page stays what it is: it may
    /// be in the swap cache while the slot holds its swap entry, or about to be released.
    pub(crate) fn store(&mut self, page: PageId, new: Slot) {
        debug_assert!(
            !self.is_used(FolioId(page.0))
                || new.as_value().is_none_or(|v| v == u64::from(self.swap(FolioId(page.0)).0))
        );
        self.links.entries[page.index()].store(page, new);
        if !self.is_used(FolioId(page.0)) {
            self.hot[page.index()] = if new.folio().is_some() { FolioFlags::TAIL as u8 } else { 0 };
        }
    }

    /// Stores a shadow, or nothing, in the place of whatever is there; of a folio only
    /// [`FolioTable::release`] may follow.
    #[inline(always)]
    pub(crate) fn replace(&mut self, page: PageId, new: Slot) {
        self.links.entries[page.index()].put(new);
        self.hot[page.index()] = 0;
    }

    /// The leaf node of a page.
    #[inline(always)]
    pub(crate) fn node_of(&self, page: PageId) -> XaNodeId {
        self.location(page).node()
    }

    /// Where a page is in its mapping.
    #[inline(always)]
    pub(crate) fn location(&self, page: PageId) -> Location {
        self.links.entries[page.index()].location
    }

    /// Number of pages.
    pub(crate) fn len(&self) -> usize {
        self.links.entries.len()
    }

    /// Bytes held, with the room that vectors keep in reserve.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.links.memory_bytes() + self.hot.capacity() + self.swap.capacity() * 4
    }

    /// Folios in use.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = FolioId> + '_ {
        (0..self.len() as u32).map(FolioId).filter(|&f| self.is_used(f))
    }

    /// Checks that an entry that is no folio has no flags.
    pub(crate) fn validate(&self) -> Result<(), String> {
        for p in 0..self.len() as u32 {
            if self.is_used(FolioId(p)) {
                continue;
            }
            let of = self.slot(PageId(p)).folio();
            let expected = if of.is_some() { FolioFlags::TAIL } else { 0 };
            if u32::from(self.hot[p as usize]) != expected {
                return Err(format!("page {p} of {of:?} has flags {:#x} of its own", self.hot[p as usize]));
            }
            let inside = |f: FolioId| self.is_used(f) && (f.0 + 1..f.0 + self.st(f).nr_pages() as u32).contains(&p);
            if of.is_some_and(|f| !inside(f)) {
                return Err(format!("page {p} says that it is of {of:?}"));
            }
        }
        Ok(())
    }
}
