//! Facts that the kernel tells about the pages of a process.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::calls::{self, Call};
use crate::uffd::PAGE;
use refault_syscalls::pagemap::{self, PageRegion, PagemapScan, category, entry};

/// `/proc/PID/pagemap`: what is in the page tables of a process.
#[derive(Debug)]
pub struct Pagemap(File);

impl Pagemap {
    /// Pages that are asked about together: their entries are two cache lines.
    pub(crate) const NEIGHBOURS: usize = 16;

    /// Opens the page map of this process.
    pub fn open() -> io::Result<Pagemap> {
        calls::made(Call::OpenPagemap, || File::open("/proc/self/pagemap")).map(Pagemap)
    }

    /// Opens the page map of another process.
    pub(crate) fn of(pid: i32) -> io::Result<Pagemap> {
        calls::made(Call::OpenPagemap, || File::open(format!("/proc/{pid}/pagemap"))).map(Pagemap)
    }

    /// The entries from the page of an address on.
    fn read(&self, bytes: &mut [u8], address: usize) -> io::Result<()> {
        let at = address / PAGE * 8;
        calls::read_exact(Call::ReadPagemap, bytes, |part, done| self.0.read_at(part, (at + done) as u64))
    }

    /// Whether each of `n` pages from `address` on has content (in memory, or where the kernel
    /// itself swapped it to).
    pub fn populated(&self, address: usize, n: usize) -> io::Result<Vec<bool>> {
        let mut bytes = vec![0; n * 8];
        self.read(&mut bytes, address)?;
        let entries = bytes.chunks_exact(8).map(|b| u64::from_ne_bytes(b.try_into().expect("8 bytes")));
        Ok(entries.map(|e| e & (entry::PRESENT | entry::SWAPPED) != 0).collect())
    }

    /// Asks about [`Pagemap::NEIGHBOURS`] pages from `address` on: a bit for each that is in place
    /// and was written since it was protected last, or never was.
    pub(crate) fn are_written(&self, address: usize) -> io::Result<u16> {
        self.written::<{ Pagemap::NEIGHBOURS }>(address)
    }

    /// Whether the page of that address is in place and was written since it was protected last, or
    /// never was.
    pub fn is_written(&self, address: usize) -> io::Result<bool> {
        self.written::<1>(address).map(|bits| bits == 1)
    }

    /// As [`Pagemap::are_written`], of `N` pages.
    fn written<const N: usize>(&self, address: usize) -> io::Result<u16> {
        const PRESENT_OR_PROTECTED: u64 = entry::PRESENT | entry::PROTECTED;
        let mut entries = [0u64; N];
        let page = (address / PAGE) as u64;
        let read = calls::made(Call::ReadPagemap, || pagemap::read_entries(&self.0, page, &mut entries))?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let is_written = |e: &u64| e & PRESENT_OR_PROTECTED == entry::PRESENT;
        Ok(entries[..read].iter().enumerate().fold(0, |bits, (i, e)| bits | u16::from(is_written(e)) << i))
    }

    /// Pages that are in memory and that nobody shares.
    pub(crate) fn exclusive(&self, range: &Range<usize>) -> io::Result<Vec<usize>> {
        const PRESENT_AND_EXCLUSIVE: u64 = entry::PRESENT | entry::EXCLUSIVE;
        self.entries_with(range, PRESENT_AND_EXCLUSIVE, PRESENT_AND_EXCLUSIVE)
    }

    /// Pages that are not in memory and marked (write-protected by a userfaultfd).
    pub(crate) fn marked(&self, range: &Range<usize>) -> io::Result<Vec<usize>> {
        self.entries_with(range, entry::PRESENT | entry::PROTECTED, entry::PROTECTED)
    }

