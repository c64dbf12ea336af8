//! The pool of compressed pages behind zswap and zram: pages of memory that objects take, by their
//! sizes.
//!
//! As zsmalloc: sizes are rounded up to classes 16 bytes apart, and the objects of a class lie one
//! after the other in groups of 1 to 8 pages, of a length that wastes the least at their end.
//! Classes of equal groups share them. An object of one page to itself is huge.
//!
//! The place of an object within its group is not kept: a class has as few groups as its objects
//! fill, as if the gaps that frees leave were compacted at once. Linux compacts when memory is
//! short, which is when these pools exist.

/// The bytes of a page, and of the largest object.
const PAGE_BYTES: u64 = 4096;
/// Bytes of the word in front of every object that says whose it is.
const HANDLE_BYTES: u64 = 8;
const MIN_CLASS_BYTES: u64 = 32;
const CLASS_STEP_BYTES: u64 = 16;
const CLASSES: usize = ((PAGE_BYTES - MIN_CLASS_BYTES) / CLASS_STEP_BYTES) as usize + 1;
/// Pages that are chained at most, by default.
const MAX_CHAIN_PAGES: u64 = 8;

/// Objects whose sizes are so near that they share pages.
#[derive(Clone, Debug, PartialEq)]
struct Class {
    /// Pages of a group, and the objects that fit it.
    chain_pages: u64,
    chain_objects: u64,
    objects: u64,
}

impl Class {
    fn new(size: u64) -> Class {
        // The shortest group of those that waste the fewest bytes.
        let chain_pages = (1..=MAX_CHAIN_PAGES).min_by_key(|n| n * PAGE_BYTES % size).unwrap_or(1);
        Class { chain_pages, chain_objects: chain_pages * PAGE_BYTES / size, objects: 0 }
    }

    fn pages(&self, objects: u64) -> u64 {
        objects.div_ceil(self.chain_objects) * self.chain_pages
    }
}

/// A pool of objects of 1 to 4096 bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ZsPool {
    classes: Vec<Class>,
    /// By rounded size: the class.
    class_of: Vec<u8>,
    pages: u64,
    bytes: u64,
    objects: u64,
}

impl Default for ZsPool {
    fn default() -> Self {
        ZsPool::new()
    }
}

impl ZsPool {
    /// An empty pool.
    pub fn new() -> ZsPool {
        let (mut classes, mut class_of) = (Vec::<Class>::new(), Vec::new());
        for size in (0..CLASSES as u64).map(|i| MIN_CLASS_BYTES + i * CLASS_STEP_BYTES) {
            let class = Class::new(size);
            if classes.last() != Some(&class) {
                classes.push(class);
            }
            class_of.push((classes.len() - 1) as u8);
        }
        ZsPool { classes, class_of, pages: 0, bytes: 0, objects: 0 }
    }

    fn class(&self, bytes: u32) -> usize {
        let size = u64::from(bytes) + HANDLE_BYTES;
        let i = size.saturating_sub(MIN_CLASS_BYTES).div_ceil(CLASS_STEP_BYTES) as usize;
        // The largest objects need no handle in front.
        usize::from(self.class_of[i.min(CLASSES - 1)])
    }

    /// Pages of memory that it takes.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Bytes of its objects.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of objects in the pool.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Pages that one object more would take.
    pub fn growth(&self, bytes: u32) -> u64 {
        let class = &self.classes[self.class(bytes)];
        class.pages(class.objects + 1) - class.pages(class.objects)
    }

    /// One object more.
    pub fn insert(&mut self, bytes: u32) {
        self.pages += self.growth(bytes);
        let class = self.class(bytes);
        self.classes[class].objects += 1;
        self.bytes += u64::from(bytes);
        self.objects += 1;
    }

    /// Removes an object of `bytes` bytes, which must be in the pool.
    pub fn remove(&mut self, bytes: u32) {
        let class = self.class(bytes);
        self.classes[class].objects -= 1;
        self.pages -= self.growth(bytes);
        self.bytes -= u64::from(bytes);
        self.objects -= 1;
    }

    /// From this size on an object takes a page to itself, so that compressing it gains nothing.
    pub fn huge_bytes(&self) -> u32 {
        let shared = |c: &u8| self.classes[usize::from(*c)].chain_objects > self.classes[usize::from(*c)].chain_pages;
        let largest = self.class_of.iter().rposition(shared).unwrap_or(0) as u64;
        (MIN_CLASS_BYTES + largest * CLASS_STEP_BYTES - HANDLE_BYTES + 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_share_a_page_and_whole_pages_have_their_own() {
        let mut pool = ZsPool::new();
        (0..3).for_each(|_| pool.insert(2040));
        assert_eq!(pool.pages(), 2, "two objects of 2048 bytes a page, with their handles");
        (0..3).for_each(|_| pool.remove(2040));
        (0..5).for_each(|_| pool.insert(4096));
        assert_eq!((pool.pages(), pool.objects(), pool.bytes()), (5, 5, 5 * 4096));
    }

    #[test]
    fn groups_waste_the_least_and_are_as_short_as_that_allows() {
        // 3 pages hold 4 objects of 3072 bytes exactly; 8 pages hold 9 of 3632, and nothing larger
        // shares.
        let mut pool = ZsPool::new();
        (0..4).for_each(|_| pool.insert(3064));
        assert_eq!(pool.pages(), 3);
        assert_eq!(pool.growth(3064), 3);
        assert_eq!(pool.growth(3624), 8);
        assert_eq!(pool.growth(3625), 1);
        assert_eq!(pool.huge_bytes(), 3625);
    }

    #[test]
    fn a_pool_of_any_objects_returns_to_nothing() {
        let mut pool = ZsPool::new();
        let sizes: Vec<u32> = (0..5000u32).map(|i| i.wrapping_mul(2_654_435_761) % 4096 + 1).collect();
        sizes.iter().for_each(|&b| pool.insert(b));
        let bytes: u64 = sizes.iter().map(|&b| u64::from(b)).sum();
        assert_eq!((pool.bytes(), pool.objects()), (bytes, 5000));
        // Classes 16 bytes apart, the ends of groups and part-filled groups cost some, not much.
        let full = bytes.div_ceil(PAGE_BYTES);
        assert!(pool.pages() >= full && pool.pages() < full * 12 / 10, "{} pages for {full}", pool.pages());
        sizes.iter().rev().for_each(|&b| pool.remove(b));
        assert_eq!(pool, ZsPool::new());
    }
}
