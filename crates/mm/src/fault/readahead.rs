//! Reading ahead: sequential reads of a file get a growing window, swap-ins take their neighbours
//! along.
//!
//! A driver keeps a [`Readahead`] for every open file and passes it with the read. The window
//! starts with a read at the start of the file or next to the last one, doubles up to
//! `read_ahead_pages`, and is renewed when the reader reaches the page at which less than the next
//! window is left. Random reads get no window, nor do readers that said so.

use crate::config::recency::AccessAdvice;
use crate::fault::FaultContext;
use crate::fault::window::Window;
use crate::folio::flags::FolioFlags;
use crate::folio::mapping::MappingKind;
use crate::ids::{MemcgId, PageId};
use crate::stat::Counter;
use crate::touch::Touch;
use crate::world::World;

/// Readahead state of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readahead {
    /// First page of the window, by id.
    start: u32,
    /// Pages of the window.
    size: u32,
    /// Pages of the window beyond what was asked for when it was opened.
    async_size: u32,
    /// The order of the folios of the window, if the open file keeps it.
    pub(crate) order: u8,
    /// One more than the page read last; 0: none yet.
    pub(crate) next: u32,
    /// Advice of the program: random reads have no window; the largest sequential one is doubled.
    advice: AccessAdvice,
    /// `read_ahead_pages` of the device of the file, if that is not as configured.
    file_pages: Option<u32>,
    /// Faults that had to read, less pages that faults found in memory; above a limit nothing is
    /// read around a fault.
    pub(crate) mmap_miss: u32,
}

impl Readahead {
    /// For a file whose program said how it will read it.
    pub fn advised(advice: AccessAdvice) -> Readahead {
        Readahead { advice, ..Readahead::default() }
    }

    /// For a file whose device has a `read_ahead_pages` of its own.
    pub fn on_device(file_pages: u32) -> Readahead {
        Readahead { file_pages: Some(file_pages), ..Readahead::default() }
    }

    /// Its program says how it will read on.
    pub fn advise(&mut self, advice: AccessAdvice) {
        self.advice = advice;
    }

    /// Advice of its program.
    pub fn advice(&self) -> AccessAdvice {
        self.advice
    }

    /// Pages of the largest window, where `file_pages` is the configured number; 0: no window.
    pub(crate) fn max(&self, file_pages: u32) -> u32 {
        let file_pages = self.file_pages.unwrap_or(file_pages);
        match self.advice {
            AccessAdvice::Random => 0,
            AccessAdvice::Sequential => file_pages.saturating_mul(2),
            AccessAdvice::Normal | AccessAdvice::NoReuse => file_pages,
        }
    }

    /// Pages of the largest window around a fault in a mapping that has this `advice`. Advice on
    /// the open file can double the window, but never makes it 0.
    pub(crate) fn max_of_fault(&self, advice: AccessAdvice, file_pages: u32) -> u32 {
        match (advice, self.advice) {
            (AccessAdvice::Random, _) => 0,
            (_, AccessAdvice::Random) => self.file_pages.unwrap_or(file_pages),
            _ => self.max(file_pages),
        }
    }

    /// Pages of the first window, for a read of `asked` pages.
    pub(crate) fn initial(asked: u32, max: u32) -> u32 {
        let size = asked.next_power_of_two();
        if size <= max / 32 {
            size * 4
        } else if size <= max / 4 {
            size * 2
        } else {
            max
        }
    }

    /// Pages of the window after one of `size` pages.
    pub(crate) fn following(size: u32, max: u32) -> u32 {
        if size < max / 16 {
            size * 4
        } else if size <= max / 2 {
            size * 2
        } else {
            max
        }
    }

    /// The page that, when read, opens the next window.
    pub(crate) fn mark(&self) -> Option<u32> {
        (self.async_size > 0).then(|| self.start + self.size - self.async_size)
    }

    /// Opens a window of `size` pages; nobody asked for the last `async_size` of them.
    pub(crate) fn open(&mut self, start: u32, size: u32, async_size: u32) -> Window {
        (self.start, self.size, self.async_size) = (start, size, async_size);
        Window { start, size, mark: self.mark(), order: 0 }
    }

