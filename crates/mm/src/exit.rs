//! The end of a mapping: its pages are dropped without a shadow, its slots are free.

use crate::Engine;
use crate::folio::State;
use crate::ids::{FolioId, MappingId, PageId};
use crate::mapping::MappingKind;
use crate::slot::Slot;
use crate::world::{Effect, World};

impl Engine {
    /// Pages of a mapping that are in memory or in swap, and its page tables: what the out-of-memory killer weighs.
    pub fn footprint(&self, mapping: MappingId) -> u64 {
        let pages = self.mapping_pages(mapping).filter(|&p| !self.folios.slot(p).is_empty()).count() as u64;
        let tables = self.space.mappings[mapping.index()].tables.clone();
        pages + tables.filter(|&t| self.space.tables[t as usize].present).count() as u64
    }

    pub(crate) fn mapping_pages(&self, mapping: MappingId) -> impl Iterator<Item = PageId> + use<> {
        let first = self.space.mappings[mapping.index()].first.0;
        let next = self.space.mappings.get(mapping.index() + 1);
        (first..next.map_or(self.folios.len() as u32, |m| m.first.0)).map(PageId)
    }

    /// The task that owned this anonymous mapping is gone: its pages and slots are free. What is being read or written
    /// goes when that has ended. The mapping may be used again, from nothing.
    pub fn drop_mapping<W: World>(&mut self, w: &mut W, mapping: MappingId) {
        if self.space.mappings[mapping.index()].kind != MappingKind::Anon {
            return;
        }
        self.drain_all();
        for page in self.mapping_pages(mapping) {
            if !self.drop_page(w, page) {
                self.dropping.push(page);
            }
        }
        self.free_tables(mapping);
    }

    /// Drops one page of anonymous memory. False: I/O on it is under way.
    fn drop_page<W: World>(&mut self, w: &mut W, page: PageId) -> bool {
        const BUSY: u32 = State::LOCKED | State::WRITEBACK;
        if let Some(slot) = self.swap_entry(page) {
            let cached = self.swap.cached(slot);
            if cached.is_some_and(|f| self.folios.st(f).has(BUSY)) {
                return false;
            }
            self.folios.store(page, Slot::EMPTY);
            self.swap.put(slot);
            self.settle_swap(w);
            if let Some(f) = cached {
                self.release_swap_cache(w, f);
                self.discard_folio(w, f);
            }
            return true;
        }
        let Some(f) = self.folios.slot(page).folio() else { return true };
        if self.folios.st(f).has(BUSY) {
            return false;
        }
        if self.space.is_mapped(page) {
            w.effect(Effect::Unmap { page });
            w.test_and_clear_dirty(page);
            self.space.set_mapped(page, self.folios.node_of(page), false);
        }
        self.folios.store(page, Slot::EMPTY);
        if self.folios.st(f).has(State::SWAPCACHE) {
            self.release_swap_cache(w, f);
        }
        self.discard_folio(w, f);
        true
    }

    /// Takes an unused folio off its list and frees it.
    fn discard_folio<W: World>(&mut self, w: &mut W, f: FolioId) {
        self.clear_dirty(f);
        self.lruvec_del(f, true);
        self.free_folio(w, f, self.folios.st(f));
    }

    /// I/O on a page ended: if its owner is gone, so is the page.
    pub(crate) fn finish_dropping_page<W: World>(&mut self, w: &mut W, page: PageId) {
        if self.dropping.is_empty() {
            return;
        }
        if let Some(i) = self.dropping.iter().position(|&p| p == page) {
            self.dropping.swap_remove(i);
            self.drain_all();
            if !self.drop_page(w, page) {
                self.dropping.push(page);
            }
        }
    }
}