    /// Addresses of pages whose entries have the bits `wanted` under `mask`.
    fn entries_with(&self, range: &Range<usize>, mask: u64, wanted: u64) -> io::Result<Vec<usize>> {
        const ROOM: usize = 1024;
        let mut bytes = vec![0; range.len().div_ceil(PAGE).min(ROOM) * 8];
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let n = ((range.end - at) / PAGE).min(ROOM);
            self.read(&mut bytes[..n * 8], at)?;
            for (i, entry) in bytes[..n * 8].as_chunks().0.iter().enumerate() {
                if u64::from_ne_bytes(*entry) & mask == wanted {
                    found.push(at + i * PAGE);
                }
            }
            at += n * PAGE;
        }
        Ok(found)
    }

    /// Ranges of pages in memory, without pages that are the kernel's zero page.
    pub(crate) fn present(&self, range: &Range<usize>) -> io::Result<Vec<Range<usize>>> {
        const ROOM: usize = 256;
        let mut found = Vec::new();
        let mut regions = [PageRegion::default(); ROOM];
        let mut at = range.start;
        while at < range.end {
            let of = PagemapScan {
                inverted: category::ZERO,
                all: category::PRESENT | category::ZERO,
                told: category::PRESENT,
                ..PagemapScan::default()
            };
            at = self.scan(at..range.end, of, &mut regions, &mut found)?.max(at + PAGE);
        }
        Ok(found)
    }

    /// Finds pages of the range that are in place and were written since they were last found, and
    /// protects them all before any can be written again. Adds them to `found`, and returns where
    /// it stopped. The range has to be watched with [`crate::uffd::Uffd::register_with_writes`].
    pub fn take_written(&self, range: Range<usize>, found: &mut Vec<Range<usize>>) -> io::Result<usize> {
        /// At a time: 24 bytes each.
        const ROOM: usize = 1024;
        let mut regions = [PageRegion::default(); ROOM];
        self.scan(range, PagemapScan { only_async: true, ..TAKE_WRITTEN }, &mut regions, found)
    }

    /// As [`Pagemap::take_written`], of all memory of a process. Memory that is not watched for
    /// writes is skipped.
    pub(crate) fn take_all_written(&self, found: &mut Vec<Range<usize>>) -> io::Result<()> {
        /// At a time: 24 bytes each.
        const ROOM: usize = 1024;
        /// The end of what programs have of the address space.
        const END: usize = (1 << 47) - PAGE;
        let mut regions = [PageRegion::default(); ROOM];
        let mut at = 0;
        while at < END {
            match self.scan(at..END, TAKE_WRITTEN, &mut regions, found)? {
                to if to > at => at = to,
                _ => break,
            }
        }
        Ok(())
    }

    /// Finds ranges of pages, as many as there is room for. Where it stopped.
    fn scan(
        &self,
        range: Range<usize>,
        of: PagemapScan,
        room: &mut [PageRegion],
        found: &mut Vec<Range<usize>>,
    ) -> io::Result<usize> {
        let range = range.start as u64..range.end as u64;
        let (n, end) = calls::made(Call::ScanPagemap, || pagemap::scan(&self.0, range, of, room))?;
        found.extend(room[..n].iter().map(|r| r.start as usize..r.end as usize));
        Ok(end as usize)
    }
}

