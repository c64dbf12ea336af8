//! Anonymous memory that its owner gives up, a mapping or a range: its pages are dropped without a shadow, its slots are free.

use std::ops::Range;

use crate::engine::Engine;
use crate::folio::mapping::MappingKind;
use crate::folio::slot::Slot;
use crate::folio::table::State;
use crate::ids::{FolioId, MappingId, PageId};
use crate::world::{Effect, World};

/// The folio must stay until I/O on it has ended.
const BUSY: u32 = State::LOCKED | State::WRITEBACK;

impl Engine {
    /// Pages of a mapping that are in memory or in swap, and its page tables: what the out-of-memory killer weighs.
    pub fn footprint(&self, mapping: MappingId) -> u64 {
        let pages =
            self.mapping_pages(mapping).filter(|&p| !self.pages.folios.slot(PageId(p)).is_empty()).count() as u64;
        let tables = self.pages.space.mappings[mapping.index()].tables.clone();
        pages + tables.filter(|&t| self.pages.space.tables[t as usize].present).count() as u64
    }

    pub(crate) fn mapping_pages(&self, mapping: MappingId) -> Range<u32> {
        let first = self.pages.space.mappings[mapping.index()].first.0;
        let next = self.pages.space.mappings.get(mapping.index() + 1);
        first..next.map_or(self.pages.folios.len() as u32, |m| m.first.0)
    }

    /// The task that owned this anonymous mapping is gone: its pages and slots are free. What is being read or written
    /// goes when that has ended. The mapping may be used again, from nothing.
    pub fn drop_mapping<W: World>(&mut self, w: &mut W, mapping: MappingId) {
        if self.pages.space.mappings[mapping.index()].kind == MappingKind::Anon {
            self.drop_pages(w, self.mapping_pages(mapping));
            self.free_tables(mapping);
        }
    }

    /// `MADV_DONTNEED` for `nr` pages from `first` on, those of them that belong to the same anonymous mapping: they are as untouched as
    /// at the start. A large folio that is dropped in part is split. What is being read or written goes when that has ended; until
    /// then an access waits for it.
    pub fn drop_range<W: World>(&mut self, w: &mut W, first: PageId, nr: u32) {
        let mapping = self.pages.space.mapping_of(first);
        if self.pages.space.mappings[mapping.index()].kind == MappingKind::Anon {
            let end = first.0.saturating_add(nr).min(self.mapping_pages(mapping).end);
            self.drop_pages(w, first.0..end);
        }
    }

    fn drop_pages<W: World>(&mut self, w: &mut W, pages: Range<u32>) {
        self.drain_all();
        let mut at = pages.start;
        while at < pages.end {
            let Some(f) = self.folio_of(PageId(at)) else {
                at += self.drop_swap_entries(w, PageId(at), pages.end);
                continue;
            };
            let whole = self.pages_of(f);
            let end = whole.end.min(pages.end);
            if self.pages.folios.st(f).has(BUSY) {
                for page in (at..end).map(PageId) {
                    self.unmap_dropped(w, f, page);
                    self.pages.dropping.insert(page);
                }
            } else if whole.start == at && whole.end == end {
                self.drop_folio(w, f);
            } else {
                // Linux leaves this to a shrinker, which splits when memory is short.
                self.split_folio(f);
                continue;
            }
            at = end;
        }
    }

    /// The page is in swap and nowhere else, or nowhere. So may be the next ones, before `end` and in the same page table: their slots
    /// are freed at once if they follow one another. Returns how many pages were looked at.
    fn drop_swap_entries<W: World>(&mut self, w: &mut W, page: PageId, end: u32) -> u32 {
        let Some(slot) = self.swap_entry(page) else { return 1 };
        let end = end.min(self.pages.space.table_pages(self.table_of(page) as u32).end);
        let follows = |&p: &u32| {
            let expected = slot.nth(p - page.0);
            self.swap_entry(PageId(p)) == Some(expected) && self.swap.slots.cached(expected).is_none()
        };
        let nr = 1 + (page.0 + 1..end).take_while(follows).count() as u32;
        (page.0..page.0 + nr).for_each(|p| self.pages.folios.store(PageId(p), Slot::EMPTY));
        self.swap.slots.put_range(slot, nr);
        self.settle_swap(w);
        nr
    }

    /// Drops a whole folio.
    fn drop_folio<W: World>(&mut self, w: &mut W, f: FolioId) {
        for page in self.pages_of(f).map(PageId) {
            match self.swap_entry(page) {
                Some(slot) => self.swap.slots.put(slot),
                None => self.unmap_dropped(w, f, page),
            }
            self.pages.folios.store(page, Slot::EMPTY);
        }
        self.settle_swap(w);
        if self.pages.folios.st(f).has(State::SWAPCACHE) {
            self.release_swap_cache(w, f);
        }
        self.clear_dirty(f);
        self.lruvec_del(f, true);
        self.free_folio(w, f, self.pages.folios.st(f));
    }

    fn unmap_dropped<W: World>(&mut self, w: &mut W, f: FolioId, page: PageId) {
        if self.pages.space.is_mapped(page) {
            w.effect(Effect::Unmap { page });
            w.test_and_clear_dirty(page);
            self.pages.space.set_mapped(page, self.pages.folios.node_of(page), false);
            self.note_unmapped(f);
        }
    }

    /// A page of the folio was unmapped: perhaps it was the last one.
    pub(crate) fn note_unmapped(&mut self, f: FolioId) {
        if self.pages.space.mapped_in(self.pages_of(f)).next().is_none() {
            self.pages.folios.clear(f, State::MAPPED);
        }
    }

    /// I/O on a folio ended: what was dropped of it meanwhile goes now.
    pub(crate) fn finish_dropping_pages<W: World>(&mut self, w: &mut W, f: FolioId) {
        if self.pages.dropping.is_empty() {
            return;
        }
        let pages = self.pages_of(f);
        let due: Vec<u32> = self.pages.dropping.range(PageId(pages.start)..PageId(pages.end)).map(|p| p.0).collect();
        for &p in &due {
            self.pages.dropping.remove(&PageId(p));
        }
        for run in due.chunk_by(|a, b| a + 1 == *b) {
            self.drop_pages(w, run[0]..run[run.len() - 1] + 1);
        }
    }
}
