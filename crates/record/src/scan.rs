//! Result of a look at the memory of a process: its mappings, and what is in their pages.

use crate::event::Inode;
use refault_syscalls::maps::MapsLine;
use std::ops::Range;

const PAGE_SHIFT: u32 = 12;

/// A line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vma {
    /// Addresses, in pages.
    pub pages: Range<u64>,
    /// The file that is mapped; none: anonymous memory.
    pub file: Option<Inode>,
    /// The page of the file that the first one is.
    pub offset: u64,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether it holds code.
    pub executable: bool,
    /// Others see what is written.
    pub shared: bool,
    /// Memory that is no file of a file system, though it has the number of one: shared memory.
    pub is_shm: bool,
}

impl Vma {
    /// A line; none: it is none of memory that programs use.
    pub fn parse(line: &str) -> Option<Vma> {
        let line = MapsLine::parse(line)?;
        let (start, end) = (line.addresses.start >> PAGE_SHIFT, line.addresses.end >> PAGE_SHIFT);
        let offset = line.offset >> PAGE_SHIFT;
        let is_of_kernel = line.name.starts_with("[v");
        if start >= end || is_of_kernel || offset.checked_add(end - start).is_none() {
            return None;
        }
        let is_shm = ["/dev/zero", "/dev/shm/", "/memfd:", "/SYSV"].iter().any(|begin| line.name.starts_with(begin));
        Some(Vma {
            pages: start..end,
            file: (line.inode > 0).then_some(Inode { dev: line.device.0 << 20 | line.device.1, ino: line.inode }),
            offset,
            writable: line.has('w'),
            executable: line.has('x'),
            shared: line.is_shared(),
            is_shm,
        })
    }

    /// The lines of `/proc/PID/maps`, ascending and apart.
    pub fn parse_all(text: &str) -> Vec<Vma> {
        let mut all: Vec<Vma> = Vec::new();
        for mapping in text.lines().filter_map(Vma::parse) {
            if all.last().is_none_or(|last| last.pages.end <= mapping.pages.start) {
                all.push(mapping);
            }
        }
        all
    }

    /// The page of its file at an address.
    fn page(&self, at: u64) -> u64 {
        self.offset + (at - self.pages.start)
    }
}

/// Pages of an address space that follow one another and are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// Addresses, in pages.
    pub pages: Range<u64>,
    /// In memory; else in swap.
    pub is_there: bool,
    /// Page of a file, and not a copy of one.
    pub is_file: bool,
    /// Touched since the last look.
    pub touched: bool,
}

/// Regions cut so that pages in `touched` are touched, and other pages are not; all ascending and
/// apart.
pub(crate) fn marked(regions: Vec<PageRun>, touched: &[Range<u64>]) -> Vec<PageRun> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for region in regions {
        let mut from = region.pages.start;
        while let Some(one) = touched.get(at).filter(|one| one.start < region.pages.end) {
            let (start, end) = (one.start.max(from), one.end.min(region.pages.end));
            if start < end {
                pieces.push(PageRun { pages: from..start, touched: false, ..region.clone() });
                pieces.push(PageRun { pages: start..end, touched: true, ..region.clone() });
                from = end;
            }
            if one.end > region.pages.end {
                break;
            }
            at += 1;
        }
        pieces.push(PageRun { pages: from..region.pages.end, touched: false, ..region });
    }
    pieces.retain(|piece| !piece.pages.is_empty());
    pieces
}

/// Regions without touches outside of `pages`; all ascending and apart.
pub(crate) fn touched_within(regions: Vec<PageRun>, pages: &[Range<u64>]) -> Vec<PageRun> {
    let mut touched = Vec::new();
    for region in regions.iter().filter(|region| region.touched) {
        let at = pages.partition_point(|one| one.end <= region.pages.start);
        let here = pages[at..].iter().take_while(|one| one.start < region.pages.end);
        touched.extend(here.map(|one| one.start.max(region.pages.start)..one.end.min(region.pages.end)));
    }
    marked(regions, &touched)
}

/// Pages of anonymous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The first, by its address.
    pub first: u64,
    /// Number of pages.
    pub pages: u64,
    /// In memory; else in swap.
    pub is_there: bool,
    /// Touched since the last look.
    pub touched: bool,
}

/// A look at a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Touched pages of files: the first, and how many.
    pub files: Vec<(Inode, u64, u64)>,
    /// Files whose touches this look would have seen.
    pub in_view: Vec<Inode>,
    /// All anonymous memory that has content, ascending and apart.
    pub memory: Vec<Memory>,
    /// Touches are writes; else it is not known what they are.
    pub writes: bool,
}

impl Scan {
    /// Scan of mappings and of regions in them, both ascending and apart. `writes`: only writes are
    /// seen.
    pub fn of(mappings: &[Vma], regions: &[PageRun], writes: bool) -> Scan {
        let mut scan = Scan { writes, ..Scan::default() };
        let shows = |m: &&Vma| !m.is_shm && (!writes || m.writable && m.shared);
        scan.in_view = mappings.iter().filter(shows).filter_map(|m| m.file).collect();
        scan.in_view.sort_unstable();
        scan.in_view.dedup();
        let mut at = 0;
        for region in regions {
            while mappings.get(at).is_some_and(|m| m.pages.end <= region.pages.start) {
                at += 1;
            }
            for mapping in mappings[at..].iter().take_while(|m| m.pages.start < region.pages.end) {
                scan.add(mapping, region);
            }
        }
        scan
    }

