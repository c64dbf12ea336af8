//! Lists of folios: FIFO with removal from anywhere, as rings of places.
//!
//! A list is a sequence of places with an id each; a folio knows its list and its place, and
//! leaving empties the place. Unlike links from folio to folio, the next ones to reclaim are then
//! known without visiting those before them, so that their cache misses overlap, and leaving the
//! middle of a list touches no neighbour. The head side is the newest; reclaim takes from the tail.
//! Empty places go when an end of the list passes them, or when there are too many and the list is
//! packed.

use crate::folio::flags::FolioFlags;
use crate::folio::places::{NONE, Places};
use crate::folio::slot::{Change, Entry, Link};
use crate::ids::{FolioId, LruvecId, PageId, ZoneId};
use crate::tiering::Stamp;
use std::slice::GetDisjointMutError;

/// Numbers reserved for the lists of an lruvec.
const LISTS_PER_LRUVEC: u32 = 32;

/// The name of a list. The lists of an lruvec follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List(u32);

impl List {
    /// A folio's link to a place of this list.
    #[inline(always)]
    fn link(self, place: u32) -> Link {
        Link { list: self.0 % LISTS_PER_LRUVEC, place }
    }
}

/// Where [`Links::add_each`] puts folios, and what becomes of their flags there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    list: List,
    change: Change,
}

impl Target {
    /// A list on which folios keep the flags `keep` and get the flags `set`.
    pub(crate) fn new(list: List, keep: u32, set: u32) -> Target {
        Target { list, change: Change::new(keep, set, list.link(0)) }
    }
}

/// The entries of all pages, and the lists on which folios stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    pub(crate) entries: Vec<Entry>,
    /// By tree node: the lruvec of its folios, on the first memory node.
    pub(crate) owners: Vec<LruvecId>,
    /// By page in memory: the zone of its frame. Empty where there is one zone in all.
    frames: Vec<ZoneId>,
    /// By page, at the first page of a folio: when it was marked for a hint fault. Empty where
    /// there is one node.
    stamps: Vec<Stamp>,
    keeps_frames: bool,
    several_nodes: bool,
    lists: Vec<Places>,
}

impl Links {
    /// Makes the next list the first one of an lruvec.
    pub(crate) fn start_lruvec(&mut self) {
        self.lists.resize(self.lists.len().next_multiple_of(LISTS_PER_LRUVEC as usize), Places::default());
    }

    /// A new, empty list.
    pub(crate) fn new_list(&mut self) -> List {
        self.lists.push(Places::default());
        List(self.lists.len() as u32 - 1)
    }

    /// Keeps the zones of frames from now on, since there are several; with several nodes also when
    /// folios were marked for hint faults.
    pub(crate) fn keep_frames(&mut self, several_nodes: bool) {
        (self.keeps_frames, self.several_nodes) = (true, several_nodes);
    }

    /// One more page.
    #[inline]
    pub(crate) fn push(&mut self, e: Entry) {
        self.entries.push(e);
        if self.keeps_frames {
            self.frames.push(ZoneId::default());
            if self.several_nodes {
                self.stamps.push(Stamp::NONE);
            }
        }
    }

    /// Notes the zone of the frames of `nr` pages from `first` on. The pages were not marked for
    /// hint faults yet.
    #[inline]
    pub(crate) fn note_frames(&mut self, first: PageId, nr: u64, zone: ZoneId) {
        if self.keeps_frames {
            let pages = first.index()..first.index() + nr as usize;
            self.frames[pages.clone()].fill(zone);
            if self.several_nodes {
                self.stamps[pages].fill(Stamp::NONE);
            }
        }
    }

    /// As [`Links::note_frames`], for one page. `own`: the lruvec of its mapping on the first node;
    /// the result is the one of the page's folio.
    #[inline(always)]
    pub(crate) fn note_frame(&mut self, page: PageId, own: LruvecId, zone: ZoneId) -> LruvecId {
        if !self.keeps_frames {
            return own;
        }
        self.note_frames(page, 1, zone);
        if self.several_nodes { own.on(zone.nid()) } else { own }
    }

    /// When a folio was marked for a hint fault.
    pub(crate) fn stamp(&self, f: FolioId) -> Stamp {
        self.stamps.get(f.index()).copied().unwrap_or(Stamp::NONE)
    }

    /// A folio is marked for a hint fault, or is a part of one that was. For machines of several
    /// nodes.
    pub(crate) fn set_stamp(&mut self, f: FolioId, stamp: Stamp) {
        if let Some(s) = self.stamps.get_mut(f.index()) {
            *s = stamp;
        }
    }

