//! A heap that puts large blocks on huge pages.
//!
//! A replay goes to its tables at random. With pages of 4 KiB most of such accesses miss the TLB,
//! and on a virtual machine each miss walks two page tables. Where `transparent_hugepage/enabled`
//! is `madvise`, as distributions have it, memory must ask.

use crate::bound;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

/// A huge page of x86-64 and of arm64 with pages of 4 KiB.
const HUGE_BYTES: usize = 2 << 20;

/// Blocks from this size on are mapped by themselves: at most a quarter of a block is the rest of
/// its last huge page.
const LARGE_BYTES: usize = 4 * HUGE_BYTES;

/// The system's heap, but for blocks of 8 MiB and more: those are mappings of their own, aligned to
/// huge pages, that ask for them.
///
/// ```
/// use refault_syscalls::HugeHeap;
///
/// #[global_allocator]
/// static HEAP: HugeHeap = HugeHeap;
///
/// let table = vec![7u64; 4 << 20];
/// assert_eq!(table[12_345], 7);
/// ```
pub struct HugeHeap;

/// Whether a block is a mapping of its own. It depends on the layout alone, so that a block is
/// given back to whom it came from.
fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE_BYTES && layout.align() <= HUGE_BYTES
}

/// The bytes that a block takes of memory, as near as the system's heap has it: its size and a
/// header, in steps of 16 bytes.
#[inline]
fn cost(layout: Layout) -> usize {
    (layout.size() + 8).next_multiple_of(16).max(32)
}

/// The bytes of a block's mapping; none: too many for any address space.
fn mapped_bytes(size: usize) -> Option<usize> {
    size.checked_next_multiple_of(HUGE_BYTES)
}

/// A mapping of zeros, aligned to a huge page; null without memory.
fn map(size: usize) -> *mut u8 {
    let Some(bytes) = mapped_bytes(size) else { return ptr::null_mut() };
    let Some(around) = bytes.checked_add(HUGE_BYTES) else { return ptr::null_mut() };
    // SAFETY: a new private mapping at an address of the kernel's choice touches no memory that is
    // in use.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            around,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    let start = start.cast::<u8>();
    let before = start.align_offset(HUGE_BYTES);
    // SAFETY: `before` is below HUGE_BYTES and `around` is `bytes` + HUGE_BYTES, so that the block
    // and both rests lie within the mapping, which nobody else knows yet. The rests are multiples
    // of pages, since `start` and all sizes are.
    unsafe {
        if before > 0 {
            libc::munmap(start.cast(), before);
        }
        let block = start.add(before);
        if before < HUGE_BYTES {
            libc::munmap(block.add(bytes).cast(), HUGE_BYTES - before);
        }
        // Without huge pages it is memory all the same, so what this returns does not matter.
        libc::madvise(block.cast(), bytes, libc::MADV_HUGEPAGE);
        block
    }
}

