//! Pages in the page tables of a process, as the recorder asks for them.

use crate::scan::{PageRun, Vma};
use refault_syscalls::pagemap::{PageRegion, PagemapScan, category, entry, read_entries, scan};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const PAGE_SHIFT: u32 = 12;

/// Regions at a time: 24 bytes each.
const ROOM: usize = 2048;

/// Entries that are read at a time in kernels without `PAGEMAP_SCAN`.
const ENTRIES: usize = 1 << 15;

/// Most pages of a mapping that are scanned without `PAGEMAP_SCAN`: 64 GiB.
const MOST_PAGES: u64 = 1 << 24;

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
    pub(super) fn regions(&self, mappings: &[Vma]) -> io::Result<Vec<PageRun>> {
        let (Some(first), Some(last)) = (mappings.first(), mappings.last()) else { return Ok(Vec::new()) };
        let content = category::PRESENT | category::SWAPPED;
        let told = content | category::FILE | category::SOFT_DIRTY | category::ZERO;
        let of = PagemapScan { any: content, told, ..PagemapScan::default() };
        let mut found = Vec::new();
        let mut add = |region: &PageRegion| {
            let has = |category: u64| region.categories & category != 0;
            if !has(category::ZERO) {
                found.push(PageRun {
                    pages: region.start >> PAGE_SHIFT..region.end >> PAGE_SHIFT,
                    is_there: has(category::PRESENT),
                    is_file: has(category::FILE),
                    touched: has(category::SOFT_DIRTY),
                });
            }
        };
        match self.scan(first.pages.start..last.pages.end, of, &mut add) {
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => self.entries(mappings),
            done => done.map(|()| found),
        }
    }

    /// Pages that were written since they were protected last, and protects them again.
    pub(super) fn take_written(&self, pages: Range<u64>) -> io::Result<Vec<Range<u64>>> {
        let all = category::WPALLOWED | category::WRITTEN | category::PRESENT;
        let of = PagemapScan { protects: true, all, told: category::WRITTEN, ..PagemapScan::default() };
        let mut found = Vec::new();
        self.scan(pages, of, &mut |r| found.push(r.start >> PAGE_SHIFT..r.end >> PAGE_SHIFT))?;
        Ok(found)
    }

    fn scan(&self, pages: Range<u64>, of: PagemapScan, add: &mut impl FnMut(&PageRegion)) -> io::Result<()> {
        let mut room = [PageRegion::default(); ROOM];
        let (mut at, end) = (pages.start << PAGE_SHIFT, pages.end << PAGE_SHIFT);
        while at < end {
            let (n, to) = scan(&self.0, at..end, of, &mut room)?;
            room.iter().take(n).for_each(&mut *add);
            if to <= at {
                break;
            }
            at = to;
        }
        Ok(())
    }

    /// The same by entries, one for each page.
    fn entries(&self, mappings: &[Vma]) -> io::Result<Vec<PageRun>> {
        let mut found: Vec<PageRun> = Vec::new();
        for mapping in mappings {
            let end = mapping.pages.end.min(mapping.pages.start + MOST_PAGES);
            self.each(mapping.pages.start..end, |page, bits| {
                if bits & (entry::PRESENT | entry::SWAPPED) == 0 {
                    return;
                }
                let has = |bit: u64| bits & bit != 0;
                let (is_there, is_file, touched) = (has(entry::PRESENT), has(entry::FILE), has(entry::SOFT_DIRTY));
                match found.last_mut() {
                    Some(last)
                        if last.pages.end == page
                            && (last.is_there, last.is_file, last.touched) == (is_there, is_file, touched) =>
                    {
                        last.pages.end += 1;
                    }
                    _ => found.push(PageRun { pages: page..page + 1, is_there, is_file, touched }),
                }
            })?;
        }
        Ok(found)
    }

    /// The number of the frame that each of these pages is in; 0: none, or this process may not
    /// know it.
    pub(super) fn frames(&self, pages: Range<u64>, mut tell: impl FnMut(u64, u64)) -> io::Result<()> {
        self.each(pages, |page, bits| tell(page, if bits & entry::PRESENT == 0 { 0 } else { bits & entry::FRAME }))
    }

    fn each(&self, pages: Range<u64>, mut tell: impl FnMut(u64, u64)) -> io::Result<()> {
        let mut entries = vec![0; pages.end.saturating_sub(pages.start).min(ENTRIES as u64) as usize];
        let mut at = pages.start;
        while at < pages.end {
            let n = (pages.end - at).min(ENTRIES as u64) as usize;
            let read = read_entries(&self.0, at, &mut entries[..n])?;
            if read == 0 {
                break;
            }
            for bits in &entries[..read] {
                tell(at, *bits);
                at += 1;
            }
        }
        Ok(())
    }
}