    /// Where the frame of a page is.
    #[inline(always)]
    pub(crate) fn frame(&self, page: PageId) -> ZoneId {
        if self.keeps_frames { self.frames[page.index()] } else { ZoneId::default() }
    }

    /// The lruvec of a folio: all folios of one mapping on one node have the same.
    #[inline(always)]
    pub(crate) fn lruvec(&self, f: FolioId) -> LruvecId {
        let own = self.owners[self.entries[f.index()].location.node().index()];
        if self.several_nodes { own.on(self.frames[f.index()].nid()) } else { own }
    }

    /// Whether these folios are on one node.
    pub(crate) fn are_on_one_node(&self, folios: &[FolioId]) -> bool {
        !self.several_nodes
            || folios.windows(2).all(|w| self.frames[w[0].index()].nid() == self.frames[w[1].index()].nid())
    }

    /// A list, with room for one more.
    #[inline(always)]
    fn room(&mut self, list: List) -> &mut Places {
        let places = &mut self.lists[list.0 as usize];
        if places.is_full() {
            places.make_room(1, &mut self.entries);
        }
        places
    }

    /// Puts folios, in this order, at the head of lists, which must differ. The second
    /// of two lists gets the active folios. Returns how many these are.
    ///
    /// As [`Links::add_as`] for each, but what does not change from one to the next is looked up
    /// once.
    #[inline]
    pub(crate) fn add_each<const N: usize>(
        &mut self,
        hot: &mut [u8],
        folios: &[FolioId],
        to: &[Target; N],
    ) -> Result<u64, GetDisjointMutError> {
        let entries = &mut self.entries[..];
        let mut lists = self.lists.get_disjoint_mut(to.map(|t| t.list.0 as usize))?;
        let mut heads = lists.each_mut().map(|l| l.open(folios.len(), entries));
        let changes = to.map(|t| t.change);
        let mut active = 0;
        for &f in folios {
            let (e, byte) = (&mut entries[f.index()], &mut hot[f.index()]);
            let is_active = N > 1 && u32::from(*byte) & FolioFlags::ACTIVE != 0;
            let mut put = |i: usize| {
                *byte = changes[i].of_byte(*byte);
                e.change(changes[i], heads[i].push(f.0));
            };
            // Indices known at compile time keep the lists and changes in registers.
            if is_active {
                active += 1;
                put(N - 1);
            } else {
                put(0);
            }
        }
        let pushed = heads.map(|h| h.next);
        lists.into_iter().zip(pushed).for_each(|(l, next)| l.close(next));
        Ok(active)
    }

    /// Takes folios off the list `from` before [`Links::add_each`] puts them on others.
    pub(crate) fn del_each(&mut self, from: List, folios: &[FolioId]) {
        let (entries, places) = (&self.entries[..], &mut self.lists[from.0 as usize]);
        folios.iter().for_each(|f| places.remove(entries[f.index()].link().place));
    }

    /// Puts `f` at the head (newest).
    #[inline]
    pub(crate) fn add(&mut self, list: List, f: FolioId) {
        let place = self.room(list).push(f.0);
        self.entries[f.index()].set_link(list.link(place));
    }

    /// Puts `f` at the tail (oldest).
    pub(crate) fn add_tail(&mut self, list: List, f: FolioId) {
        let place = self.room(list).push_tail(f.0);
        self.entries[f.index()].set_link(list.link(place));
    }

    /// The list on which a folio stands, and its place.
    #[inline(always)]
    fn place_of(&self, f: FolioId) -> (List, u32) {
        let Link { list, place } = self.entries[f.index()].link();
        (List(self.lruvec(f).0 * LISTS_PER_LRUVEC + list), place)
    }

    /// Takes `f` off its list.
    #[inline]
    pub(crate) fn del(&mut self, f: FolioId) {
        let (list, place) = self.place_of(f);
        self.lists[list.0 as usize].remove(place);
    }

    /// Takes the oldest folio off a list that has one.
    #[inline(always)]
    pub(crate) fn pop_tail(&mut self, list: List) {
        self.lists[list.0 as usize].pop();
    }

    /// The `nr` oldest places of a list, see [`Places::oldest_places`].
    #[inline(always)]
    pub(crate) fn oldest_places(&self, list: List, nr: usize) -> [&[u32]; 2] {
        self.lists[list.0 as usize].oldest_places(nr)
    }

