//! Lists of folios: FIFO with removal from anywhere, as rings of places.
//!
//! A list is a sequence of places with an id each; a folio knows its list and its place, and leaving empties the place. Unlike
//! links from folio to folio, the next ones to reclaim are then known without visiting those before them, so that their cache
//! misses overlap, and leaving the middle of a list touches no neighbour. The head side is the newest; reclaim takes from
//! the tail. Empty places go when an end of the list passes them, or when there are too many and the list is packed.

use crate::folio::Folio;
use crate::ids::FolioId;

/// An empty place, and a list that is none.
const NONE: u32 = u32::MAX;

/// Places of a list that was never longer.
const MIN_PLACES: usize = 64;

/// Where a folio stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    list: u32,
    /// Counted from any start, modulo 2^32.
    place: u32,
}

impl Link {
    /// On no list.
    pub(crate) const ALONE: Link = Link { list: NONE, place: 0 };
}

/// The name of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List(u32);

/// One list. Its first and its last place are never empty.
#[derive(Clone, Debug, Default)]
struct Places {
    /// A power of two of places, or none.
    ring: Vec<u32>,
    /// The oldest place.
    tail: u32,
    /// Places from the tail to the head, empty ones included.
    span: u32,
    live: u32,
}

impl Places {
    #[inline(always)]
    fn index(&self, place: u32) -> usize {
        place as usize & self.ring.len().wrapping_sub(1)
    }

    #[inline(always)]
    fn get(&self, place: u32) -> u32 {
        self.ring[self.index(place)]
    }

    #[inline(always)]
    fn set(&mut self, place: u32, id: u32) {
        let i = self.index(place);
        self.ring[i] = id;
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.span as usize == self.ring.len()
    }

    /// Puts an id beyond the newest. There must be room.
    #[inline(always)]
    fn push(&mut self, id: u32) -> u32 {
        let place = self.tail.wrapping_add(self.span);
        self.set(place, id);
        self.span += 1;
        self.live += 1;
        place
    }

    /// Puts an id before the oldest. There must be room.
    fn push_tail(&mut self, id: u32) -> u32 {
        self.tail = self.tail.wrapping_sub(1);
        self.set(self.tail, id);
        self.span += 1;
        self.live += 1;
        self.tail
    }

    /// Takes the oldest. There must be one.
    #[inline(always)]
    fn pop(&mut self) {
        self.live -= 1;
        loop {
            self.tail = self.tail.wrapping_add(1);
            self.span -= 1;
            if self.span == 0 || self.get(self.tail) != NONE {
                return;
            }
        }
    }

    #[inline]
    fn remove(&mut self, place: u32) {
        if place == self.tail {
            return self.pop();
        }
        self.live -= 1;
        self.set(place, NONE);
        if place.wrapping_add(1) == self.tail.wrapping_add(self.span) {
            // The tail is not empty, so this ends there at the latest.
            while self.get(self.tail.wrapping_add(self.span - 1)) == NONE {
                self.span -= 1;
            }
        }
    }

    /// Ids, oldest first.
    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let places = (0..self.span).map(|i| self.get(self.tail.wrapping_add(i)));
        places.filter(|&id| id != NONE)
    }
}

/// The entries of the folio table, and the lists on which they stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    pub(crate) folios: Vec<Folio>,
    lists: Vec<Places>,
}

impl Links {
    /// A new, empty list.
    pub(crate) fn new_list(&mut self) -> List {
        self.lists.push(Places::default());
        List(self.lists.len() as u32 - 1)
    }

    /// Puts `f` at the head (newest).
    #[inline]
    pub(crate) fn add(&mut self, list: List, f: FolioId) {
        if self.lists[list.0 as usize].is_full() {
            self.make_room(list.0);
        }
        let place = self.lists[list.0 as usize].push(f.0);
        self.folios[f.index()].link = Link { list: list.0, place };
    }

    /// Puts `f` at the tail (oldest).
    pub(crate) fn add_tail(&mut self, list: List, f: FolioId) {
        if self.lists[list.0 as usize].is_full() {
            self.make_room(list.0);
        }
        let place = self.lists[list.0 as usize].push_tail(f.0);
        self.folios[f.index()].link = Link { list: list.0, place };
    }

    /// Takes `f` off its list.
    #[inline]
    pub(crate) fn del(&mut self, f: FolioId) {
        let Link { list, place } = self.folios[f.index()].link;
        self.lists[list as usize].remove(place);
    }

    /// Takes the oldest off a list that has one.
    #[inline(always)]
    pub(crate) fn pop_tail(&mut self, list: List) {
        self.lists[list.0 as usize].pop();
    }

    /// Writes the list anew without its empty places: into the same room if a third of it was empty, else into the double.
    #[cold]
    fn make_room(&mut self, list: u32) {
        let old = std::mem::take(&mut self.lists[list as usize]);
        let same = (old.live as usize) < old.ring.len() / 3 * 2;
        let room = if same { old.ring.len() } else { (old.ring.len() * 2).max(MIN_PLACES) };
        self.lists[list as usize].ring = vec![NONE; room];
        for id in old.iter() {
            let place = self.lists[list as usize].push(id);
            self.folios[id as usize].link = Link { list, place };
        }
    }

    /// The oldest entry.
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
        self.folios.capacity() * size_of::<Folio>() + places * 4
    }

    /// Checks that every place of the list holds a folio that knows it, and that the ends are right.
    pub(crate) fn validate(&self, list: List) -> Result<(), String> {
        let l = &self.lists[list.0 as usize];
        let fail =
            |what: &str| Err(format!("list {}: {what}: tail {} span {} live {}", list.0, l.tail, l.span, l.live));
        let knows = |i: u32| {
            let place = l.tail.wrapping_add(i);
            let id = l.get(place);
            id == NONE || self.folios[id as usize].link == Link { list: list.0, place }
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