    /// The first page and the size of the window after this one.
    pub(crate) fn next_window(&self, max: u32) -> (u32, u32) {
        (self.start + self.size, self.size.max(Self::following(self.size, max)))
    }

    /// The window to read now, if any: its first page and length.
    fn window(&mut self, page: u32, asked: u32, first: u32, missed: bool, max: u32) -> Option<(u32, u32)> {
        let sequential = page == first || (self.next > 0 && (page == self.next || page + 1 == self.next));
        if self.mark() == Some(page) || (missed && self.size > 0 && page == self.start + self.size) {
            self.start += self.size;
            self.size = Self::following(self.size, max);
            self.async_size = self.size;
        } else if missed && sequential {
            self.start = page;
            self.size = Self::initial(asked, max);
            self.async_size = if self.size > asked { self.size - asked } else { self.size };
        } else {
            return None;
        }
        Some((self.start, self.size))
    }
}

impl<W: World> FaultContext<'_, W> {
    pub(crate) fn open_window(&mut self, page: PageId, asked: u32, missed: bool, ra: &mut Readahead, max: u32) {
        let m = &self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()];
        let (first, memcg) = (m.first, m.memcg);
        if m.kind != MappingKind::File {
            return;
        }
        let end = self.mem.pages.readahead_end(page);
        if self.mem.cfg.readahead.history {
            let window = self.context_window(page, asked.max(1), missed, ra, max.max(asked));
            return self.read_window(page, window, Touch::Read, ra);
        }
        let Some((start, size)) = ra.window(page.0, asked.max(1), first.0, missed, max.max(asked)) else { return };
        let base = self.mem.pages.page_index(page) as i64 - i64::from(page.0);
        for p in (start.min(end)..start.saturating_add(size).min(end)).map(PageId) {
            // Ids are consecutive, indices need not be.
            if self.mem.pages.page_index(p) as i64 - i64::from(p.0) != base
                || self.mem.pages.folios.slot(p).folio().is_some()
            {
                continue;
            }
            let Ok(f) = self.as_readahead(|s| s.add_file_folio(p, Touch::Read, memcg)) else { return };
            self.read_folio(f);
        }
    }

    /// Reads the pages of a range of a file that are not in memory.
    pub(crate) fn will_need(&mut self, first: PageId, nr: u32) {
        let m = &self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(first).index()];
        let memcg = m.memcg;
        if m.kind != MappingKind::File {
            return;
        }
        let end = self.mem.pages.readahead_end(first);
        for p in (first.0..first.0.saturating_add(nr).min(end)).map(PageId) {
            if self.mem.pages.folios.slot(p).folio().is_none() {
                let Ok(f) = self.as_readahead(|s| s.add_file_folio(p, Touch::Read, memcg)) else { return };
                self.read_folio(f);
            }
        }
    }

    /// Reads the neighbours of a swapped page that are in swap, too.
    pub(crate) fn swap_read_ahead(&mut self, page: PageId, memcg: MemcgId) {
        let max = 1u32 << self.mem.cfg.readahead.page_cluster;
        if max == 1 {
            return;
        }
        let mapping = self.mem.pages.space.mapping_of(page).index();
        let (first, end) = (self.mem.pages.space.mappings[mapping].first.0, self.mem.pages.mapping_end(page));
        let map_ahead = self.mem.cfg.readahead.swap_map_ahead;
        let m = &mut self.mem.pages.space.mappings[mapping];
        let (ra, streams) = (&mut m.swap_readahead, &mut m.streams);
        let window = if map_ahead { streams.next_window(page.0, max) } else { ra.next_window(page.0, max) };
        let from = match page.0 {
            p if map_ahead => p,
            p if p == ra.last + 1 => p,
            p if p + 1 == ra.last => p.saturating_sub(window - 1),
            p => p.saturating_sub((window - 1) / 2),
        };
        ra.last = page.0;
        for p in (from.max(first)..(from + window).min(end)).map(PageId).filter(|&p| p != page) {
            let Some(slot) = self.mem.pages.swap_entry(p) else { continue };
            if self.mem.swap.slots.cached(slot).is_some() || (!map_ahead && self.mem.swap.slots.is_synchronous(slot)) {
                continue;
            }
            if map_ahead && !self.has_room_ahead() {
                return self.mem.pages.space.mappings[mapping].streams.cut(p.0);
            }
            let Ok(f) = self.add_swap_folio(p, slot, memcg) else { return };
            if self.mem.pages.folios.st(f).has(FolioFlags::UPTODATE | FolioFlags::LOCKED) {
                continue;
            }
            self.mem.pages.folios.set(f, FolioFlags::READAHEAD);
            self.mem.pages.count(f, Counter::SwapRa, 1);
            self.read_folio(f);
        }
    }

    /// Reads what follows a page of a file that was touched in memory, if it goes on with a run of
    /// faults.
    pub(crate) fn file_map_ahead(&mut self, page: PageId, memcg: MemcgId) {
        let mapping = self.mem.pages.space.mapping_of(page).index();
        let end = self.mem.pages.readahead_end(page);
        let streams = &mut self.mem.pages.space.mappings[mapping].streams;
        let window = streams.next_window(page.0, self.mem.cfg.readahead.file_pages.max(1));
        for p in (page.0 + 1..page.0.saturating_add(window).min(end)).map(PageId) {
            if self.mem.pages.folios.slot(p).folio().is_some() {
                continue;
            }
            if !self.has_room_ahead() {
                return self.mem.pages.space.mappings[mapping].streams.cut(p.0);
            }
            let Ok(f) = self.as_readahead(|s| s.add_file_folio(p, Touch::MapRead, memcg)) else { return };
            self.read_folio(f);
        }
    }

    /// Whether there is room for a page that nobody asked for, above the frames that reclaim needs.
    fn has_room_ahead(&self) -> bool {
        self.mem.cfg.node.is_none() || self.mem.frames.nodes.free_pages() > self.mem.frames.min_mark_pages() + 1
    }

    /// Counts a hit of readahead, if the page that a fault found in the swap cache was read ahead.
    pub(crate) fn note_swap_ra_hit(&mut self, f: crate::FolioId) {
        if self.mem.pages.folios.st(f).has(FolioFlags::READAHEAD) {
            self.mem.pages.folios.clear(f, FolioFlags::READAHEAD);
            self.mem.pages.count(f, Counter::SwapRaHit, 1);
            let mapping = self.mem.pages.space.mapping_of(self.mem.pages.folios.page(f)).index();
            self.mem.pages.space.mappings[mapping].swap_readahead.hits += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folio::readahead::Streams;

    #[test]
    fn windows_grow_to_the_maximum_and_follow_one_another() {
        let (mut ra, mut end) = (Readahead::default(), 0);
        let mut sizes = Vec::new();
        for page in 0..400 {
            let missed = page >= end;
            if let Some((start, size)) = ra.window(page, 1, 0, missed, 32) {
                assert_eq!(start, end, "at {page}");
                end = start + size;
                sizes.push(size);
            }
            assert!(page < end);
            ra.next = page + 1;
        }
        assert_eq!(sizes[..5], [4, 8, 16, 32, 32]);
    }

    #[test]
    fn several_runs_of_faults_grow_side_by_side_and_random_ones_read_nothing_ahead() {
        let mut s = Streams::default();
        let windows: Vec<u32> = [10, 500, 11, 501, 13, 503, 17, 900, 25, 508].map(|p| s.next_window(p, 16)).to_vec();
        assert_eq!(windows, [1, 1, 2, 2, 4, 4, 8, 1, 16, 8], "508: a page of the run was in memory");
        let random = (0..64u32).map(|i| i.wrapping_mul(2_654_435_761) >> 8).filter(|&p| s.next_window(p, 16) > 1);
        assert_eq!(random.count(), 0);
    }

    #[test]
    fn random_reads_open_no_window() {
        let mut ra = Readahead::default();
        for page in [900, 17, 400, 3, 555] {
            assert_eq!(ra.window(page, 1, 0, true, 32), None);
            ra.next = page + 1;
        }
    }
}
