//! Large folios that become single pages, since a part of one is treated apart.

use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, PageId};
use crate::memory::Memory;

impl Memory {
    /// Splits a large folio into single pages that keep its flags and its place, see `split_pages`.
    /// Each part of a file's folio is dirty by itself, and only the first one opens the next window
    /// or is waited for.
    pub(crate) fn split_folio(&mut self, f: FolioId) {
        let (whole, parts) = (self.pages.folios.st(f), self.pages.pages_of(f));
        self.swap.split_pages(&mut self.pages, f);
        if whole.has(FolioFlags::ANON) {
            return;
        }
        let file = self.pages.space.mapping_of(PageId(f.0));
        let own = self.pages.folios.lruvec(f);
        for page in parts.skip(1).map(PageId) {
            let part = FolioId(page.0);
            self.pages.folios.clear(part, FolioFlags::READAHEAD | FolioFlags::RECLAIM);
            if whole.has(FolioFlags::DIRTY) {
                self.writeback.dirty.files.add(file, page, self.now_ns);
            }
            if self.pages.ext.is_some() {
                self.cache_ext_added(own, part);
            }
        }
    }

    /// Splits a folio into single pages, so that some of them may be treated apart. False: the
    /// folio is busy.
    pub(crate) fn split_unless_busy(&mut self, f: FolioId) -> bool {
        let st = self.pages.folios.st(f);
        let free = st.has(FolioFlags::LRU) && !st.has(FolioFlags::LOCKED | FolioFlags::WRITEBACK);
        if free && st.has(FolioFlags::LARGE) {
            self.split_folio(f);
        }
        free
    }

    /// The folio of a resident page, split unless it lies wholly in `at..end`, and the number of
    /// the page after it. None: the page has no folio, or the folio cannot be split now.
    pub(crate) fn next_folio(&mut self, at: u32, end: u32) -> Option<(FolioId, u32)> {
        let f = self.pages.folios.slot(PageId(at)).folio()?;
        let st = self.pages.folios.st(f);
        if !st.has(FolioFlags::LARGE) {
            return Some((f, at + 1));
        }
        let ids = self.pages.pages_of(f);
        let is_inside = ids.start == at && ids.end <= end;
        // A part of anonymous memory may have been unmapped before; a file has it anyway.
        let is_whole = !st.has(FolioFlags::ANON) || self.pages.space.mapped_in(ids.clone()).count() == ids.len();
        if is_inside && is_whole {
            return Some((f, ids.end));
        }
        self.split_unless_busy(f).then_some((FolioId(at), at + 1))
    }
}