    fn add(&mut self, mapping: &Vma, region: &PageRun) {
        let first = region.pages.start.max(mapping.pages.start);
        let pages = region.pages.end.min(mapping.pages.end) - first;
        if mapping.is_shm {
            return;
        }
        match mapping.file {
            Some(inode) if region.is_file => {
                // A page of the file itself is written through a shared mapping only.
                let is_seen = !self.writes || mapping.writable && mapping.shared;
                if region.touched && region.is_there && is_seen {
                    self.files.push((inode, mapping.page(first), pages));
                }
            }
            // Shared memory without a name has a file that no mapping names.
            None if mapping.shared => {}
            // Private copies of a file's pages are anonymous.
            _ => self.memory.push(Memory { first, pages, is_there: region.is_there, touched: region.touched }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000-00402000 r-xp 00003000 08:01 77 /usr/bin/a b\n\
00402000-00404000 rw-p 00005000 08:01 77 /usr/bin/a b\n\
00500000-00510000 rw-p 00000000 00:00 0 [heap]\n\
00600000-00602000 rw-s 00001000 08:01 78 /data\n\
00700000-00702000 rw-s 00000000 00:05 9 /memfd:x (deleted)\n\
7fff0000-7fff1000 r--p 00000000 00:00 0 [vvar]\n\
garbage\n";

    #[test]
    fn lines_of_maps() {
        let maps = Vma::parse_all(MAPS);
        assert_eq!(maps.len(), 5, "not what the kernel has there, and no garbage");
        let text = &maps[0];
        assert_eq!((text.pages.clone(), text.offset, text.writable), (0x400..0x402, 3, false));
        assert_eq!(text.file, Some(Inode { dev: 8 << 20 | 1, ino: 77 }));
        assert_eq!((maps[2].file, maps[2].writable, maps[2].shared), (None, true, false));
        assert!(maps[3].shared && maps[4].is_shm);
        for line in
            ["", "0-0 r--p 0 0:0 0", "5-4 r--p 0 0:0 0", "1000-2000", "1000-2000 rw-p 0 0:0", "x-y rw-p 0 0:0 0"]
        {
            assert_eq!(Vma::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn regions_are_cut_where_touches_begin_and_end() {
        let region = |pages: Range<u64>, touched| PageRun { pages, is_there: true, is_file: false, touched };
        let cut = |touched: &[Range<u64>]| {
            let pieces = marked(vec![region(10..20, true), region(30..40, true)], touched);
            pieces.into_iter().map(|piece| (piece.pages, piece.touched)).collect::<Vec<_>>()
        };
        assert_eq!(cut(&[]), [(10..20, false), (30..40, false)]);
        assert_eq!(cut(&[0..5, 10..20, 25..26]), [(10..20, true), (30..40, false)]);
        let want = [(10..12, false), (12..13, true), (13..15, false), (15..20, true), (30..35, true), (35..40, false)];
        assert_eq!(cut(&[12..13, 15..35]), want, "one may go over several");
    }

    #[test]
    fn touches_count_within_the_pages_that_are_named() {
        let region = |pages: Range<u64>, touched| PageRun { pages, is_there: true, is_file: false, touched };
        let regions = vec![region(10..20, true), region(20..30, false), region(30..40, true)];
        let pieces = touched_within(regions, &[0..12, 15..35, 50..60]);
        let pieces: Vec<_> = pieces.into_iter().map(|piece| (piece.pages, piece.touched)).collect();
        let (seen, rest) = ([(10..12, true), (12..15, false), (15..20, true)], [(20..30, false), (30..35, true)]);
        assert_eq!(pieces, [&seen[..], &rest, &[(35..40, false)]].concat());
    }

    #[test]
    fn pages_belong_to_files_and_to_memory() {
        let region = |pages: Range<u64>, is_there, is_file| PageRun { pages, is_there, is_file, touched: true };
        // One region may go over several mappings.
        let regions = [
            region(0x400..0x403, true, true),
            region(0x403..0x404, true, false),
            region(0x500..0x502, false, false),
            region(0x601..0x602, true, true),
            region(0x700..0x701, true, true),
        ];
        let scan = Scan::of(&Vma::parse_all(MAPS), &regions, false);
        let (program, data) = (Inode { dev: 8 << 20 | 1, ino: 77 }, Inode { dev: 8 << 20 | 1, ino: 78 });
        assert_eq!(scan.files, [(program, 3, 2), (program, 5, 1), (data, 2, 1)]);
        let memory = |first, pages, is_there| Memory { first, pages, is_there, touched: true };
        assert_eq!(scan.memory, [memory(0x403, 1, true), memory(0x500, 2, false)]);
        assert_eq!(scan.in_view, [program, data]);
        assert_eq!(Scan::of(&Vma::parse_all(MAPS), &regions, true).in_view, [data]);
    }
}
