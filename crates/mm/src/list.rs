//! Lists of folios: FIFO with removal from anywhere, as arrays.
//!
//! A list is a sequence of places in chunks of 256 ids; a folio knows its list and its place, and leaving empties the place. Unlike
//! links from folio to folio, the next ones to reclaim are then known without visiting those before them, so that their cache
//! misses overlap, and leaving the middle of a list touches no neighbour. The head side is the newest; reclaim takes from
//! the tail. Empty places go when the tail passes them, or when they outnumber the folios and the list is packed anew.

use std::collections::VecDeque;

use crate::folio::Folio;
use crate::ids::FolioId;

/// Ids in a chunk.
const CHUNK: u32 = 256;

/// An empty place, and a list that is none.
const NONE: u32 = u32::MAX;

type Chunk = Box<[u32; CHUNK as usize]>;

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
    chunks: VecDeque<Chunk>,
    /// The place at which the first chunk starts: a multiple of [`CHUNK`].
    first: u32,
    /// The oldest place.
    tail: u32,
    /// Places from the tail to the head, empty ones included.
    span: u32,
    live: u32,
}

impl Places {
    #[inline]
    fn at(&mut self, place: u32) -> &mut u32 {
        let i = place.wrapping_sub(self.first);
        &mut self.chunks[(i / CHUNK) as usize][(i % CHUNK) as usize]
    }

    #[inline]
    fn get(&self, place: u32) -> u32 {
        let i = place.wrapping_sub(self.first);
        self.chunks[(i / CHUNK) as usize][(i % CHUNK) as usize]
    }

    /// Puts an id beyond the newest.
    #[inline]
    fn push(&mut self, id: u32, spare: &mut Vec<Chunk>) -> u32 {
        let place = self.tail.wrapping_add(self.span);
        if place.wrapping_sub(self.first) as usize == self.chunks.len() * CHUNK as usize {
            self.chunks.push_back(spare.pop().unwrap_or_else(|| Box::new([NONE; CHUNK as usize])));
        }
        *self.at(place) = id;
        self.span += 1;
        self.live += 1;
        place
    }

    /// Puts an id before the oldest.
    fn push_tail(&mut self, id: u32, spare: &mut Vec<Chunk>) -> u32 {
        if self.tail == self.first {
            self.chunks.push_front(spare.pop().unwrap_or_else(|| Box::new([NONE; CHUNK as usize])));
            self.first = self.first.wrapping_sub(CHUNK);
        }
        self.tail = self.tail.wrapping_sub(1);
        let place = self.tail;
        *self.at(place) = id;
        self.span += 1;
        self.live += 1;
        place
    }

    #[inline]
    fn remove(&mut self, place: u32, spare: &mut Vec<Chunk>) {
        *self.at(place) = NONE;
        self.live -= 1;
        if place == self.tail {
            self.trim_tail(spare);
        } else if place.wrapping_add(1) == self.tail.wrapping_add(self.span) {
            self.trim_head(spare);
        }
    }

    fn trim_tail(&mut self, spare: &mut Vec<Chunk>) {
        while self.span > 0 && self.get(self.tail) == NONE {
            self.tail = self.tail.wrapping_add(1);
            self.span -= 1;
            if self.tail.wrapping_sub(self.first) == CHUNK {
                spare.extend(self.chunks.pop_front());
                self.first = self.tail;
            }
        }
        self.trim_chunks(spare);
    }

    fn trim_head(&mut self, spare: &mut Vec<Chunk>) {
        while self.span > 0 && self.get(self.tail.wrapping_add(self.span - 1)) == NONE {
            self.span -= 1;
        }
        self.trim_chunks(spare);
    }

    /// Gives back the chunks beyond the head.
    fn trim_chunks(&mut self, spare: &mut Vec<Chunk>) {
        let used = (self.tail.wrapping_sub(self.first) + self.span).div_ceil(CHUNK).max(u32::from(self.span > 0));
        while self.chunks.len() > used as usize {
            spare.extend(self.chunks.pop_back());
        }
        if self.span == 0 {
            self.tail = self.first;
        }
    }

    /// Ids and their places, oldest first.
    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let places = (0..self.span).map(|i| self.get(self.tail.wrapping_add(i)));
        places.filter(|&id| id != NONE)
    }

    fn is_sparse(&self) -> bool {
        self.span > 2 * self.live + 2 * CHUNK
    }
}

/// The entries of the folio table, and the lists on which they stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    pub(crate) folios: Vec<Folio>,
    lists: Vec<Places>,
    spare: Vec<Chunk>,
}

/// Chunks kept for the next list that grows; more are given back.
const SPARE_CHUNKS: usize = 64;

impl Links {
    /// A new, empty list.
    pub(crate) fn new_list(&mut self) -> List {
        self.lists.push(Places::default());
        List(self.lists.len() as u32 - 1)
    }

    /// Puts `f` at the head (newest).
    #[inline]
    pub(crate) fn add(&mut self, list: List, f: FolioId) {
        let place = self.lists[list.0 as usize].push(f.0, &mut self.spare);
        self.folios[f.index()].link = Link { list: list.0, place };
    }

    /// Puts `f` at the tail (oldest).
    #[inline]
    pub(crate) fn add_tail(&mut self, list: List, f: FolioId) {
        let place = self.lists[list.0 as usize].push_tail(f.0, &mut self.spare);
        self.folios[f.index()].link = Link { list: list.0, place };
    }

    /// Takes `f` off its list.
    #[inline]
    pub(crate) fn del(&mut self, f: FolioId) {
        let Link { list, place } = std::mem::replace(&mut self.folios[f.index()].link, Link::ALONE);
        let places = &mut self.lists[list as usize];
        places.remove(place, &mut self.spare);
        if places.is_sparse() {
            self.pack(list);
        }
        self.spare.truncate(SPARE_CHUNKS);
    }

    /// Writes the list anew, without its empty places.
    #[cold]
    fn pack(&mut self, list: u32) {
        let old = std::mem::take(&mut self.lists[list as usize]);
        for id in old.iter() {
            self.add(List(list), FolioId(id));
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
        let chunks = self.spare.len() + self.lists.iter().map(|l| l.chunks.len()).sum::<usize>();
        self.folios.capacity() * size_of::<Folio>() + chunks * size_of::<[u32; CHUNK as usize]>()
    }

    /// Checks that every place of the list holds a folio that knows it, and that the ends are right.
    pub(crate) fn validate(&self, list: List) -> Result<(), String> {
        let l = &self.lists[list.0 as usize];
        let fail = |what: &str| Err(format!("list {}: {what}: tail {} span {} live {}", list.0, l.tail, l.span, l.live));
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
        if l.is_sparse() || l.chunks.iter().flat_map(|c| c.iter()).filter(|&&id| id != NONE).count() != l.live as usize {
            return fail("places that should be empty or gone");
        }
        Ok(())
    }
}