/// Pages that were written and are in place, which are protected again. Protecting a missing page
/// would leave a mark in its place.
const TAKE_WRITTEN: PagemapScan = PagemapScan {
    protects: true,
    only_async: false,
    inverted: 0,
    all: category::WRITTEN | category::PRESENT,
    any: 0,
    told: category::WRITTEN,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::AnonymousMapping;
    use crate::uffd::{Uffd, UffdFeature};
    use refault_testing::{Need, require};

    #[test]
    fn pagemap_sees_what_was_touched_and_what_was_discarded() {
        let m = AnonymousMapping::new(4 * PAGE).unwrap();
        let map = Pagemap::open().unwrap();
        // SAFETY: the second page of a mapping that nobody else knows.
        unsafe { *((m.start() + PAGE) as *mut u8) = 1 };
        assert_eq!(map.populated(m.start(), 4).unwrap(), [false, true, false, false]);
        // SAFETY: nobody refers to it.
        unsafe { m.discard(m.start() + PAGE, PAGE).unwrap() };
        assert_eq!(map.populated(m.start(), 4).unwrap(), [false; 4]);
    }

    /// A look at all memory of this process takes what others wait to find.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn what_was_written_is_found_once_and_what_is_missing_stays_missing() {
        let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let wanted = [UffdFeature::MOVE, UffdFeature::PAGEFAULT_FLAG_WP, UffdFeature::WP_ASYNC];
        let Some(uffd) = require(Need::Uffd, Uffd::open(&wanted)) else { return };
        let m = AnonymousMapping::new(8 * PAGE).unwrap();
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
        assert_eq!(map.are_written(at(1)).unwrap() & 3, 1, "the same of both");
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

    /// Programs have both: marks where pages are away, and the same bit on pages that are there.
    #[test]
    fn marks_stay_marks_and_written_bits_follow_fork_and_mremap() {
        use crate::uffd::{FillMode, UffdEvent};
        let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let wanted = [
            UffdFeature::MOVE,
            UffdFeature::PAGEFAULT_FLAG_WP,
            UffdFeature::WP_ASYNC,
            UffdFeature::WP_UNPOPULATED,
            UffdFeature::EVENT_FORK,
            UffdFeature::EVENT_REMAP,
        ];
        let Some(uffd) = require(Need::Uffd, Uffd::open(&wanted)) else { return };
        let uffd = std::sync::Arc::new(uffd);
        let (m, other) = (AnonymousMapping::new(4 * PAGE).unwrap(), AnonymousMapping::new(4 * PAGE).unwrap());
        let start = m.start();
        // SAFETY: a mapping of this test.
        assert_eq!(unsafe { libc::madvise(start as *mut _, m.bytes(), libc::MADV_DOFORK) }, 0);
        let at = move |page: usize| start + page * PAGE;
        let content = [7u64; PAGE / 8];
        let quiet = FillMode { protected: true, ..FillMode::default() };
        let puts = uffd.clone();
        let put = move |page| {
            // SAFETY: the source is a page, the destination is watched.
            let done = unsafe { puts.copy_in_mode(at(page), content.as_ptr().cast(), PAGE, quiet) };
            assert_eq!(done.bytes, PAGE, "{done:?}");
        };
        // SAFETY: this thread touches only pages that are there, or that the other one fills.
        unsafe {
            uffd.register_with_marks(m.start(), m.bytes()).unwrap();
            uffd.write_protect(at(0), 2 * PAGE, true).unwrap();
        }
        (2..4).for_each(&put);
        let map = Pagemap::open().unwrap();
        let taken = || {
            let mut found = Vec::new();
            map.take_all_written(&mut found).unwrap();
            found.retain(|r| r.start >= at(0) && r.end <= at(4));
            found
        };
        assert_eq!(taken(), [], "what came in protected was not written");
        // SAFETY: it is there.
        unsafe { (at(3) as *mut u8).write_volatile(8) };
        let written = at(3)..at(4);
        assert_eq!(taken(), std::slice::from_ref(&written), "nobody was asked");
        assert_eq!(map.marked(&(at(0)..at(4))).unwrap(), [at(0), at(1)], "scans leave marks alone");
        // SAFETY: it is there.
        unsafe { (at(3) as *mut u8).write_volatile(9) };

        // Marks are gone when it is closed.
        let _open = uffd.clone();
        let served = std::thread::spawn(move || {
            // With room for all: `fork` holds the lock of the allocator while it waits for this
            // thread.
            let (mut events, mut seen) = (Vec::with_capacity(8), Vec::with_capacity(8));
            while seen.len() < 3 {
                uffd.read_events(&mut events).unwrap();
                for event in events.drain(..) {
                    if let UffdEvent::Fault(fault) = &event {
                        assert_eq!(fault.address, at(0));
                        put(0);
                    }
                    seen.push(event);
                }
            }
            seen
        });
        // SAFETY: the other thread fills it.
        assert_eq!(unsafe { (at(0) as *const u64).read_volatile() }, 7, "a mark is a missing page");
        assert_eq!(map.marked(&(at(0)..at(4))).unwrap(), [at(1)]);
        // SAFETY: the child waits for its end.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        }
        let of_child = Pagemap::of(child).unwrap();
        assert_eq!(of_child.marked(&(at(0)..at(4))).unwrap(), [at(1)]);
        let written = [0, 2, 3].map(|p| of_child.is_written(at(p)).unwrap());
        // SAFETY: the child that was just made.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert_eq!(written, [false, false, true], "fork copies");
        let (flags, to) = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, other.start());
        // SAFETY: both mappings are this test's; what is moved away is mapped anew, so that it may
        // be unmapped.
        unsafe {
            let got = libc::mremap(at(0) as *mut _, m.bytes(), m.bytes(), flags, to as *mut libc::c_void);
            assert_eq!(got as usize, to);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            libc::mmap(m.start() as *mut _, m.bytes(), libc::PROT_READ, flags, -1, 0);
        }
        assert_eq!(map.marked(&(to..to + 4 * PAGE)).unwrap(), [to + PAGE]);
        assert_eq!([0, 2, 3].map(|p| map.is_written(to + p * PAGE).unwrap()), [false, false, true], "mremap moves");
        let seen = served.join().unwrap();
        assert!(matches!(seen[..], [UffdEvent::Fault(_), UffdEvent::Fork(_), UffdEvent::Remap { .. }]), "{seen:?}");
    }

    #[test]
    fn present_pages_are_those_that_were_touched() {
        let m = AnonymousMapping::new(8 * PAGE).unwrap();
        for i in [1, 2, 5] {
            // SAFETY: pages of a mapping that nobody else knows.
            unsafe { *((m.start() + i * PAGE) as *mut u8) = 1 };
        }
        // SAFETY: as above; a read, which the kernel serves with its page of zeros.
        unsafe { std::ptr::read_volatile((m.start() + 7 * PAGE) as *const u8) };
        let map = Pagemap::of(std::process::id() as i32).unwrap();
        let found = map.present(&(m.start()..m.start() + m.bytes()));
        let Some(found) = require(Need::Pagemap, found) else { return };
        let expected = [1..3, 5..6].map(|r: Range<usize>| m.start() + r.start * PAGE..m.start() + r.end * PAGE);
        assert_eq!(found, expected);
        let own = map.exclusive(&(m.start()..m.start() + m.bytes())).unwrap();
        assert_eq!(own, [1, 2, 5].map(|i| m.start() + i * PAGE));
    }
}
