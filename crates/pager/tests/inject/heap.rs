//! Allocations that fail, one by one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's heap, of which the n-th allocation fails.
pub struct FailingHeap;

/// Allocations until the one that fails; above `u64::MAX / 2`: none does, and they count down from
/// the top.
static LEFT: AtomicU64 = AtomicU64::new(u64::MAX);

/// The n-th allocation from now on fails.
pub fn fail_at(n: u64) {
    LEFT.store(n, Ordering::Relaxed);
}

/// How many there were since the process began, if none fails.
pub fn made() -> u64 {
    u64::MAX - LEFT.load(Ordering::Relaxed)
}

fn is_to_fail() -> bool {
    LEFT.fetch_sub(1, Ordering::Relaxed) == 0
}

// SAFETY: every method is that of `System`, or returns null, which any allocator may.
unsafe impl GlobalAlloc for FailingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        if is_to_fail() { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        if is_to_fail() { std::ptr::null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        if is_to_fail() { std::ptr::null_mut() } else { unsafe { System.realloc(block, layout, new_size) } }
    }
}