// SAFETY: every method hands its layout to the same of the two allocators, since `is_large` depends
// on nothing but the layout and the callers of `GlobalAlloc` must give the layout that the block
// has. `System` keeps the contract by itself. A large block is a fresh mapping of at least `size`
// bytes, aligned to HUGE_BYTES, hence to `layout.align()`; it is used by nobody else until it is
// unmapped. Nothing here unwinds.
unsafe impl GlobalAlloc for HugeHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        bound::take(cost(layout));
        if is_large(layout) {
            return bound::given(map(layout.size()), cost(layout));
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        bound::given(unsafe { System.alloc(layout) }, cost(layout))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        bound::take(cost(layout));
        if is_large(layout) {
            return bound::given(map(layout.size()), cost(layout));
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        bound::given(unsafe { System.alloc_zeroed(layout) }, cost(layout))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        bound::give_back(cost(layout));
        if is_large(layout) {
            let bytes = mapped_bytes(layout.size()).unwrap_or(0);
            // SAFETY: `block` came from `map` with this size, and by the contract of `dealloc`
            // nobody uses it any more.
            unsafe { libc::munmap(block.cast(), bytes) };
            return;
        }
        // SAFETY: the block is from `System`, with this layout; see above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that `new_size` with this alignment is a valid layout.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let stays = match (is_large(layout), is_large(new)) {
            (false, false) => true,
            (true, true) => mapped_bytes(layout.size()) == mapped_bytes(new_size),
            _ => false,
        };
        if stays {
            bound::give_back(cost(layout));
            bound::take(cost(new));
            if is_large(layout) {
                return block;
            }
            // SAFETY: the block is from `System` and stays there.
            let to = unsafe { System.realloc(block, layout, new_size) };
            if to.is_null() {
                bound::note(cost(layout));
            }
            return bound::given(to, cost(new));
        }
        if is_large(layout) && is_large(new) {
            // While the block is copied, it takes no more than twice the smaller one: the rest has
            // not been touched yet.
            bound::give_back(cost(layout));
            // SAFETY: `new` is valid and not empty; the blocks are different, and each has at least
            // the bytes that are copied. The old one is given back once the new one is there.
            unsafe {
                let to = self.alloc(new);
                bound::note(cost(layout));
                if !to.is_null() {
                    ptr::copy_nonoverlapping(block, to, layout.size().min(new_size));
                    self.dealloc(block, layout);
                }
                return to;
            }
        }
        // SAFETY: `new` is valid and not empty; the blocks are different, and each has at least the
        // bytes that are copied. The old one is given back only once the new one is there.
        unsafe {
            let to = self.alloc(new);
            if !to.is_null() {
                ptr::copy_nonoverlapping(block, to, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
            to
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::COUNT;

    fn filled(size: usize) -> (*mut u8, Layout) {
        let layout = Layout::from_size_align(size, 8).unwrap();
        // SAFETY: the layout is not empty, and the block has `size` bytes.
        let block = unsafe {
            let block = HugeHeap.alloc_zeroed(layout);
            assert!(!block.is_null());
            assert!((0..size).step_by(4096).all(|i| *block.add(i) == 0), "not zero");
            (0..size).step_by(4096).for_each(|i| *block.add(i) = (i >> 12) as u8);
            block
        };
        (block, layout)
    }

    #[test]
    fn blocks_keep_their_bytes_when_they_grow_and_shrink_across_the_border() {
        let _alone = COUNT.lock();
        for (from, to) in [
            (LARGE_BYTES - 1, LARGE_BYTES),
            (LARGE_BYTES, LARGE_BYTES - 1),
            (LARGE_BYTES, LARGE_BYTES + 1),
            (LARGE_BYTES + 1, LARGE_BYTES + 2),
            (LARGE_BYTES, 5 * LARGE_BYTES),
            (5 * LARGE_BYTES, LARGE_BYTES),
            (100, 200),
        ] {
            let (block, layout) = filled(from);
            // SAFETY: the block has this layout; the new one has at least `to` bytes and is given
            // back with its own layout.
            unsafe {
                let moved = HugeHeap.realloc(block, layout, to);
                assert!((0..from.min(to)).step_by(4096).all(|i| *moved.add(i) == (i >> 12) as u8), "{from} to {to}");
                HugeHeap.dealloc(moved, Layout::from_size_align_unchecked(to, 8));
            }
        }
    }

    #[test]
    fn large_blocks_are_aligned_to_huge_pages() {
        let _alone = COUNT.lock();
        let (block, layout) = filled(LARGE_BYTES + 12_345);
        assert_eq!(block.align_offset(HUGE_BYTES), 0);
        // SAFETY: it has this layout.
        unsafe { HugeHeap.dealloc(block, layout) };
    }

    #[test]
    fn more_than_there_can_be_is_refused() {
        let _alone = COUNT.lock();
        let layout = Layout::from_size_align(isize::MAX as usize - 4096, 8).unwrap();
        // SAFETY: the layout is not empty.
        assert!(unsafe { HugeHeap.alloc(layout) }.is_null());
    }
}
