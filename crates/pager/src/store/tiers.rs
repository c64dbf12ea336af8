//! The pool before the file: pages go to the pool first; when it is full, the coldest go on to the file.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::codec::COMPRESS_BOUND;
use super::{Page, PageBuf, Pool, Store, StoreError, Usage};
use crate::uffd::PAGE;

/// Locks for slots that are being written to the lower store: two slots may share one.
const STRIPES: usize = 64;
/// What does not get smaller than this is better off below.
const WORTH_KEEPING: usize = PAGE * 3 / 4;
/// Pages that one write has go on to the file before it goes there itself.
const MAX_WRITEBACK: usize = 64;
/// Pages that go on at a time, those side by side in one call: of a large pool so many, of a small one this part of it.
const BATCH: usize = 32;
const BATCH_OF_POOL: usize = 8;

/// A pool, and the store that takes what it has no room for.
pub struct Tiers<L> {
    pool: Pool,
    lower: L,
    /// A write to the lower store that was overtaken by another of the same slot must not come after it.
    writing: [Mutex<()>; STRIPES],
    written_back: AtomicU64,
}

impl<L: Store> Tiers<L> {
    /// Of these two.
    pub fn new(pool: Pool, lower: L) -> Tiers<L> {
        let writing = std::array::from_fn(|_| Mutex::new(()));
        Tiers { pool, lower, writing, written_back: AtomicU64::new(0) }
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
        let mut pages = vec![PageBuf::default(); coldest.len()];
        let mut found = Vec::with_capacity(coldest.len());
        for (&at, page) in coldest.iter().zip(&mut pages) {
            if self.pool.read_turn(at.0, at.1, &mut page.0)? {
                found.push((at, &page.0));
            }
        }
        let batch: Vec<(u32, &Page)> = found.iter().map(|&((slot, _), page)| (slot, page)).collect();
        let mut failed = None;
        for (&((slot, turn), _), result) in found.iter().zip(self.lower.write_many(&batch)) {
            match result {
                Err(e) => failed = Some(e),
                Ok(()) if self.pool.remove_turn(slot, turn) => _ = self.written_back.fetch_add(1, Ordering::Relaxed),
                // Freed or written again in the meantime: what the lower store has is of no use, and nobody will ask for it.
                Ok(()) => self.lower.free(slot),
            }
        }
        failed.map_or(Ok(coldest.len()), Err)
    }

    /// Puts a page into the pool, which may have others go on for it. False: it is better off below.
    fn insert(&self, slot: u32, page: &Page) -> Result<bool, StoreError> {
        let mut out = [0; COMPRESS_BOUND];
        let packed = self.pool.pack(page, &mut out)?;
        if packed.len() > WORTH_KEEPING {
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

    #[cfg(test)]
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl<L: Store> Store for Tiers<L> {
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError> {
        self.free(slot);
        if self.insert(slot, page)? {
            return Ok(());
        }
        let _alone = self.stripe(slot);
        self.lower.write(slot, page)
    }

    fn write_many(&self, pages: &[(u32, &Page)]) -> Vec<Result<(), StoreError>> {
        let mut results = Vec::with_capacity(pages.len());
        let mut below = Vec::new();
        for (i, &(slot, page)) in pages.iter().enumerate() {
            self.free(slot);
            let inserted = self.insert(slot, page);
            if matches!(inserted, Ok(false)) {
                below.push(i);
            }
            results.push(inserted.map(drop));
        }
        let batch: Vec<(u32, &Page)> = below.iter().map(|&i| pages[i]).collect();
        let _alone = self.stripes(batch.iter().map(|&(slot, _)| slot));
        for (i, result) in below.into_iter().zip(self.lower.write_many(&batch)) {
            results[i] = result;
        }
        results
    }

    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError> {
        match self.pool.read(slot, page) {
            // It is below, or went there just now.
            Err(StoreError::Absent) => self.lower.read(slot, page),
            other => other,
        }
    }

    fn takes_runs(&self) -> bool {
        self.lower.takes_runs()
    }

    fn takes_no_memory(&self, slot: u32) -> bool {
        self.lower.takes_no_memory(slot)
    }

    /// Those that are below, as runs, the others one by one.
    fn read_run(&self, first: u32, pages: &mut [&mut Page]) -> Result<(), StoreError> {
        let mut at = 0;
        while at < pages.len() {
            let mut end = at;
            while let Some(page) = pages.get_mut(end) {
                match self.pool.read(first + end as u32, page) {
                    Err(StoreError::Absent) => end += 1,
                    Ok(()) => break,
                    Err(e) => return Err(e),
                }
            }
            if end > at {
                self.lower.read_run(first + at as u32, &mut pages[at..end])?;
            }
            // The one at the end was in the pool.
            at = end + 1;
        }
        Ok(())
    }

    fn free(&self, slot: u32) {
        self.pool.free(slot);
        let _alone = self.stripe(slot);
        self.lower.free(slot);
    }

    fn set_pool_limit(&self, bytes: usize) {
        self.pool.set_pool_limit(bytes);
    }

    fn shrink_pool(&self) -> Result<bool, StoreError> {
        let mut gone = 0;
        while gone < MAX_WRITEBACK {
            if !self.pool.is_beyond_limit() {
                return Ok(false);
            }
            match self.write_back_coldest()? {
                0 => return Ok(false),
                n => gone += n,
            }
        }
        Ok(true)
    }

    fn usage(&self) -> Usage {
        let (pool, lower) = (self.pool.usage(), self.lower.usage());
        Usage {
            pool_pages: pool.pool_pages,
            memory_bytes: pool.memory_bytes + lower.memory_bytes,
            file_pages: lower.file_pages,
            written_back: self.written_back.load(Ordering::Relaxed),
        }
    }
}
