//! One list of folios, as a ring of places: see [`crate::folio::list`].

use crate::folio::slot::Entry;
use crate::ids::FolioId;

/// Id at an empty place, and number of a list for none.
pub(super) const NONE: u32 = u32::MAX;

/// Places of the smallest ring.
const MIN_PLACES: usize = 64;

/// The head of a list while many ids are added.
pub(super) struct ListHead<'a> {
    ring: &'a mut [u32],
    pub(super) next: u32,
}

impl ListHead<'_> {
    /// Puts an id at the head; returns its place.
    #[inline(always)]
    pub(super) fn push(&mut self, id: u32) -> u32 {
        let place = self.next;
        let i = place as usize & self.ring.len().wrapping_sub(1);
        self.ring[i] = id;
        self.next = place.wrapping_add(1);
        place
    }
}

/// One list. Its first and its last place are never empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Ids by place. The length is a power of two, or 0.
    pub(super) ring: Vec<u32>,
    /// The oldest place.
    pub(super) tail: u32,
    /// Places from the tail to the head, empty ones included.
    pub(super) span: u32,
    pub(super) live: u32,
}

impl Places {
    #[inline(always)]
    pub(super) fn index(&self, place: u32) -> usize {
        place as usize & self.ring.len().wrapping_sub(1)
    }

    #[inline(always)]
    pub(super) fn get(&self, place: u32) -> u32 {
        self.ring[self.index(place)]
    }

    #[inline(always)]
    pub(super) fn set(&mut self, place: u32, id: u32) {
        let i = self.index(place);
        self.ring[i] = id;
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.span as usize == self.ring.len()
    }

    /// Puts an id beyond the newest. There must be room.
    #[inline(always)]
    pub(super) fn push(&mut self, id: u32) -> u32 {
        let place = self.tail.wrapping_add(self.span);
        self.set(place, id);
        self.span += 1;
        self.live += 1;
        place
    }

    /// Puts an id before the oldest. There must be room.
    pub(super) fn push_tail(&mut self, id: u32) -> u32 {
        self.tail = self.tail.wrapping_sub(1);
        self.set(self.tail, id);
        self.span += 1;
        self.live += 1;
        self.tail
    }

    /// Takes the oldest. There must be one.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
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
    pub(super) fn remove(&mut self, place: u32) {
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

    /// Collects the `nr` oldest ids, without a branch on empty places. Returns the number of places
    /// passed on the way.
    #[inline]
    pub(super) fn oldest(&self, nr: usize, out: &mut Vec<FolioId>) -> u32 {
        out.clear();
        out.resize(nr.min(self.live as usize), FolioId(0));
        let (mut n, mut passed) = (0, 0);
        while n < out.len() {
            let id = self.get(self.tail.wrapping_add(passed));
            out[n] = FolioId(id);
            n += usize::from(id != NONE);
            passed += 1;
        }
        passed
    }

    /// The `nr` oldest places, empty ones included, as two slices of the ring.
    #[inline(always)]
    pub(super) fn oldest_places(&self, nr: usize) -> [&[u32]; 2] {
        let (first, nr) = (self.index(self.tail), nr.min(self.span as usize));
        let old = nr.min(self.ring.len() - first);
        [&self.ring[first..first + old], &self.ring[..nr - old]]
    }

    /// Takes the `nr` oldest ids, which are at the `passed` oldest places.
    #[inline]
    pub(super) fn pop_passed(&mut self, nr: usize, passed: u32) {
        self.live -= nr as u32;
        self.tail = self.tail.wrapping_add(passed);
        self.span -= passed;
        while self.span > 0 && self.get(self.tail) == NONE {
            self.tail = self.tail.wrapping_add(1);
            self.span -= 1;
        }
    }

    /// Opens the head for `nr` more ids; [`Places::close`] ends it.
    #[inline(always)]
    pub(super) fn open(&mut self, nr: usize, entries: &mut [Entry]) -> ListHead<'_> {
        if self.ring.len() - (self.span as usize) < nr {
            self.make_room(nr, entries);
        }
        ListHead { next: self.tail.wrapping_add(self.span), ring: &mut self.ring }
    }

    /// Ends [`Places::open`]; `next` is the place behind the newest id.
    #[inline(always)]
    pub(super) fn close(&mut self, next: u32) {
        let span = next.wrapping_sub(self.tail);
        self.live += span - self.span;
        self.span = span;
    }

    /// Writes the list anew without its empty places, with room for `nr` more: into the same ring
    /// if a third of it stays empty, else into the double or what is needed.
    #[cold]
    pub(super) fn make_room(&mut self, nr: usize, entries: &mut [Entry]) {
        let old = std::mem::take(self);
        let needed = old.live as usize + nr;
        let same = needed <= old.ring.len() / 3 * 2;
        let room =
            if same { old.ring.len() } else { (old.ring.len() * 2).max(needed.next_power_of_two()).max(MIN_PLACES) };
        self.ring = vec![NONE; room];
        for id in old.iter() {
            entries[id as usize].set_place(self.push(id));
        }
    }

    /// Ids, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let places = (0..self.span).map(|i| self.get(self.tail.wrapping_add(i)));
        places.filter(|&id| id != NONE)
    }
}
