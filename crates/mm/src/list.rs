//! Intrusive circular lists over the entries of the folio table.
//!
//! A list is headed by an entry of the table itself, so that adding and removing have no special case for
//! the ends. The head side is the newest; reclaim takes from the tail.

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

/// The links of all entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links(Vec<Link>);

impl Links {
    /// Appends an entry that is on no list: it is its own neighbour.
    pub(crate) fn push(&mut self) {
        let own = self.0.len() as u32;
        self.0.push(Link { next: own, prev: own });
    }

    /// Entries that there is room for without allocating.
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Puts `f` at the head (newest).
    #[inline]
    pub(crate) fn add(&mut self, list: List, f: FolioId) {
        let head = list.0.0;
        let first = self.0[head as usize].next;
        self.0[f.index()] = Link { next: first, prev: head };
        self.0[first as usize].prev = f.0;
        self.0[head as usize].next = f.0;
    }

    /// Puts `f` at the tail (oldest).
    #[inline]
    pub(crate) fn add_tail(&mut self, list: List, f: FolioId) {
        let head = list.0.0;
        let last = self.0[head as usize].prev;
        self.0[f.index()] = Link { next: head, prev: last };
        self.0[last as usize].next = f.0;
        self.0[head as usize].prev = f.0;
    }

    /// Takes `f` off whatever list it is on.
    #[inline]
    pub(crate) fn del(&mut self, f: FolioId) {
        let Link { next, prev } = self.0[f.index()];
        self.0[prev as usize].next = next;
        self.0[next as usize].prev = prev;
        self.0[f.index()] = Link { next: f.0, prev: f.0 };
    }

    /// The oldest entry.
    #[inline]
    pub(crate) fn tail(&self, list: List) -> Option<FolioId> {
        let last = self.0[list.0.index()].prev;
        (last != list.0.0).then_some(FolioId(last))
    }

    /// The entry that is next newer than `f`, if any.
    #[inline]
    pub(crate) fn newer(&self, list: List, f: FolioId) -> Option<FolioId> {
        let prev = self.0[f.index()].prev;
        (prev != list.0.0).then_some(FolioId(prev))
    }

    /// Whether the list holds nothing.
    #[inline]
    pub(crate) fn is_empty(&self, list: List) -> bool {
        self.0[list.0.index()].prev == list.0.0
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
            let next = self.0[at as usize].next;
            if self.0[next as usize].prev != at {
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