    /// Collects the `nr` oldest folios of a list, oldest first. Returns the places passed, which
    /// [`Links::pop_oldest`] needs.
    #[inline]
    pub(crate) fn oldest(&self, list: List, nr: usize, out: &mut Vec<FolioId>) -> u32 {
        self.lists[list.0 as usize].oldest(nr, out)
    }

    /// Takes the `nr` oldest folios off a list, as [`Links::oldest`] has just found them.
    #[inline]
    pub(crate) fn pop_oldest(&mut self, list: List, nr: usize, passed: u32) {
        self.lists[list.0 as usize].pop_passed(nr, passed);
    }

    /// Takes the oldest folios off a list, `nr` at most, as long as `take` gives their new flags.
    /// Returns how many were taken.
    #[inline(always)]
    pub(crate) fn take_oldest(
        &mut self,
        hot: &mut [u8],
        list: List,
        nr: usize,
        out: &mut Vec<FolioId>,
        mut take: impl FnMut(FolioFlags) -> Option<FolioFlags>,
    ) -> usize {
        let (entries, places) = (&mut self.entries[..], &mut self.lists[list.0 as usize]);
        let (mut taken, mut passed) = (0, 0);
        'pieces: for piece in places.oldest_places(places.span as usize) {
            for &id in piece {
                if taken == nr {
                    break 'pieces;
                }
                // The id at an empty place is beyond all pages.
                if let (Some(e), Some(byte)) = (entries.get_mut(id as usize), hot.get_mut(id as usize)) {
                    let Some(st) = take(e.state(*byte)) else { break 'pieces };
                    e.set_cold(st);
                    *byte = st.0 as u8;
                    out.push(FolioId(id));
                    taken += 1;
                }
                passed += 1;
            }
        }
        if taken > 0 {
            places.pop_passed(taken, passed);
        }
        taken
    }

    /// Loads the places of folios on their lists: a folio that leaves from the middle empties its
    /// place.
    #[inline]
    pub(crate) fn prefetch_places(&self, folios: &[FolioId]) -> u64 {
        let place = |&f: &FolioId| {
            let (list, place) = self.place_of(f);
            let places = &self.lists[list.0 as usize];
            // A folio on no list has no place.
            places.ring.get(places.index(place)).copied().map_or(0, u64::from)
        };
        folios.iter().map(place).sum()
    }

    /// Puts `f`, in state `st` but for the low byte of its flags, at the head of a list.
    #[inline]
    pub(crate) fn add_as(&mut self, list: List, f: FolioId, st: FolioFlags) {
        let place = self.room(list).push(f.0);
        self.entries[f.index()].set_cold_and_link(st, list.link(place));
    }

    /// The oldest folio of a list.
    #[inline]
    pub(crate) fn tail(&self, list: List) -> Option<FolioId> {
        let places = &self.lists[list.0 as usize];
        (places.span > 0).then(|| FolioId(places.get(places.tail)))
    }

    /// Whether the list holds nothing.
    #[inline]
    pub(crate) fn is_empty(&self, list: List) -> bool {
        self.lists[list.0 as usize].span == 0
    }

    /// From the oldest to the newest.
    #[inline]
    pub(crate) fn oldest_first(&self, list: List) -> impl Iterator<Item = FolioId> + '_ {
        self.lists[list.0 as usize].iter().map(FolioId)
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        let places: usize = self.lists.iter().map(|l| l.ring.capacity()).sum();
        (places + self.owners.capacity()) * 4
            + self.frames.capacity()
            + self.stamps.capacity() * 4
            + self.entries.capacity() * size_of::<Entry>()
    }

    /// Checks that every place of the list holds a folio that knows it, and that the ends are
    /// right.
    pub(crate) fn validate(&self, list: List) -> Result<(), String> {
        let l = &self.lists[list.0 as usize];
        let fail =
            |what: &str| Err(format!("list {}: {what}: tail {} span {} live {}", list.0, l.tail, l.span, l.live));
        let knows = |i: u32| {
            let place = l.tail.wrapping_add(i);
            let id = l.get(place);
            id == NONE || self.place_of(FolioId(id)) == (list, place)
        };
        if !(0..l.span).all(knows) {
            return fail("a folio stands elsewhere");
        }
        if l.iter().count() != l.live as usize || (l.span == 0) != (l.live == 0) {
            return fail("counts");
        }
        if l.span > 0 && (l.get(l.tail) == NONE || l.get(l.tail.wrapping_add(l.span - 1)) == NONE) {
            return fail("an end is empty");
        }
        Ok(())
    }
}
