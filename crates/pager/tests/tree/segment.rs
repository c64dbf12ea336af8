//! Memory of the program with what should be in it.

use refault_testing::Rng;

pub const PAGE: usize = 4096;
const WORDS: usize = PAGE / 8;

/// Word of a page at a version; version 0 is untouched memory. Some pages are noise, some compress
/// well, some repeat one word.
pub fn word(version: u64, i: usize) -> u64 {
    match version {
        0 => 0,
        v if v % 4 == 0 => v,
        v if v % 4 == 1 => Rng(v << 16 | i as u64).next(),
        v => v.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(i as u64 / 16),
    }
}

pub fn map(address: usize, pages: usize, protection: i32, fixed: bool) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if fixed { libc::MAP_FIXED } else { 0 };
    // SAFETY: a new mapping where the kernel chooses, or in the place of one that its owner gives
    // up.
    let at = unsafe { libc::mmap(address as *mut _, pages * PAGE, protection, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    at as usize
}

pub const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Memory with what should be in it.
pub struct Segment {
    pub at: usize,
    pub versions: Vec<u64>,
    /// It was mapped in one piece: only such memory can be moved by `mremap` if it is watched by a
    /// userfaultfd.
    pub is_one: bool,
}

impl Segment {
    pub fn new(pages: usize) -> Segment {
        Segment { at: map(0, pages, RW, false), versions: vec![0; pages], is_one: true }
    }

    /// The first page that holds something else than it should, without a word or an allocation.
    pub fn wrong(&self) -> Option<(usize, usize, u64)> {
        (0..self.versions.len()).find_map(|page| self.wrong_page(page))
    }

    pub fn wrong_page(&self, page: usize) -> Option<(usize, usize, u64)> {
        let base = (self.at + page * PAGE) as *const u64;
        (0..WORDS).find_map(|i| {
            // SAFETY: a page of this segment, which its thread alone reads and writes.
            let found = unsafe { std::ptr::read_volatile(base.add(i)) };
            (found != word(self.versions[page], i)).then_some((page, i, found))
        })
    }

    pub fn check(&self, page: usize, after: &str) {
        if let Some((page, i, found)) = self.wrong_page(page) {
            let version = self.versions[page];
            let at = self.at + page * PAGE;
            eprintln!("after {after}: {at:#x} word {i} is {found:#x} in version {version}: {:#x}", word(version, i));
            std::process::exit(1);
        }
    }

    pub fn write(&mut self, page: usize, version: u64) {
        self.versions[page] = version;
        let base = (self.at + page * PAGE) as *mut u64;
        // SAFETY: as above.
        (0..WORDS).for_each(|i| unsafe { std::ptr::write_volatile(base.add(i), word(version, i)) });
    }
}
