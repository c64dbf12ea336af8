//! Clean pages of files that leave memory because somebody asks for it: `POSIX_FADV_DONTNEED`,
//! `drop_caches`, a write that bypasses them.

use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::folio::mapping::MappingKind;
use crate::folio::slot::Slot;
use crate::ids::{FolioId, PageId};
use crate::lru::batch::Batch;
use crate::world::World;

/// Flags that keep a page from being invalidated.
const KEPT: u32 =
    FolioFlags::LOCKED | FolioFlags::WRITEBACK | FolioFlags::DIRTY | FolioFlags::MAPPED | FolioFlags::UNEVICTABLE;

impl<W: World> FaultContext<'_, W> {
    /// Drops clean pages of a file that are in no page table, without a shadow; shadows of pages
    /// that left before go, too. Other pages stay, and are next for reclaim; so does a large folio
    /// that is only partly in the range. Returns how many pages left.
    pub(crate) fn invalidate_range(&mut self, first: PageId, nr: u32) -> u64 {
        let mapping = self.mem.pages.space.mapping_of(first);
        if self.mem.pages.space.mappings[mapping.index()].kind != MappingKind::File {
            return 0;
        }
        self.mem.pages.drain_all();
        let end = first.0.saturating_add(nr).min(self.mem.pages.mapping_pages(mapping).end);
        let (mut at, mut left) = (first.0, 0);
        while at < end {
            let Some(f) = self.mem.pages.folios.slot(PageId(at)).folio() else {
                if !self.mem.pages.folios.slot(PageId(at)).is_empty() {
                    self.mem.memcontrol().replace_slot(PageId(at), Slot::EMPTY);
                }
                at += 1;
                continue;
            };
            let whole = self.mem.pages.pages_of(f);
            if whole.start >= first.0 && whole.end <= end {
                left += self.invalidate(f);
            }
            at = whole.end;
        }
        left
    }

    fn invalidate(&mut self, f: FolioId) -> u64 {
        let st = self.mem.pages.folios.st(f);
        if st.has(KEPT) {
            if !st.has(FolioFlags::UNEVICTABLE) {
                self.mem.pages.batch_add(Batch::DeactivateFile, f);
            }
            return 0;
        }
        let pages = st.nr_pages();
        self.zap_folio(f);
        pages
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Policy};
    use crate::engine::Engine;
    use crate::folio::mapping::MappingKind;
    use crate::ids::{MemcgId, PageId};
    use crate::touch::Touch;
    use crate::world_at_once::AtOnce;

    #[test]
    fn what_is_clean_and_not_mapped_leaves_without_a_shadow() {
        let mut e = Engine::new(Config::new(Policy::Lru)).expect("an engine");
        let mut w = AtOnce::default();
        e.add_mapping(MappingKind::File, MemcgId::ROOT, 0..8).expect("a file");
        for page in 0..8 {
            let touch = match page {
                0 => Touch::Write,
                1 => Touch::MapRead,
                _ => Touch::Read,
            };
            e.access(&mut w, PageId(page), touch);
        }
        assert_eq!(e.invalidate_range(&mut w, PageId(0), 4), 2);
        let there: Vec<_> = (0..8).filter(|&p| e.is_resident(PageId(p))).collect();
        assert_eq!(there, [0, 1, 4, 5, 6, 7]);
        assert_eq!(e.drop_caches(&mut w), 4);
        e.access(&mut w, PageId(5), Touch::Read);
        assert_eq!(e.vmstat().get(crate::Counter::WorkingsetRefaultFile), 0, "nothing remembers it");
        e.validate().expect("all adds up");
    }
}
