//! Pages in the page tables of a process: `/proc/PID/pagemap`, and the request `PAGEMAP_SCAN` of
//! Linux 6.7 and later, which passes over what is empty and protects what it finds.

use crate::scan::{Mapping, Region};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const PAGE_SHIFT: u32 = 12;

/// Bits of an entry.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE: u64 = 1 << 61;
const SOFT_DIRTY: u64 = 1 << 55;
const FRAME: u64 = (1 << 55) - 1;

/// Categories of `PAGEMAP_SCAN`.
const IS_WPALLOWED: u64 = 1 << 0;
const IS_WRITTEN: u64 = 1 << 1;
const IS_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const IS_ZERO: u64 = 1 << 5;
const IS_SOFT_DIRTY: u64 = 1 << 7;
/// Flag: pages that match are write-protected.
const WP_MATCHING: u64 = 1;

/// Regions at a time: 24 bytes each.
const ROOM: usize = 2048;

/// Entries at a time, of kernels without the request.
const ENTRIES: usize = 1 << 15;

/// The most pages of a mapping that are looked at there: 64 GiB.
const MOST_PAGES: u64 = 1 << 24;

/// The request's argument, as the kernel's documentation has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const PAGEMAP_SCAN: libc::c_ulong =
    3 << 30 | (size_of::<ScanArg>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 16;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// The page tables of a process.
#[derive(Debug)]
pub(super) struct Pagemap(File);

impl Pagemap {
    pub(super) fn of(pid: u32) -> io::Result<Pagemap> {
        File::open(format!("/proc/{pid}/pagemap")).map(Pagemap)
    }

    /// The memory that it was opened for is gone: the process ended, or runs another program.
    pub(super) fn is_gone(&self) -> bool {
        !matches!(self.0.read_at(&mut [0; 8], 0), Ok(8))
    }

    /// Regions of these mappings that have content; `touched` are pages whose soft-dirty bit is
    /// set.
    pub(super) fn regions(&self, mappings: &[Mapping]) -> io::Result<Vec<Region>> {
        let (Some(first), Some(last)) = (mappings.first(), mappings.last()) else { return Ok(Vec::new()) };
        let arg = ScanArg {
            category_anyof_mask: IS_PRESENT | IS_SWAPPED,
            return_mask: IS_PRESENT | IS_SWAPPED | IS_FILE | IS_SOFT_DIRTY | IS_ZERO,
            ..ScanArg::default()
        };
        let mut found = Vec::new();
        let mut add = |region: &PageRegion| {
            let has = |category: u64| region.categories & category != 0;
            if !has(IS_ZERO) {
                found.push(Region {
                    pages: region.start >> PAGE_SHIFT..region.end >> PAGE_SHIFT,
                    is_there: has(IS_PRESENT),
                    is_file: has(IS_FILE),
                    touched: has(IS_SOFT_DIRTY),
                });
            }
        };
        match self.scan(first.pages.start..last.pages.end, arg, &mut add) {
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => self.entries(mappings),
            done => done.map(|()| found),
        }
    }

    /// Pages that were written since they were protected last, and protects them again.
    pub(super) fn take_written(&self, pages: Range<u64>) -> io::Result<Vec<Range<u64>>> {
        let all = IS_WPALLOWED | IS_WRITTEN | IS_PRESENT;
        let arg = ScanArg { flags: WP_MATCHING, category_mask: all, return_mask: IS_WRITTEN, ..ScanArg::default() };
        let mut found = Vec::new();
        self.scan(pages, arg, &mut |r| found.push(r.start >> PAGE_SHIFT..r.end >> PAGE_SHIFT))?;
        Ok(found)
    }

    fn scan(&self, pages: Range<u64>, arg: ScanArg, add: &mut impl FnMut(&PageRegion)) -> io::Result<()> {
        let mut room = [PageRegion::default(); ROOM];
        let (mut at, end) = (pages.start << PAGE_SHIFT, pages.end << PAGE_SHIFT);
        while at < end {
            let mut arg = ScanArg {
                size: size_of::<ScanArg>() as u64,
                start: at,
                end,
                vec: room.as_mut_ptr().addr() as u64,
                vec_len: ROOM as u64,
                ..arg
            };
            // SAFETY: the structure is that of the request, and it and the array that it names, of
            // that length, outlive the call. Contents of memory are not changed: writes to what it
            // protects are let through by the kernel.
            let n = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN, &raw mut arg) };
            let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
            room.iter().take(n).for_each(&mut *add);
            if arg.walk_end <= at {
                break;
            }
            at = arg.walk_end;
        }
        Ok(())
    }

    /// The same by entries, one for each page.
    fn entries(&self, mappings: &[Mapping]) -> io::Result<Vec<Region>> {
        let mut found: Vec<Region> = Vec::new();
        for mapping in mappings {
            let end = mapping.pages.end.min(mapping.pages.start + MOST_PAGES);
            self.each(mapping.pages.start..end, |page, entry| {
                if entry & (PRESENT | SWAPPED) == 0 {
                    return;
                }
                let has = |bit: u64| entry & bit != 0;
                let (is_there, is_file, touched) = (has(PRESENT), has(FILE), has(SOFT_DIRTY));
                match found.last_mut() {
                    Some(last)
                        if last.pages.end == page
                            && (last.is_there, last.is_file, last.touched) == (is_there, is_file, touched) =>
                    {
                        last.pages.end += 1;
                    }
                    _ => found.push(Region { pages: page..page + 1, is_there, is_file, touched }),
                }
            })?;
        }
        Ok(found)
    }

    /// The number of the frame that each of these pages is in; 0: none, or this process may not
    /// know it.
    pub(super) fn frames(&self, pages: Range<u64>, mut tell: impl FnMut(u64, u64)) -> io::Result<()> {
        self.each(pages, |page, entry| tell(page, if entry & PRESENT == 0 { 0 } else { entry & FRAME }))
    }

    fn each(&self, pages: Range<u64>, mut tell: impl FnMut(u64, u64)) -> io::Result<()> {
        let mut bytes = vec![0; pages.end.saturating_sub(pages.start).min(ENTRIES as u64) as usize * 8];
        let mut at = pages.start;
        while at < pages.end {
            let n = (pages.end - at).min(ENTRIES as u64) as usize;
            let read = self.0.read_at(&mut bytes[..n * 8], at * 8)?;
            if read < 8 {
                break;
            }
            for entry in bytes[..read].as_chunks().0 {
                tell(at, u64::from_ne_bytes(*entry));
                at += 1;
            }
        }
        Ok(())
    }
}
