//! Anonymous memory by system call, and what the kernel says about its pages.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::calls::{self, Call};
use crate::uffd::PAGE;

/// An anonymous private mapping, unmapped when dropped.
///
/// It never has huge pages (they would have to be split page by page) and children do not inherit it: a child has no one who
/// serves its faults, and would read zeros where its parent has data.
#[derive(Debug)]
pub struct Mapping {
    start: usize,
    len: usize,
}

impl Mapping {
    /// Maps so many bytes, a multiple of the page size. No memory is used until it is touched.
    pub fn new(len: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
        let make = || unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) } as isize;
        let start = calls::number(Call::Map, make)?;
        let mapping = Mapping { start: start as usize, len };
        mapping.advise(libc::MADV_DONTFORK)?;
        // A kernel without huge pages does not know this one.
        _ = mapping.advise(libc::MADV_NOHUGEPAGE);
        Ok(mapping)
    }

    /// Its first address.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// Whether the address is inside.
    pub fn contains(&self, address: usize) -> bool {
        (self.start..self.start + self.len).contains(&address)
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is this mapping, and neither advice given here changes its content.
        let make = || unsafe { libc::madvise(self.start as *mut _, self.len, advice) };
        calls::number(Call::Advise, make).map(drop)
    }

    /// Whoever writes to it gets a signal from now on.
    pub(crate) fn forbid_writes(&self) -> io::Result<()> {
        // SAFETY: the range is this mapping, and its content stays as it is.
        let make = || unsafe { libc::mprotect(self.start as *mut _, self.len, libc::PROT_READ) };
        calls::number(Call::ForbidWrites, make).map(drop)
    }

    /// Drops the pages of a part of it: they are missing afterwards, and their content is lost.
    ///
    /// # Safety
    /// Nobody refers to them, or whoever does is served when it faults.
    pub unsafe fn discard(&self, address: usize, len: usize) -> io::Result<()> {
        debug_assert!(self.contains(address) && address + len <= self.start + self.len);
        // SAFETY: the range is inside this mapping; that nobody is surprised is the caller's contract.
        unsafe { calls::discard(address, len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone; those who were given addresses of it had to let go before it was dropped.
        _ = calls::number(Call::Unmap, || unsafe { libc::munmap(self.start as *mut _, self.len) });
    }
}

/// `/proc/self/pagemap`: what is in the page tables of this process.
#[derive(Debug)]
pub struct Pagemap(File);

impl Pagemap {
    /// Opens it.
    pub fn open() -> io::Result<Pagemap> {
        calls::made(Call::OpenPagemap, || File::open("/proc/self/pagemap")).map(Pagemap)
    }

    /// The entries from the page of an address on.
    fn read(&self, bytes: &mut [u8], address: usize) -> io::Result<()> {
        let at = address / PAGE * 8;
        calls::read_exact(Call::ReadPagemap, bytes, |part, done| self.0.read_at(part, (at + done) as u64))
    }

    /// Whether each of `n` pages from `address` on has content (in memory, or where the kernel itself swapped it to).
    pub fn populated(&self, address: usize, n: usize) -> io::Result<Vec<bool>> {
        const PRESENT_OR_SWAPPED: u64 = 3 << 62;
        let mut bytes = vec![0; n * 8];
        self.read(&mut bytes, address)?;
        let entries = bytes.chunks_exact(8).map(|b| u64::from_ne_bytes(b.try_into().expect("8 bytes")));
        Ok(entries.map(|e| e & PRESENT_OR_SWAPPED != 0).collect())
    }

    /// Whether the page of that address is in place and was written since it was protected last, or never was.
    pub fn is_written(&self, address: usize) -> io::Result<bool> {
        is_written(&self.0, address)
    }

    /// Finds pages of the range that are in place and were written since they were found last, and protects them, all before any of them
    /// can be written again. Where it stopped; what was found until then is added to `found`. The range has to be watched with [`crate::uffd::Uffd::register_with_writes`].
    pub fn take_written(&self, range: Range<usize>, found: &mut Vec<Range<usize>>) -> io::Result<usize> {
        take_written(&self.0, range, SCAN_CHECK_WPASYNC, found)
    }
}

/// As [`Pagemap::is_written`], of any process.
pub(crate) fn is_written(pagemap: &File, address: usize) -> io::Result<bool> {
    const PRESENT: u64 = 1 << 63;
    const PROTECTED: u64 = 1 << 57;
    let mut entry = 0u64;
    let at = (address / PAGE * size_of::<u64>()) as libc::off_t;
    // Asked of each page that may leave: the C library's `pread` is a point of cancellation, which costs a sixth of it.
    let (file, to) = (pagemap.as_raw_fd(), &raw mut entry);
    // SAFETY: the kernel writes at most the size of `entry`, which any bytes are valid for.
    let read = || unsafe { libc::syscall(libc::SYS_pread64, file, to, size_of::<u64>(), at) };
    match calls::number(Call::ReadPagemap, read)? {
        8 => Ok(entry & (PRESENT | PROTECTED) == PRESENT),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// As [`Pagemap::take_written`], of any process. Memory that is not watched so is passed over.
pub(crate) fn take_written_of_watched(
    pagemap: &File,
    range: Range<usize>,
    found: &mut Vec<Range<usize>>,
) -> io::Result<usize> {
    take_written(pagemap, range, 0, found)
}

fn take_written(
    pagemap: &File,
    range: Range<usize>,
    flags: u64,
    found: &mut Vec<Range<usize>>,
) -> io::Result<usize> {
    /// At a time: 24 bytes each.
    const ROOM: usize = 1024;
    let mut regions = [PageRegion::default(); ROOM];
    let mut arg = ScanArg {
        size: size_of::<ScanArg>() as u64,
        flags: SCAN_WP_MATCHING | flags,
        start: range.start as u64,
        end: range.end as u64,
        vec: regions.as_mut_ptr().addr() as u64,
        vec_len: ROOM as u64,
        // Without those that are not there: protecting them would leave a mark in their place.
        category_mask: PAGE_IS_WRITTEN | PAGE_IS_PRESENT,
        return_mask: PAGE_IS_WRITTEN,
        ..ScanArg::default()
    };
    // SAFETY: the structure belongs to the request, and it and the array that it names, of that length, outlive the call. It changes
    // no content, and faults on what it protects are resolved by the kernel.
    let make = || unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut arg) };
    let n = calls::number(Call::ScanPagemap, make)?;
    found.extend(regions[..n as usize].iter().map(|r| r.start as usize..r.end as usize));
    Ok(arg.walk_end as usize)
}

const PAGE_IS_WRITTEN: u64 = 1 << 1;
const PAGE_IS_PRESENT: u64 = 1 << 3;
/// What matches is write-protected.
const SCAN_WP_MATCHING: u64 = 1;
/// Memory whose protection the kernel does not lift by itself is an error.
const SCAN_CHECK_WPASYNC: u64 = 2;
const PAGEMAP_SCAN: libc::c_ulong =
    3 << 30 | (size_of::<ScanArg>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 16;

/// Of `PAGEMAP_SCAN`, as the kernel's documentation has it.
#[repr(C)]
#[derive(Default)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    /// Where it ended.
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Pages of the same kind.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uffd::{Feature, Uffd};

    #[test]
    fn pagemap_sees_what_was_touched_and_what_was_discarded() {
        let m = Mapping::new(4 * PAGE).unwrap();
        let map = Pagemap::open().unwrap();
        // SAFETY: the second page of a mapping that nobody else knows.
        unsafe { *((m.start() + PAGE) as *mut u8) = 1 };
        assert_eq!(map.populated(m.start(), 4).unwrap(), [false, true, false, false]);
        // SAFETY: nobody refers to it.
        unsafe { m.discard(m.start() + PAGE, PAGE).unwrap() };
        assert_eq!(map.populated(m.start(), 4).unwrap(), [false; 4]);
    }

    #[test]
    fn what_was_written_is_found_once_and_what_is_missing_stays_missing() {
        let wanted = [Feature::MOVE, Feature::PAGEFAULT_FLAG_WP, Feature::WP_ASYNC];
        let uffd = match Uffd::open(&wanted) {
            Ok(uffd) => uffd,
            Err(e) => return eprintln!("skipped: {e}"),
        };
        let m = Mapping::new(8 * PAGE).unwrap();
        // SAFETY: this thread touches only pages that it filled.
        unsafe { uffd.register_with_writes(m.start(), m.bytes()).unwrap() };
        let at = |page: usize| m.start() + page * PAGE;
        // SAFETY: the range is watched, and nobody refers to it.
        (1..4).for_each(|p| assert_eq!(unsafe { uffd.zero(at(p), PAGE) }.bytes, PAGE));
        let map = Pagemap::open().unwrap();
        let taken = || {
            let mut found = Vec::new();
            assert_eq!(map.take_written(at(0)..at(8), &mut found).unwrap(), at(8));
            found.iter().flat_map(|r| r.clone().step_by(PAGE)).map(|a| (a - m.start()) / PAGE).collect::<Vec<_>>()
        };
        assert_eq!(taken(), [1, 2, 3], "what came in counts as written");
        assert_eq!(taken(), []);
        // SAFETY: it was filled.
        unsafe { (at(1) as *mut u8).write_volatile(1) };
        // SAFETY: it was filled.
        unsafe { (at(2) as *mut u8).read_volatile() };
        assert_eq!((map.is_written(at(1)).unwrap(), map.is_written(at(2)).unwrap()), (true, false));
        assert_eq!(taken(), [1], "reading is not seen");
        // SAFETY: nobody refers to it; page 5 was never there.
        assert_eq!(unsafe { uffd.move_pages(at(5), at(1), PAGE) }.bytes, PAGE);
        assert_eq!(map.populated(at(0), 8).unwrap(), [false, false, true, true, false, true, false, false]);
        assert_eq!(taken(), [5], "what was moved counts as written");
        let content = [7u64; PAGE / 8];
        // SAFETY: the source is a page; the destination is watched.
        (0..2).for_each(|p| assert_eq!(unsafe { uffd.copy(at(p), content.as_ptr().cast(), PAGE) }.bytes, PAGE));
        // SAFETY: it was never there, and nobody refers to it.
        assert_eq!(unsafe { uffd.zero(at(7), PAGE) }.bytes, PAGE);
        assert_eq!(taken(), [0, 1, 7], "scanning left no mark where nothing is");
        // SAFETY: moved there above.
        assert_eq!(unsafe { (at(5) as *const u8).read_volatile() }, 1);
    }
}
