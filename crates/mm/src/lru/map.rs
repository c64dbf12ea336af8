//! Mapping and unmapping pages, and fault-around.
//!
//! Mechanism: `docs/mechanisms.md#access-by-mapping`, `docs/mechanisms.md#fault-around`.

use crate::config::Config;
use crate::config::readahead::MmapMissDecrease;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, PageId};
use crate::lru::pages::ResidentPages;
use crate::world::{Effect, World};

/// Whether fault-around may map a folio: read, not locked, and without a mark, which a fault on the
/// page itself is to find.
fn is_ready(st: FolioFlags) -> bool {
    st.has(FolioFlags::UPTODATE) && !st.has(FolioFlags::LOCKED | FolioFlags::READAHEAD)
}

impl ResidentPages {
    /// Maps the resident neighbours of a read fault, in the aligned window around it.
    #[inline]
    pub(crate) fn fault_around<W: World>(&mut self, cfg: &Config, w: &mut W, page: PageId) {
        let around = cfg.fault_around.pages;
        if around <= 1 {
            return;
        }
        if around > 64 {
            let near = self.space.around(page, self.folios.node_of(page), around as u32);
            let window = self.page_index(page) & !(around - 1);
            for near in near.map(PageId) {
                if self.page_index(near) & !(around - 1) == window {
                    self.map_neighbour(cfg, w, page, near);
                }
            }
            return;
        }
        // The window lies within a node of 64 slots: pages that are there and not mapped are found
        // by bits, before any folio is looked at.
        let ids = self.space.around_in_node(&self.folios, page, around);
        let mut there = self.folios.may_be_up_to_date(ids.clone()) & !self.space.mapped_bits(ids.clone());
        while there != 0 {
            self.map_neighbour(cfg, w, page, PageId(ids.start + there.trailing_zeros()));
            there &= there - 1;
        }
    }

    /// Maps a page in the window of a read fault on `page`, if it is there to be mapped.
    fn map_neighbour<W: World>(&mut self, cfg: &Config, w: &mut W, page: PageId, near: PageId) {
        if near == page || self.space.is_mapped(near) {
            return;
        }
        let Some(f) = self.folios.slot(near).folio() else { return };
        if is_ready(self.folios.st(f)) {
            self.map_page(w, f, near, cfg.fault_around.young, false);
        }
    }

    /// Pages by which a read fault lowers the misses of its file: pages that it finds in the
    /// window, mapped or not.
    pub(crate) fn mmap_hits(&self, cfg: &Config, page: PageId) -> u32 {
        let around = cfg.fault_around.pages;
        let counts = |page: PageId| {
            self.is_ready(page)
                && (cfg.readahead.mmap_hits == MmapMissDecrease::All
                    || self.folios.slot(page).folio().is_some_and(|f| !self.folios.st(f).has(FolioFlags::WORKINGSET)))
        };
        if cfg.readahead.mmap_hits == MmapMissDecrease::FaultedPage {
            return u32::from(counts(page));
        }
        let window = self.page_index(page) & !(around - 1);
        let near = self.space.around(page, self.folios.node_of(page), around as u32).map(PageId);
        near.filter(|&near| self.page_index(near) & !(around - 1) == window && counts(near)).count() as u32
    }

    /// Whether a page is there for fault-around to map: read, not locked, and without a mark.
    pub(crate) fn is_ready(&self, page: PageId) -> bool {
        self.folios.slot(page).folio().is_some_and(|f| is_ready(self.folios.st(f)))
    }

    /// Whether a page is in memory and locked: it is being read.
    pub(crate) fn is_locked(&self, page: PageId) -> bool {
        self.folios.slot(page).folio().is_some_and(|f| self.folios.st(f).has(FolioFlags::LOCKED))
    }

    /// Maps a folio again, young or not.
    pub(crate) fn map_folio<W: World>(&mut self, w: &mut W, f: FolioId, young: bool) {
        let writable = self.folios.st(f).has(FolioFlags::ANON);
        self.map_folio_with(w, f, young, writable);
    }

    pub(crate) fn map_folio_with<W: World>(&mut self, w: &mut W, f: FolioId, young: bool, writable: bool) {
        for page in self.pages_of(f).map(PageId) {
            self.map_page(w, f, page, young, writable);
        }
    }

    /// Maps one page of a folio.
    #[inline]
    pub(crate) fn map_page<W: World>(&mut self, w: &mut W, f: FolioId, page: PageId, young: bool, writable: bool) {
        self.space.set_mapped(page, self.folios.node_of(page), true);
        w.effect(Effect::Map { page, young, writable });
        self.folios
            .set(f, if w.is_executable(page) { FolioFlags::MAPPED | FolioFlags::EXEC } else { FolioFlags::MAPPED });
    }

    /// Unmaps a page that its owner gives up, if it is mapped. True: the page was dirty.
    pub(crate) fn unmap_zapped<W: World>(&mut self, w: &mut W, f: FolioId, page: PageId) -> bool {
        if !self.space.is_mapped(page) {
            return false;
        }
        w.effect(Effect::Unmap { page });
        let is_dirty = w.test_and_clear_dirty(page);
        self.space.set_mapped(page, self.folios.node_of(page), false);
        self.note_unmapped(f);
        is_dirty
    }

    /// A page of the folio was unmapped: perhaps it was the last one.
    fn note_unmapped(&mut self, f: FolioId) {
        if self.space.mapped_in(self.pages_of(f)).next().is_none() {
            self.folios.clear(f, FolioFlags::MAPPED | FolioFlags::EXEC);
        }
    }
}
