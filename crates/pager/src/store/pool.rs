//! The compressed pool: pages in memory, smaller.

use std::io;
use std::sync::Mutex;

use super::codec::{COMPRESS_BOUND, compress, decompress};
use super::slab::{BLOCK, Place, Slab};
use super::{Codec, Page, Store, StoreError, Usage};
use crate::uffd::PAGE;

const NONE: u32 = u32::MAX;

/// A slot of the pool: what it holds, and its neighbours from the coldest to the hottest.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Option<Place>,
    /// How often the slot was written: tells whether it still holds what someone saw.
    turn: u32,
    colder: u32,
    hotter: u32,
}

const EMPTY: Entry = Entry { place: None, turn: 0, colder: NONE, hotter: NONE };

#[derive(Debug)]
struct Inner {
    slab: Slab,
    entries: Vec<Entry>,
    coldest: u32,
    hottest: u32,
    pages: u64,
}

/// Pages, compressed, in at most so much memory. What does not get smaller is kept as it is, or refused.
#[derive(Debug)]
pub struct Pool {
    codec: Codec,
    inner: Mutex<Inner>,
}

impl Pool {
    /// A pool of at most so many bytes.
    pub fn new(codec: Codec, limit_bytes: usize) -> io::Result<Pool> {
        let slab = Slab::new(limit_bytes)?;
        let inner = Inner { slab, entries: Vec::new(), coldest: NONE, hottest: NONE, pages: 0 };
        Ok(Pool { codec, inner: Mutex::new(inner) })
    }

    /// The smallest that makes sense.
    pub const MIN_BYTES: usize = BLOCK;

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What the pool would keep of a page: it compressed, or it as it is.
    pub(super) fn pack<'a>(&self, page: &'a Page, out: &'a mut [u8; COMPRESS_BOUND]) -> Result<&'a [u8], StoreError> {
        let len = compress(self.codec, page, out)?.filter(|&len| len < PAGE);
        Ok(len.map_or(page.as_slice(), |len| &out[..len]))
    }

    /// Keeps what [`Pool::pack`] made of a page.
    pub(super) fn insert(&self, slot: u32, packed: &[u8]) -> Result<(), StoreError> {
        self.lock().insert(slot, packed)
    }

    /// It takes more than it may, since its limit was lowered.
    pub(super) fn is_beyond_limit(&self) -> bool {
        self.lock().slab.is_beyond_limit()
    }

    /// The slot that was written longest ago, and its turn.
    pub(super) fn coldest(&self) -> Option<(u32, u32)> {
        let inner = self.lock();
        let slot = inner.coldest;
        inner.entries.get(slot as usize).map(|e| (slot, e.turn))
    }

    /// The page of a slot, if it is still the one of that turn.
    pub(super) fn read_turn(&self, slot: u32, turn: u32, page: &mut Page) -> Result<bool, StoreError> {
        self.read_if(slot, Some(turn), page)
    }

    /// Removes the page of a slot, if it is still the one of that turn.
    pub(super) fn remove_turn(&self, slot: u32, turn: u32) -> bool {
        let mut inner = self.lock();
        let same = inner.entries.get(slot as usize).is_some_and(|e| e.turn == turn && e.place.is_some());
        if same {
            inner.remove(slot);
        }
        same
    }

    fn read_if(&self, slot: u32, turn: Option<u32>, page: &mut Page) -> Result<bool, StoreError> {
        let mut bytes = [0; PAGE];
        let len = {
            let inner = self.lock();
            let entry = inner.entries.get(slot as usize).filter(|e| turn.is_none_or(|t| t == e.turn));
            let Some(place) = entry.and_then(|e| e.place) else { return Ok(false) };
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
        let held = inner.entries.iter().filter(|e| e.place.is_some()).count();
        assert_eq!(held as u64, inner.pages);
        inner.slab.validate(held);
        let (mut at, mut before, mut seen) = (inner.coldest, NONE, 0);
        while at != NONE {
            assert_eq!(inner.entries[at as usize].colder, before);
            (before, at, seen) = (at, inner.entries[at as usize].hotter, seen + 1);
        }
        assert_eq!((seen, before), (held, inner.hottest));
    }
}

impl Inner {
    fn remove(&mut self, slot: u32) {
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        let Some(place) = entry.place.take() else { return };
        let (colder, hotter) = (entry.colder, entry.hotter);
        match self.entries.get_mut(colder as usize) {
            Some(e) => e.hotter = hotter,
            None => self.coldest = hotter,
        }
        match self.entries.get_mut(hotter as usize) {
            Some(e) => e.colder = colder,
            None => self.hottest = colder,
        }
        self.slab.remove(place);
        self.pages -= 1;
    }

    fn insert(&mut self, slot: u32, bytes: &[u8]) -> Result<(), StoreError> {
        self.remove(slot);
        let place = self.slab.insert(bytes).ok_or(StoreError::Full)?;
        if self.entries.len() <= slot as usize {
            self.entries.resize(slot as usize + 1, EMPTY);
        }
        let turn = self.entries[slot as usize].turn.wrapping_add(1);
        self.entries[slot as usize] = Entry { place: Some(place), turn, colder: self.hottest, hotter: NONE };
        match self.entries.get_mut(self.hottest as usize) {
            Some(e) => e.hotter = slot,
            None => self.coldest = slot,
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
        let memory = inner.slab.memory_bytes() + inner.entries.capacity() * size_of::<Entry>();
        Usage { pool_pages: inner.pages, memory_bytes: memory as u64, ..Usage::default() }
    }

    fn reads_wait(&self) -> bool {
        false
    }
}
