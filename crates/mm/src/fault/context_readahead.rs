//! Reading ahead by what is in the page cache: a stream leaves pages in front of a miss, and a mark
//! on the page that opens the next window.
//!
//! Mechanism: `docs/mechanisms.md#readahead`.

use crate::fault::FaultContext;
use crate::fault::readahead::Readahead;
use crate::fault::window::Window;
use crate::folio::flags::FolioFlags;
use crate::ids::PageId;
use crate::lru::pages::ResidentPages;
use crate::world::World;

impl ResidentPages {
    /// Whether the page is in memory, and a read of it opens the next window.
    pub(crate) fn is_marked(&self, page: PageId) -> bool {
        self.folios.slot(page).folio().is_some_and(|f| self.folios.st(f).has(FolioFlags::READAHEAD))
    }
}

impl<W: World> FaultContext<'_, W> {
    /// The window to read now.
    pub(crate) fn context_window(
        &mut self,
        page: PageId,
        asked: u32,
        missed: bool,
        ra: &mut Readahead,
        max: u32,
    ) -> Window {
        if !missed {
            // The mark belongs to the folio, wherever in the folio the read began.
            let first = self.mem.pages.folios.slot(page).folio().map_or(page.0, |f| f.0);
            return self.next_window(PageId(first), asked + page.0 - first, ra, max);
        }
        let index = self.mem.pages.page_index(page);
        let goes_on = ra.next > 0 && (ra.next.saturating_sub(1)..=ra.next + 1).contains(&page.0);
        if index == 0 || goes_on {
            let size = Readahead::initial(asked, max);
            let window = ra.open(page.0, size, if size > asked { size - asked } else { size / 2 });
            return self.first_order(window, ra);
        }
        let (before, is_whole) = self.mem.pages.count_before(page, max);
        if before <= asked {
            // A read by itself: only the pages that were asked for; the window of the file stays.
            return Window { start: page.0, size: asked, mark: None, order: 0 };
        }
        // Pages in memory from the start of the file on: a long stream.
        let before = if is_whole { before * 2 } else { before };
        let window = ra.open(page.0, before.saturating_add(asked).min(max), 1);
        self.first_order(window, ra)
    }

    /// The window that the read of a marked page opens.
    pub(super) fn next_window(&mut self, page: PageId, asked: u32, ra: &mut Readahead, max: u32) -> Window {
        let Some(f) = self.mem.pages.folios.slot(page).folio() else { return Window::NONE };
        self.mem.pages.folios.clear(f, FolioFlags::READAHEAD);
        let order = self.mem.pages.folios.st(f).order();
        if ra.mark().is_some_and(|mark| self.round_down(mark, order, page) == page.0) {
            return self.following_order(f, ra.next_window(max), ra, max);
        }
        // The mark of another stream: its window ends where pages are missing.
        match self.mem.pages.next_missing(page, max) {
            Some(start) => {
                let size = Readahead::following(start - page.0 + asked, max);
                self.following_order(f, (start, size), ra, max)
            }
            None => Window::NONE,
        }
    }
}
