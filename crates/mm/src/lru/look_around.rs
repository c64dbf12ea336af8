//! Accessed bits that reclaim asks for; under multi-gen LRU those around a young page, too.
//!
//! Mechanism: `docs/mechanisms.md#multi-gen-aging`.

use crate::config::lru::Generations;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, PageId};
use crate::lru::aging::is_dense;
use crate::lru::multi_gen::{MIN_LRU_BATCH, gen_index};
use crate::lru::pages::ResidentPages;
use crate::lru::policy::LruPolicy;
use crate::lru::recency::VmaRecency;
use crate::lru::tier::note_reference;
use crate::world::World;

impl ResidentPages {
    /// Number of mappings of the folio with the accessed bit set; clears the bits. Multi-gen LRU
    /// looks around, too.
    #[inline]
    pub(crate) fn folio_referenced<W: World>(&mut self, w: &mut W, f: FolioId) -> u32 {
        let st = self.folios.st(f);
        if !st.has(FolioFlags::MAPPED) {
            return 0;
        }
        if !st.has(FolioFlags::LARGE) {
            return self.page_referenced(w, self.folios.page(f));
        }
        // Several young pages in one mapping are one reference.
        let mapped = self.space.mapped_in(self.pages_of(f));
        mapped.fold(0, |young, page| young.max(self.page_referenced(w, page)))
    }

    #[inline]
    fn page_referenced<W: World>(&mut self, w: &mut W, page: PageId) -> u32 {
        let reference = self.vma_recency(page);
        if reference == VmaRecency::Unseen {
            return 0;
        }
        let young = w.test_and_clear_young_count(page);
        match reference {
            VmaRecency::Cleared => return 0,
            VmaRecency::Counts if young > 0 => by_policy!(self.cfg.kind, P => P::found_young(self, w, page)),
            _ => {}
        }
        young
    }

    /// Looks at up to 64 entries around a page that reclaim found young.
    pub(crate) fn look_around<W: World>(&mut self, w: &mut W, page: PageId) {
        let t = self.table_of(page);
        let (from, to) = self.look_around_window(page);
        let Some(v) = self.folios.slot(page).folio().map(|f| self.folios.lruvec(f)) else { return };
        let seq = self.lruvecs[v.index()].r#gen.max_seq;
        let mut young = 1;
        // Ids are no further apart than indices: what lies in the window has one of 64 at most.
        let (index, all) = (self.page_index(page), self.space.table_pages(t as u32));
        let start = u64::from(page.0).saturating_sub(index - from).max(u64::from(all.start)) as u32;
        let end = (u64::from(page.0) + (to - index)).min(u64::from(all.end)) as u32;
        let mut near_young = w.young_among(PageId(start), self.space.mapped_bits(start..end));
        while near_young != 0 {
            let near = PageId(start + near_young.trailing_zeros());
            near_young &= near_young - 1;
            let inside = (from..to).contains(&self.page_index(near));
            let Some(f) = self.folios.slot(near).folio().filter(|&f| inside && self.folios.lruvec(f) == v) else {
                continue;
            };
            if !w.test_and_clear_young(near) {
                continue;
            }
            young += 1;
            if self.walk_context {
                self.promote(v, f, gen_index(seq));
            } else {
                self.activate_around(f, gen_index(seq));
            }
        }
        if is_dense(to - from, young) {
            self.lruvecs[v.index()].r#gen.filter(seq).insert(t as u32);
        }
    }

    /// Promotes a folio without a walk context: by way of the activate batch.
    fn activate_around(&mut self, f: FolioId, youngest: usize) {
        let st = self.folios.st(f);
        if self.cfg.generations == Generations::Independent {
            let mut now = st;
            let again = note_reference(&mut now, self.cfg.faulted_pages);
            self.folios.put(f, now);
            if again && st.generation().is_some_and(|g| g != youngest) && !st.has(FolioFlags::ACTIVE) {
                self.batch_add(crate::lru::batch::Batch::Activate, f);
            }
            return;
        }
        match st.generation() {
            None => self.folios.set(f, FolioFlags::REFERENCED),
            Some(g) if g == youngest => {}
            Some(_) => {
                self.folios.clear(f, FolioFlags::REFS_MASK | FolioFlags::REFERENCED | FolioFlags::WORKINGSET);
                if !st.has(FolioFlags::ACTIVE) {
                    self.batch_add(crate::lru::batch::Batch::Activate, f);
                }
            }
        }
    }

    /// 64 entries around the page, inside its table and mapping: centred, or shifted at the edges.
    fn look_around_window(&self, page: PageId) -> (u64, u64) {
        let index = self.page_index(page);
        let m = &self.space.mappings[self.space.mapping_of(page).index()];
        let start = (index & !511).max(m.min_index);
        let end = ((index & !511) + 512).min(m.max_index + 1);
        let half = MIN_LRU_BATCH / 2;
        if end - start <= MIN_LRU_BATCH {
            (start, end)
        } else if index - start < half {
            (start, start + MIN_LRU_BATCH)
        } else if end - index < half {
            (end - MIN_LRU_BATCH, end)
        } else {
            (index - half, index + half)
        }
    }
}
