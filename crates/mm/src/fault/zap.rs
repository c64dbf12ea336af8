//! Memory that its owner gives up: an anonymous mapping or a range of it, or a range of a file that
//! is truncated. Pages are dropped without a shadow, and their slots of swap are free then.

use std::ops::Range;

use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::folio::mapping::MappingKind;
use crate::folio::slot::Slot;
use crate::ids::{FolioId, MappingId, PageId};
use crate::lru::recency::VmaRecency;
use crate::world::World;

/// Flags of I/O on a folio: until the I/O has ended the folio must stay.
const BUSY: u32 = FolioFlags::LOCKED | FolioFlags::WRITEBACK;

impl<W: World> FaultContext<'_, W> {
    /// The task that owned this anonymous mapping is gone: its pages and slots are free. Pages that
    /// are being read or written go when that has ended. The mapping may be used again, from
    /// nothing.
    pub(crate) fn zap_mapping(&mut self, mapping: MappingId) {
        if self.mem.pages.space.mappings[mapping.index()].kind == MappingKind::Anon {
            self.zap_pages(self.mem.pages.mapping_pages(mapping));
            self.mem.memcontrol().free_tables(mapping);
        }
    }

    /// `MADV_DONTNEED` for `nr` pages from `first` on, as far as they belong to the same anonymous
    /// mapping: they become as untouched as at the start. A large folio that is dropped in part is
    /// split. Pages that are being read or written go when the I/O has ended; until then an access
    /// waits for them.
    pub(crate) fn zap_range(&mut self, first: PageId, nr: u32) {
        let mapping = self.mem.pages.space.mapping_of(first);
        if self.mem.pages.space.mappings[mapping.index()].kind == MappingKind::Anon {
            let end = first.0.saturating_add(nr).min(self.mem.pages.mapping_pages(mapping).end);
            self.zap_pages(first.0..end);
        }
    }

    /// Truncation: pages of a file leave memory, dirty or not, and so do shadows of pages that left
    /// before. Pages that are being read or written go when that has ended.
    pub(crate) fn truncate_range(&mut self, first: PageId, nr: u32) {
        let mapping = self.mem.pages.space.mapping_of(first);
        if self.mem.pages.space.mappings[mapping.index()].kind == MappingKind::File {
            let end = first.0.saturating_add(nr).min(self.mem.pages.mapping_pages(mapping).end);
            self.zap_pages(first.0..end);
        }
    }

    /// `munmap` of a range of a file: its pages stay in memory. An accessed bit that goes with an
    /// entry of the page table counts as an access by descriptor does, unless advice says that it
    /// counts for nothing.
    pub(crate) fn unmap_range(&mut self, first: PageId, nr: u32) {
        let mapping = self.mem.pages.space.mapping_of(first);
        if self.mem.pages.space.mappings[mapping.index()].kind != MappingKind::File {
            return;
        }
        let end = first.0.saturating_add(nr).min(self.mem.pages.mapping_pages(mapping).end);
        for page in (first.0..end).map(PageId) {
            let Some(f) = self.mem.pages.folios.slot(page).folio().filter(|_| self.mem.pages.space.is_mapped(page))
            else {
                continue;
            };
            let is_young = self.world.test_and_clear_young(page);
            if self.mem.pages.unmap_zapped(self.world, f, page) {
                self.mem.writeout(self.world).set_dirty(f);
            }
            if is_young && self.mem.pages.vma_recency(page) == VmaRecency::Counts {
                self.mem.pages.mark_accessed(f);
            }
        }
    }

    fn zap_pages(&mut self, pages: Range<u32>) {
        self.mem.pages.drain_all();
        let mut at = pages.start;
        while at < pages.end {
            let Some(f) = self.mem.swap.folio_of(&self.mem.pages, PageId(at)) else {
                at += match self.is_file(PageId(at)) {
                    true => self.forget_shadow(PageId(at)),
                    false => self.zap_swap_entries(PageId(at), pages.end),
                };
                continue;
            };
            let whole = self.mem.pages.pages_of(f);
            let end = whole.end.min(pages.end);
            if self.mem.pages.folios.st(f).has(BUSY) {
                for page in (at..end).map(PageId) {
                    self.mem.pages.unmap_zapped(self.world, f, page);
                    self.mem.pages.zapping.insert(page);
                }
            } else if whole.start == at && whole.end == end {
                self.zap_folio(f);
            } else {
                // Linux leaves this to a shrinker, which splits when memory is short.
                self.mem.split_folio(f);
                continue;
            }
            at = end;
        }
    }

    fn is_file(&self, page: PageId) -> bool {
        self.mem.pages.space.mappings[self.mem.pages.space.mapping_of(page).index()].kind == MappingKind::File
    }

    /// Forgets the shadow of a page of a file that is not in memory. Returns the pages looked at:
    /// 1.
    fn forget_shadow(&mut self, page: PageId) -> u32 {
        if !self.mem.pages.folios.slot(page).is_empty() {
            self.mem.memcontrol().replace_slot(page, Slot::EMPTY);
        }
        1
    }

    /// Frees the slot of a page that is not in memory, if it has one. Slots in a row of the next
    /// pages, before `end` and in the same page table, are freed with it. Returns how many pages
    /// were looked at.
    fn zap_swap_entries(&mut self, page: PageId, end: u32) -> u32 {
        let Some(slot) = self.mem.pages.swap_entry(page) else { return 1 };
        let end = end.min(self.mem.pages.space.table_pages(self.mem.pages.table_of(page) as u32).end);
        let follows = |&p: &u32| {
            let expected = slot.nth(p - page.0);
            self.mem.pages.swap_entry(PageId(p)) == Some(expected) && self.mem.swap.slots.cached(expected).is_none()
        };
        let nr = 1 + (page.0 + 1..end).take_while(follows).count() as u32;
        (page.0..page.0 + nr).for_each(|p| self.mem.pages.folios.store(PageId(p), Slot::EMPTY));
        self.mem.swap.slots.put_range(slot, nr);
        self.mem.swap_cache(self.world).settle_swap();
        nr
    }

    /// Drops a whole folio.
    pub(super) fn zap_folio(&mut self, f: FolioId) {
        for page in self.mem.pages.pages_of(f).map(PageId) {
            if self.is_file(page) {
                self.mem.pages.unmap_zapped(self.world, f, page);
                self.mem.pages.folios.store(page, Slot::EMPTY);
                self.mem.memcontrol().note_evicted(page, Slot::EMPTY);
                continue;
            }
            match self.mem.pages.swap_entry(page) {
                Some(slot) => self.mem.swap.slots.put(slot),
                None => _ = self.mem.pages.unmap_zapped(self.world, f, page),
            }
            self.mem.pages.folios.store(page, Slot::EMPTY);
        }
        self.mem.swap_cache(self.world).settle_swap();
        if self.mem.pages.folios.st(f).has(FolioFlags::SWAPCACHE) {
            self.mem.swap_cache(self.world).release_swap_cache(f);
        }
        self.mem.writeout(self.world).clear_dirty(f);
        self.mem.pages.lruvec_del(f, true);
        let st = self.mem.pages.folios.st(f);
        self.mem.memcontrol().free_folio(self.world, f, st);
    }

    /// Drops the pages of a folio that were given up while I/O on it was under way, which has
    /// ended.
    pub(crate) fn finish_zapping(&mut self, f: FolioId) {
        if self.mem.pages.zapping.is_empty() {
            return;
        }
        let pages = self.mem.pages.pages_of(f);
        let due: Vec<u32> = self.mem.pages.zapping.range(PageId(pages.start)..PageId(pages.end)).map(|p| p.0).collect();
        for &p in &due {
            self.mem.pages.zapping.remove(&PageId(p));
        }
        for run in due.chunk_by(|a, b| a + 1 == *b) {
            self.zap_pages(run[0]..run[run.len() - 1] + 1);
        }
    }
}
