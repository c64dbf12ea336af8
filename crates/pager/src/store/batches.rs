//! Buffers for pages on their way from the pool to the file.
//!
//! They are kept and used again. A buffer that is allocated anew for each batch leaves holes in the
//! heap of each thread that needs one: memory that is free, that the process has all the same, and
//! that nobody counts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::PageBuf;

/// Buffers of batches. There are as many as threads have ever moved batches at the same time.
#[derive(Default)]
pub(super) struct Batches {
    idle: Mutex<Vec<Vec<PageBuf>>>,
    /// Pages of all buffers, also of buffers in use.
    pages: AtomicUsize,
}

impl Batches {
    /// A buffer of `pages` pages, with old content.
    pub(super) fn take(&self, pages: usize) -> Vec<PageBuf> {
        let idle = self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        let mut buffer = idle.unwrap_or_default();
        if buffer.capacity() < pages {
            let before = buffer.capacity();
            // Powers of two, for batches grow with the pool.
            buffer = Vec::with_capacity(pages.next_power_of_two());
            self.pages.fetch_add(buffer.capacity() - before, Ordering::Relaxed);
        }
        buffer.resize_with(pages, PageBuf::default);
        buffer
    }

    /// Gives a buffer back.
    pub(super) fn put_back(&self, buffer: Vec<PageBuf>) {
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(buffer);
    }

    /// Bytes of all buffers.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pages.load(Ordering::Relaxed) * size_of::<PageBuf>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_all_count() {
        let batches = Batches::default();
        let (a, b) = (batches.take(3), batches.take(32));
        assert_eq!(batches.memory_bytes(), 36 * size_of::<PageBuf>(), "both");
        let first = b.as_ptr();
        batches.put_back(a);
        batches.put_back(b);
        let b = batches.take(20);
        assert_eq!((b.len(), b.as_ptr()), (20, first));
        let a = batches.take(5);
        assert_eq!((a.len(), batches.memory_bytes()), (5, 40 * size_of::<PageBuf>()), "it was too small");
    }
}
