//! Reading ahead by what is in the page cache: a stream leaves pages in front of a miss, and a mark
//! on the page that opens the next window.
//!
//! Mechanism: `docs/mechanisms.md#readahead`.

use crate::fault::Fault;
use crate::fault::readahead::Readahead;
use crate::folio::state::State;
use crate::ids::PageId;
use crate::lru::pages::Pages;
use crate::touch::Touch;
use crate::world::World;
use std::ops::Range;

/// `MMAP_LOTSAMISS`.
const LOTS_OF_MISSES: u32 = 100;

impl Pages {
    /// Whether the page is in memory, and a read of it opens the next window.
    pub(crate) fn is_marked(&self, page: PageId) -> bool {
        self.folios.slot(page).folio().is_some_and(|f| self.folios.st(f).has(State::READAHEAD))
    }

    /// Whether the page in front of this one in its file is in memory.
    fn has_before(&self, page: u32, first: u32) -> bool {
        page > first
            && self.page_index(PageId(page - 1)) + 1 == self.page_index(PageId(page))
            && self.folios.slot(PageId(page - 1)).folio().is_some()
    }
}

impl<W: World> Fault<'_, W> {
    /// The window to read now: its first page and length, and the page that opens the next one.
    pub(crate) fn window_by_history(
        &mut self,
        page: PageId,
        asked: u32,
        missed: bool,
        ra: &mut Readahead,
        max: u32,
    ) -> (u32, u32, Option<u32>) {
        if !missed {
            return self.next_window(page, asked, ra, max);
        }
        let index = self.mem.pages.page_index(page);
        let goes_on = ra.next > 0 && (ra.next.saturating_sub(1)..=ra.next + 1).contains(&page.0);
        if index == 0 || goes_on {
            let size = Readahead::initial(asked, max);
            return ra.open(page.0, size, if size > asked { size - asked } else { size / 2 });
        }
        let first = self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()].first.0;
        let mut start = page.0;
        while page.0 - start < max && self.mem.pages.has_before(start, first) {
            start -= 1;
        }
        let before = page.0 - start;
        if before <= asked {
            // A read by itself: as it is, and the window of the file stays.
            return (page.0, asked, None);
        }
        // In memory from its beginning: a long stream.
        let before = if self.mem.pages.page_index(PageId(start)) == 0 { before * 2 } else { before };
        ra.open(page.0, before.saturating_add(asked).min(max), 1)
    }

    /// A page with a mark was read.
    fn next_window(&mut self, page: PageId, asked: u32, ra: &mut Readahead, max: u32) -> (u32, u32, Option<u32>) {
        if let Some(f) = self.mem.pages.folios.slot(page).folio() {
            self.mem.pages.folios.clear(f, State::READAHEAD);
        }
        if let Some(next) = ra.renew(page.0, max) {
            return next;
        }
        // The mark of another stream: its window ends where pages are missing.
        let end = self.mem.pages.mapping_end(page).min(page.0.saturating_add(max));
        let is_missing = |&p: &u32| self.mem.pages.folios.slot(PageId(p)).folio().is_none();
        match (page.0 + 1..end).find(is_missing) {
            Some(start) => {
                let size = Readahead::following(start - page.0 + asked, max);
                ra.open(start, size, size)
            }
            None => (page.0, 0, None),
        }
    }

    /// A fault on a page of a file that is mapped: with `history`, a miss reads around it.
    pub(crate) fn fault_window(&mut self, page: PageId, missed: bool, ra: &mut Readahead, max: u32) {
        let (start, size, mark) = if missed {
            ra.mmap_miss = (ra.mmap_miss + 1).min(10 * LOTS_OF_MISSES);
            if ra.mmap_miss > LOTS_OF_MISSES {
                return;
            }
            let first = self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()].first.0;
            ra.open(page.0.saturating_sub(max / 2).max(first), max, max / 4)
        } else {
            ra.mmap_miss = ra.mmap_miss.saturating_sub(1);
            if !self.mem.pages.is_marked(page) {
                return;
            }
            self.next_window(page, max, ra, max)
        };
        let end = self.mem.pages.mapping_end(page);
        self.read_window(page, start..start.saturating_add(size).min(end), mark);
    }

    /// Reads what is missing of a window.
    pub(crate) fn read_window(&mut self, page: PageId, window: Range<u32>, mark: Option<u32>) {
        let memcg = self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()].memcg;
        let base = self.mem.pages.page_index(page) as i64 - i64::from(page.0);
        for p in window.map(PageId) {
            // Ids are consecutive, indices need not be.
            if self.mem.pages.page_index(p) as i64 - i64::from(p.0) != base
                || self.mem.pages.folios.slot(p).folio().is_some()
            {
                continue;
            }
            let Ok(f) = self.add_file_folio(p, Touch::Read, memcg) else { return };
            if mark == Some(p.0) {
                self.mem.pages.folios.set(f, State::READAHEAD);
            }
            self.read_folio(f);
        }
    }
}
