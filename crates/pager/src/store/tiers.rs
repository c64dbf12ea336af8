//! The pool before the file: pages go to the pool first; when it is full, the coldest go on to the
//! file. The engine may decide how large the pool is ([`TieredStore::adapting`]).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::control::PoolTier;

use super::batches::Batches;
use super::codec::COMPRESS_BOUND;
use super::tuner::{Destination, Tuner};
use super::{Note, Page, PageBuf, Pool, Store, StoreError, Usage};
use crate::threads::processor_time;
use crate::uffd::PAGE;

/// Locks for slots that are being written to the lower store: two slots may share one.
const STRIPES: usize = 64;
/// Bytes from which a compressed page is better off below.
const WORTH_KEEPING: usize = PAGE * 3 / 4;
/// Pages that one write has go on to the file before it goes there itself.
const MAX_WRITEBACK: usize = 64;
/// Pages that go on at a time, neighbours in one call: of a large pool this many, of a small pool
/// this part of it.
const BATCH: usize = 32;
const BATCH_OF_POOL: usize = 8;

/// A pool, and the store that takes what it has no room for.
pub struct TieredStore<L> {
    pool: Pool,
    lower: L,
    /// A write to the lower store that was overtaken by another of the same slot must not come
    /// after it.
    writing: [Mutex<()>; STRIPES],
    written_back: AtomicU64,
    batches: Batches,
    /// `None`: the pool may always take all that it may.
    tuner: Option<Tuner>,
}

impl<L: Store> TieredStore<L> {
    /// Tiers of these two.
    pub fn new(pool: Pool, lower: L) -> TieredStore<L> {
        let writing = std::array::from_fn(|_| Mutex::new(()));
        TieredStore { pool, lower, writing, written_back: AtomicU64::new(0), batches: Batches::default(), tuner: None }
    }

    /// Tiers of these two, the pool as large as the engine decides, and never larger than it may
    /// be.
    pub fn adapting(pool: Pool, lower: L) -> TieredStore<L> {
        let tuner = Some(Tuner::new(pool.limit_bytes()));
        let tiers = TieredStore { tuner, ..TieredStore::new(pool, lower) };
        tiers.follow_target();
        tiers
    }

    /// Writes to the lower store, with the locks of the slots held.
    fn write_below(&self, pages: &[(u32, &Page)]) -> Vec<Result<(), StoreError>> {
        let Some(t) = &self.tuner else { return self.lower.write_many(pages) };
        let begun = processor_time();
        let results = self.lower.write_many(pages);
        if results.iter().all(|r| r.is_ok()) {
            t.stored_below(pages.len(), processor_time().saturating_sub(begun));
        }
        results
    }

    /// The lower store did not take a page. If the pool could be larger, it is from now on. Returns
    /// the result for the page.
    fn write_after_all(&self, slot: u32, page: &Page, error: StoreError) -> Result<(), StoreError> {
        if !self.tuner.as_ref().is_some_and(Tuner::device_is_full) {
            return Err(error);
        }
        self.follow_target();
        let mut out = [0; COMPRESS_BOUND];
        self.pool.insert(slot, self.pool.pack(page, &mut out)?).map_err(|_| error)
    }

    /// The pool may take what was decided.
    fn follow_target(&self) {
        if let Some(t) = &self.tuner {
            let target = t.target_bytes();
            if target / Pool::MIN_BYTES != self.pool.limit_bytes() / Pool::MIN_BYTES {
                self.pool.set_pool_limit(target);
            }
            t.set_due(self.pool.is_beyond_limit());
        }
    }

