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

    /// Moves the coldest page of the pool to the lower store. False: the pool is empty.
    fn write_back_coldest(&self) -> Result<bool, StoreError> {
        let Some((slot, turn)) = self.pool.coldest() else { return Ok(false) };
        let mut page = PageBuf::default();
        let _alone = self.stripe(slot);
        if !self.pool.read_turn(slot, turn, &mut page.0)? {
            return Ok(true);
        }
        self.lower.write(slot, &page.0)?;
        // Freed or written again in the meantime: what the lower store has is of no use, and nobody will ask for it.
        if self.pool.remove_turn(slot, turn) {
            self.written_back.fetch_add(1, Ordering::Relaxed);
        } else {
            self.lower.free(slot);
        }
        Ok(true)
    }

    #[cfg(test)]
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl<L: Store> Store for Tiers<L> {
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError> {
        self.free(slot);
        let mut out = [0; COMPRESS_BOUND];
        let packed = self.pool.pack(page, &mut out)?;
        let attempts = if packed.len() <= WORTH_KEEPING { MAX_WRITEBACK } else { 0 };
        for _ in 0..attempts {
            match self.pool.insert(slot, packed) {
                Err(StoreError::Full) => {}
                other => return other,
            }
            // A lower store that fails says so when this page goes there, too.
            if !matches!(self.write_back_coldest(), Ok(true)) {
                break;
            }
        }
        let _alone = self.stripe(slot);
        self.lower.write(slot, page)
    }

    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError> {
        match self.pool.read(slot, page) {
            // It is below, or went there just now.
            Err(StoreError::Absent) => self.lower.read(slot, page),
            other => other,
        }
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
        for _ in 0..MAX_WRITEBACK {
            if !self.pool.is_beyond_limit() || !self.write_back_coldest()? {
                return Ok(false);
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
