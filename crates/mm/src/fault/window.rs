//! Windows of readahead: the folios in which the missing pages of a window are read.
//!
//! Mechanism: `docs/mechanisms.md#large-folios-of-files`.

use crate::config::readahead::OrderGrowth;
use crate::fault::FaultContext;
use crate::fault::readahead::Readahead;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, MemcgId, PageId};
use crate::touch::Touch;
use crate::world::World;
use std::ops::Range;

/// Growth of the order of folios from one window to the next.
const GROWTH: u8 = 2;
/// With [`OrderGrowth::ByMark`], pages of a window below which its folios are single pages.
const SMALLEST: u32 = 4;

/// A window of pages to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u32,
    /// Pages of the window; 0: there is none.
    pub(crate) size: u32,
    /// The page that opens the next window when it is read.
    pub(crate) mark: Option<u32>,
    /// Order of the folios of the window, where the file allows it.
    pub(crate) order: u8,
}

impl Window {
    pub(crate) const NONE: Window = Window { start: 0, size: 0, mark: None, order: 0 };
}

impl<W: World> FaultContext<'_, W> {
    /// The first page at or in front of `at` whose index is a multiple of `1 << order`. The index
    /// is computed from the one of `near`, as page `at` need not exist.
    pub(crate) fn round_down(&self, at: u32, order: u8, near: PageId) -> u32 {
        let index = self.mem.pages.page_index(near).wrapping_add(u64::from(at)).wrapping_sub(u64::from(near.0));
        at.saturating_sub((index & ((1 << order) - 1)) as u32)
    }

    /// The order of a window that no mark has opened.
    pub(crate) fn first_order(&self, window: Window, ra: &mut Readahead) -> Window {
        ra.order = 0;
        let order = match self.mem.cfg.readahead.order_growth {
            OrderGrowth::ByMark if window.size >= SMALLEST => GROWTH,
            _ => 0,
        };
        Window { order, ..window }
    }

    /// The window that the mark on folio `f` has opened: its order, and with
    /// [`OrderGrowth::ByFile`] its end. Without large folios the end is a multiple of four pages.
    pub(crate) fn following_order(
        &self,
        f: FolioId,
        (start, size): (u32, u32),
        ra: &mut Readahead,
        max: u32,
    ) -> Window {
        if self.mem.cfg.readahead.order_growth == OrderGrowth::ByMark {
            let order = if size >= SMALLEST { self.mem.pages.folios.st(f).order() + GROWTH } else { 0 };
            return Window { order, ..ra.open(start, size, size) };
        }
        ra.order += GROWTH;
        let align = ra.order.min(max.trailing_zeros() as u8);
        let end = self.round_down(start.saturating_add(size), align, PageId(f.0));
        let size = if end > start { end - start } else { size };
        Window { order: ra.order, ..ra.open(start, size, size) }
    }

    /// Reads the missing pages of a window of the file of `page`, for a touch: all pages that come
    /// in with a fault count as in use.
    pub(crate) fn read_window(&mut self, page: PageId, window: Window, touch: Touch, ra: &mut Readahead) {
        if window.size == 0 {
            return;
        }
        let mapping = &self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()];
        let (memcg, max_order) = (mapping.memcg, mapping.max_order);
        let order = window.order.min(max_order).min(window.size.ilog2() as u8);
        if window.mark.is_some() {
            ra.order = order;
        }
        let end = window.start.saturating_add(window.size).min(self.mem.pages.readahead_end(page));
        let at = if order > 0 { self.read_folios(window, end, order, touch, memcg) } else { window.start };
        self.read_pages(page, at..end, window.mark, touch, memcg);
    }

    /// Reads missing pages of a window in folios, up to the first folio that cannot be made: a page
    /// of it is in memory, or there is no room. Returns the first page of that folio.
    fn read_folios(&mut self, window: Window, end: u32, order: u8, touch: Touch, memcg: MemcgId) -> u32 {
        let mut at = window.start;
        while at < end {
            let page = PageId(at);
            let order = self.order_at(page, end, order);
            let added = match order {
                0 if self.mem.pages.folios.slot(page).folio().is_some() => break,
                0 => self.as_readahead(|s| s.add_file_folio(page, touch, memcg)).ok(),
                _ => self.as_readahead(|s| s.add_large_file_folio(page, order, touch, memcg)).ok(),
            };
            let Some(f) = added else { break };
            if window.mark.is_some_and(|mark| self.round_down(mark, order, page) == at) {
                self.mem.pages.folios.set(f, FolioFlags::READAHEAD);
            }
            self.read_folio(f);
            at += 1 << order;
        }
        at
    }

    /// Reads the missing pages of a range, one by one.
    fn read_pages(&mut self, page: PageId, range: Range<u32>, mark: Option<u32>, touch: Touch, memcg: MemcgId) {
        let base = self.mem.pages.page_index(page) as i64 - i64::from(page.0);
        for p in range.map(PageId) {
            // Ids are consecutive, indices need not be.
            if self.mem.pages.page_index(p) as i64 - i64::from(p.0) != base
                || self.mem.pages.folios.slot(p).folio().is_some()
            {
                continue;
            }
            let Ok(f) = self.as_readahead(|s| s.add_file_folio(p, touch, memcg)) else { return };
            if mark == Some(p.0) {
                self.mem.pages.folios.set(f, FolioFlags::READAHEAD);
            }
            self.read_folio(f);
        }
    }
}