    fn stripe(&self, slot: u32) -> std::sync::MutexGuard<'_, ()> {
        self.writing[slot as usize % STRIPES].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The locks of several slots. All take them in the same order, so nobody waits for ever.
    fn stripes(&self, slots: impl Iterator<Item = u32>) -> Vec<std::sync::MutexGuard<'_, ()>> {
        let wanted = slots.fold(0u64, |all, slot| all | 1 << (slot as usize % STRIPES));
        (0..STRIPES as u32).filter(|&i| wanted & 1 << i != 0).map(|i| self.stripe(i)).collect()
    }

    /// Moves the coldest pages of the pool to the lower store. How many; none: the pool is empty.
    fn write_back_coldest(&self) -> Result<usize, StoreError> {
        let coldest = self.pool.coldest((self.pool.pages() / BATCH_OF_POOL).clamp(1, BATCH));
        let _alone = self.stripes(coldest.iter().map(|&(slot, _)| slot));
        let mut pages = self.batches.take(coldest.len());
        let moved = self.write_back(&coldest, &mut pages);
        self.batches.put_back(pages);
        moved.map(|()| coldest.len())
    }

    /// Moves these slots, each if its turn is still the same; the slots are locked.
    fn write_back(&self, coldest: &[(u32, u32)], pages: &mut [PageBuf]) -> Result<(), StoreError> {
        let mut found = Vec::with_capacity(coldest.len());
        for (&at, page) in coldest.iter().zip(pages) {
            if self.pool.read_turn(at.0, at.1, &mut page.0)? {
                found.push((at, &page.0));
            }
        }
        let batch: Vec<(u32, &Page)> = found.iter().map(|&((slot, _), page)| (slot, page)).collect();
        let mut failed = None;
        for (&((slot, turn), _), result) in found.iter().zip(self.write_below(&batch)) {
            match result {
                Err(e) => failed = Some(e),
                Ok(()) if self.pool.remove_turn(slot, turn) => _ = self.written_back.fetch_add(1, Ordering::Relaxed),
                // Freed or written again in the meantime: what the lower store has is of no use,
                // and nobody will ask for it.
                Ok(()) => self.lower.free(slot),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Puts a page into the pool, which may have others go on for it. False: it is better off
    /// below.
    fn insert(&self, slot: u32, page: &Page) -> Result<bool, StoreError> {
        let way = self.tuner.as_ref().map_or(Destination::Pool, Tuner::way);
        if way == Destination::Device || way == Destination::Pool && self.tuner.is_some() && self.pool.is_beyond_limit()
        {
            // Beyond its limit it is being emptied, by who has the time for it.
            return Ok(false);
        }
        let begun = Instant::now();
        let mut out = [0; COMPRESS_BOUND];
        let packed = self.pool.pack(page, &mut out)?;
        let is_worth_it = packed.len() <= WORTH_KEEPING;
        if let Some(t) = &self.tuner {
            t.packed(is_worth_it.then_some(packed.len()), begun);
        }
        if !is_worth_it || way == Destination::Trial {
            return Ok(false);
        }
        let mut gone = 0;
        while gone < MAX_WRITEBACK {
            match self.pool.insert(slot, packed) {
                Err(StoreError::Full) => {}
                other => return other.map(|()| true),
            }
            match self.write_back_coldest() {
                Ok(n) if n > 0 => gone += n,
                // A lower store that fails says so when this page goes there, too.
                _ => break,
            }
        }
        Ok(false)
    }

    /// The slot is to be written: it holds nothing, and its page has left memory.
    fn make_way(&self, slot: u32) {
        self.free(slot);
        if let Some(t) = &self.tuner {
            t.left(Some(slot));
        }
    }

    fn note_loaded(&self, tier: PoolTier, first: u32, pages: usize, begun: Instant) {
        if let Some(t) = &self.tuner {
            t.loaded(tier, first, pages, begun);
        }
    }

    #[cfg(test)]
    pub(super) fn tuner(&self) -> &Tuner {
        self.tuner.as_ref().expect("it adapts")
    }

    #[cfg(test)]
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl<L: Store> Store for TieredStore<L> {
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError> {
        self.make_way(slot);
        if self.insert(slot, page)? {
            return Ok(());
        }
        let alone = self.stripe(slot);
        let result = self.write_below(&[(slot, page)]).pop().expect("a result for the page");
        drop(alone);
        result.or_else(|e| self.write_after_all(slot, page, e))
    }

    fn write_many(&self, pages: &[(u32, &Page)]) -> Vec<Result<(), StoreError>> {
        let mut results = Vec::with_capacity(pages.len());
        let mut below = Vec::new();
        for (i, &(slot, page)) in pages.iter().enumerate() {
            self.make_way(slot);
            let inserted = self.insert(slot, page);
            if matches!(inserted, Ok(false)) {
                below.push(i);
            }
            results.push(inserted.map(drop));
        }
        let batch: Vec<(u32, &Page)> = below.iter().map(|&i| pages[i]).collect();
        let alone = self.stripes(batch.iter().map(|&(slot, _)| slot));
        let written = if batch.is_empty() { Vec::new() } else { self.write_below(&batch) };
        drop(alone);
        for (i, result) in below.into_iter().zip(written) {
            let (slot, page) = pages[i];
            results[i] = result.or_else(|e| self.write_after_all(slot, page, e));
        }
        results
    }

    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError> {
        let begun = Instant::now();
        match self.pool.read(slot, page) {
            Ok(()) => self.note_loaded(PoolTier::Pool, slot, 1, begun),
            // The page is below, or went there just now.
            Err(StoreError::Absent) => {
                self.lower.read(slot, page)?;
                self.note_loaded(PoolTier::Device, slot, 1, begun);
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn takes_runs(&self) -> bool {
        self.lower.takes_runs()
    }

    /// Writes go to the pool first, and take a processor's time.
    fn writes_wait(&self) -> bool {
        false
    }

    fn takes_no_memory(&self, slot: u32) -> bool {
        self.lower.takes_no_memory(slot)
    }

    /// Reads pages that are below as runs, the others one by one.
    fn read_run(&self, first: u32, pages: &mut [&mut Page]) -> Result<(), StoreError> {
        let mut at = 0;
        while at < pages.len() {
            let mut end = at;
            while let Some(page) = pages.get_mut(end) {
                let begun = Instant::now();
                match self.pool.read(first + end as u32, page) {
                    Err(StoreError::Absent) => end += 1,
                    Ok(()) => {
                        self.note_loaded(PoolTier::Pool, first + end as u32, 1, begun);
                        break;
                    }
                    Err(e) => return Err(e),
                }
            }
            if end > at {
                let begun = Instant::now();
                self.lower.read_run(first + at as u32, &mut pages[at..end])?;
                self.note_loaded(PoolTier::Device, first + at as u32, end - at, begun);
            }
            // The one at the end was in the pool.
            at = end + 1;
        }
        Ok(())
    }

    fn free(&self, slot: u32) {
        self.pool.free(slot);
        if let Some(t) = &self.tuner {
            t.forget(slot);
        }
        let _alone = self.stripe(slot);
        self.lower.free(slot);
    }

    fn note(&self, note: Note) {
        match (&self.tuner, note) {
            (Some(t), Note::LeftUnwritten(Some(slot))) => t.left_unwritten(slot),
            (Some(t), Note::LeftUnwritten(None)) => t.left(None),
            (Some(t), Note::FaultServed { ns }) => t.fault_served(ns),
            (None, _) => {}
        }
    }

    fn set_pool_limit(&self, bytes: usize) {
        match &self.tuner {
            Some(t) => {
                t.set_max(bytes);
                self.follow_target();
            }
            None => self.pool.set_pool_limit(bytes),
        }
    }

    fn wants_tending(&self) -> bool {
        self.tuner.as_ref().is_some_and(Tuner::is_due)
    }

    fn tend(&self) {
        let Some(t) = &self.tuner else { return };
        let (bytes, coldest) = self.pool.extent();
        t.decide(bytes, coldest);
        self.follow_target();
        if self.shrink_pool().is_ok() {
            t.set_due(self.pool.is_beyond_limit());
        }
    }

    fn shrink_pool(&self) -> Result<bool, StoreError> {
        let mut gone = 0;
        while gone < MAX_WRITEBACK {
            if !self.pool.is_beyond_limit() {
                return Ok(false);
            }
            match self.write_back_coldest() {
                Ok(0) => return Ok(false),
                Ok(n) => gone += n,
                Err(e) => {
                    let may_stay = self.tuner.as_ref().is_some_and(Tuner::device_is_full);
                    self.follow_target();
                    return if may_stay && !self.pool.is_beyond_limit() { Ok(false) } else { Err(e) };
                }
            }
        }
        Ok(true)
    }

    fn give_room(&self) -> bool {
        let (mut gone, enough) = (0, MAX_WRITEBACK.max(self.pool.pages() / BATCH_OF_POOL));
        while gone < enough {
            match self.write_back_coldest() {
                Ok(n) if n > 0 => gone += n,
                _ => break,
            }
        }
        if gone > 0 && self.tuner.is_none() {
            // Else it would take the room again.
            self.pool.set_pool_limit(self.pool.extent().0);
        }
        gone > 0
    }

    fn usage(&self) -> Usage {
        let (pool, lower) = (self.pool.usage(), self.lower.usage());
        let tuner = self.tuner.as_ref().map_or(0, Tuner::memory_bytes);
        Usage {
            pool_pages: pool.pool_pages,
            pool_limit_bytes: pool.pool_limit_bytes,
            pool_moves: self.tuner.as_ref().map_or((0, 0), |t| (t.stats().shrunk, t.stats().grown)),
            memory_bytes: pool.memory_bytes + lower.memory_bytes + (tuner + self.batches.memory_bytes()) as u64,
            file_pages: lower.file_pages,
            written_back: self.written_back.load(Ordering::Relaxed),
            polling: lower.polling,
        }
    }
}
