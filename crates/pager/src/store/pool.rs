//! The compressed pool: pages in memory, smaller.

use std::io;
use std::sync::Mutex;

use super::codec::{COMPRESS_BOUND, compress, decompress};
use super::slab::{BLOCK, Place, Slab};
use super::sparse::{self, Sparse};
use super::{Codec, Page, Store, StoreError, Usage};
use crate::uffd::PAGE;

const NONE: u32 = u32::MAX;

/// A slot of the pool: what it holds, and its neighbours from the coldest to the hottest.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Option<Place>,
    /// Number of the write of the pool: tells whether the slot still holds what someone saw.
    turn: u32,
    colder: u32,
    hotter: u32,
}

impl sparse::Entry for Entry {
    const VACANT: Entry = Entry { place: None, turn: 0, colder: NONE, hotter: NONE };

    fn is_vacant(&self) -> bool {
        self.place.is_none()
    }
}

#[derive(Debug)]
struct Inner {
    slab: Slab,
    entries: Sparse<Entry>,
    /// Writes so far.
    turn: u32,
    coldest: u32,
    hottest: u32,
    pages: u64,
}

/// Compressed pages in memory of a limited size. A page that does not get smaller is kept as it is,
/// or refused.
#[derive(Debug)]
pub struct Pool {
    codec: Codec,
    inner: Mutex<Inner>,
}

impl Pool {
    /// A pool of at most `limit_bytes` bytes.
    pub fn new(codec: Codec, limit_bytes: usize) -> io::Result<Pool> {
        let slab = Slab::new(limit_bytes)?;
        let inner = Inner { slab, entries: Sparse::new(), turn: 0, coldest: NONE, hottest: NONE, pages: 0 };
        Ok(Pool { codec, inner: Mutex::new(inner) })
    }

    /// Bytes of tables for each page that it holds.
    pub const BYTES_PER_PAGE: usize = size_of::<Entry>();

    /// Smallest limit that makes sense, in bytes.
    pub const MIN_BYTES: usize = BLOCK;

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Bytes that the pool would keep of a page: it compressed, or it as it is.
    pub(super) fn pack<'a>(&self, page: &'a Page, out: &'a mut [u8; COMPRESS_BOUND]) -> Result<&'a [u8], StoreError> {
        let len = compress(self.codec, page, out)?.filter(|&len| len < PAGE);
        Ok(len.map_or(page.as_slice(), |len| &out[..len]))
    }

    /// Keeps what [`Pool::pack`] made of a page.
    pub(super) fn insert(&self, slot: u32, packed: &[u8]) -> Result<(), StoreError> {
        self.lock().insert(slot, packed)
    }

    /// Pages that it holds.
    pub(super) fn pages(&self) -> usize {
        self.lock().pages as usize
    }

    /// Bytes that it may take for pages.
    pub(super) fn limit_bytes(&self) -> usize {
        self.lock().slab.limit_bytes()
    }

    /// Bytes that it takes for pages, and the slot that was written longest ago.
    pub(super) fn extent(&self) -> (usize, Option<u32>) {
        let inner = self.lock();
        (inner.slab.block_bytes(), Some(inner.coldest).filter(|&slot| slot != NONE))
    }

    /// Whether it takes more than it may, since its limit was lowered.
    pub(super) fn is_beyond_limit(&self) -> bool {
        self.lock().slab.is_beyond_limit()
    }

    /// The slots that were written longest ago, the coldest first, and their turns.
    pub(super) fn coldest(&self, most: usize) -> Vec<(u32, u32)> {
        let inner = self.lock();
        let some = |slot: u32| (slot != NONE).then_some(slot);
        let slots = std::iter::successors(some(inner.coldest), |&slot| some(inner.entries.get(slot).hotter));
        slots.take(most).map(|slot| (slot, inner.entries.get(slot).turn)).collect()
    }

