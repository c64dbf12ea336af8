//! Intrusive circular lists over the entries of the folio table.
//!
//! A list is headed by an entry of the table itself, so that adding and removing have no special case for
//! the ends. The head side is the newest; reclaim takes from the tail.

use crate::folio::Folio;
use crate::ids::FolioId;

/// The neighbours of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Towards the tail (older).
    next: u32,
    /// Towards the head (newer).
    prev: u32,
}

/// A list, by the table entry that heads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List(pub(crate) FolioId);

impl Link {
    /// On no list: its own neighbour.
    pub(crate) fn alone(own: u32) -> Link {
        Link { next: own, prev: own }
    }
}

/// The entries of the folio table, as members of lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links(pub(crate) Vec<Folio>);

impl Links {
    /// Puts `f` at the head (newest).
    #[inline]
    pub(crate) fn add(&mut self, list: List, f: FolioId) {
        let head = list.0.0;
        let first = self.0[head as usize].link.next;
        self.0[f.index()].link = Link { next: first, prev: head };
        self.0[first as usize].link.prev = f.0;
        self.0[head as usize].link.next = f.0;
    }

    /// Puts `f` at the tail (oldest).
    #[inline]
    pub(crate) fn add_tail(&mut self, list: List, f: FolioId) {
        let head = list.0.0;
        let last = self.0[head as usize].link.prev;
        self.0[f.index()].link = Link { next: head, prev: last };
        self.0[last as usize].link.next = f.0;
        self.0[head as usize].link.prev = f.0;
    }

    /// Takes `f` off whatever list it is on.
    #[inline]
    pub(crate) fn del(&mut self, f: FolioId) {
        let Link { next, prev } = self.0[f.index()].link;
        self.0[prev as usize].link.next = next;
        self.0[next as usize].link.prev = prev;
        self.0[f.index()].link = Link { next: f.0, prev: f.0 };
    }

    /// Loads entries and their neighbours into the processor's caches; the sum keeps the loads from being optimised away.
    pub(crate) fn warm(&self, entries: &[FolioId]) -> u32 {
        let neighbours = |f: &FolioId| {
            let Link { next, prev } = self.0[f.index()].link;
            self.0[next as usize].link.prev ^ self.0[prev as usize].link.next
        };
        entries.iter().map(neighbours).fold(0, |a, b| a ^ b)
    }

    /// The oldest entry.
    #[inline]
    pub(crate) fn tail(&self, list: List) -> Option<FolioId> {
        let last = self.0[list.0.index()].link.prev;
        (last != list.0.0).then_some(FolioId(last))
    }

    /// The entry that is next newer than `f`, if any.
    #[inline]
    pub(crate) fn newer(&self, list: List, f: FolioId) -> Option<FolioId> {
        let prev = self.0[f.index()].link.prev;
        (prev != list.0.0).then_some(FolioId(prev))
    }

    /// Whether the list holds nothing.
    #[inline]
    pub(crate) fn is_empty(&self, list: List) -> bool {
        self.0[list.0.index()].link.prev == list.0.0
    }

    /// From the oldest to the newest.
    pub(crate) fn oldest_first(&self, list: List) -> impl Iterator<Item = FolioId> + '_ {
        let mut at = self.tail(list);
        std::iter::from_fn(move || {
            let f = at?;
            at = self.newer(list, f);
            Some(f)
        })
    }

    /// Checks that the list closes in both directions within `limit` entries; returns its length.
    pub(crate) fn validate(&self, list: List, limit: usize) -> Result<usize, String> {
        let head = list.0.0;
        let (mut at, mut n) = (head, 0);
        loop {
            let next = self.0[at as usize].link.next;
            if self.0[next as usize].link.prev != at {
                return Err(format!("list {head}: entry {next} does not point back to {at}"));
            }
            if next == head {
                return Ok(n);
            }
            n += 1;
            if n > limit {
                return Err(format!("list {head}: more than {limit} entries"));
            }
            at = next;
        }
    }
}