    /// The page of a slot, if it is still the one of that turn.
    pub(super) fn read_turn(&self, slot: u32, turn: u32, page: &mut Page) -> Result<bool, StoreError> {
        self.read_if(slot, Some(turn), page)
    }

    /// Removes the page of a slot, if it is still the one of that turn.
    pub(super) fn remove_turn(&self, slot: u32, turn: u32) -> bool {
        let mut inner = self.lock();
        let entry = inner.entries.get(slot);
        let same = entry.turn == turn && entry.place.is_some();
        if same {
            inner.remove(slot);
        }
        same
    }

    fn read_if(&self, slot: u32, turn: Option<u32>, page: &mut Page) -> Result<bool, StoreError> {
        let mut bytes = [0; PAGE];
        let len = {
            let inner = self.lock();
            let entry = inner.entries.get(slot);
            let Some(place) = entry.place.filter(|_| turn.is_none_or(|t| t == entry.turn)) else { return Ok(false) };
            let stored = inner.slab.get(place);
            if stored.len() == PAGE {
                page.copy_from_slice(stored);
                return Ok(true);
            }
            bytes[..stored.len()].copy_from_slice(stored);
            stored.len()
        };
        decompress(self.codec, &bytes[..len], page)?;
        Ok(true)
    }

    #[cfg(test)]
    pub(super) fn validate(&self) {
        let inner = self.lock();
        let held = inner.entries.used();
        assert_eq!(held as u64, inner.pages);
        inner.slab.validate(held);
        let (mut at, mut before, mut seen) = (inner.coldest, NONE, 0);
        while at != NONE {
            assert_eq!(inner.entries.get(at).colder, before);
            (before, at, seen) = (at, inner.entries.get(at).hotter, seen + 1);
        }
        assert_eq!((seen, before), (held, inner.hottest));
    }
}

impl Inner {
    fn remove(&mut self, slot: u32) {
        let Entry { place: Some(place), colder, hotter, .. } = self.entries.get(slot) else { return };
        self.entries.change(slot, |e| e.place = None);
        match colder {
            NONE => self.coldest = hotter,
            _ => _ = self.entries.change(colder, |e| e.hotter = hotter),
        }
        match hotter {
            NONE => self.hottest = colder,
            _ => _ = self.entries.change(hotter, |e| e.colder = colder),
        }
        self.slab.remove(place);
        self.pages -= 1;
    }

    fn insert(&mut self, slot: u32, bytes: &[u8]) -> Result<(), StoreError> {
        self.remove(slot);
        let place = self.slab.insert(bytes).ok_or(StoreError::Full)?;
        self.turn = self.turn.wrapping_add(1);
        let new = Entry { place: Some(place), turn: self.turn, colder: self.hottest, hotter: NONE };
        self.entries.change(slot, |e| *e = new);
        match self.hottest {
            NONE => self.coldest = slot,
            before => _ = self.entries.change(before, |e| e.hotter = slot),
        }
        self.hottest = slot;
        self.pages += 1;
        Ok(())
    }
}

impl Store for Pool {
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError> {
        let mut out = [0; COMPRESS_BOUND];
        self.insert(slot, self.pack(page, &mut out)?)
    }

    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError> {
        if self.read_if(slot, None, page)? { Ok(()) } else { Err(StoreError::Absent) }
    }

    fn free(&self, slot: u32) {
        self.lock().remove(slot);
    }

    fn set_pool_limit(&self, bytes: usize) {
        self.lock().slab.set_limit(bytes);
    }

    fn usage(&self) -> Usage {
        let inner = self.lock();
        let memory = inner.slab.memory_bytes() + inner.entries.memory_bytes();
        let limit = inner.slab.limit_bytes() as u64;
        Usage { pool_pages: inner.pages, pool_limit_bytes: limit, memory_bytes: memory as u64, ..Usage::default() }
    }

    fn reads_wait(&self) -> bool {
        false
    }
}
