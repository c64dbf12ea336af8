//! Pages of a mapping that are in memory, and reads that are under way.

use crate::folio::flags::FolioFlags;
use crate::folio::slot::Slot;
use crate::ids::{FolioId, LruvecId, MappingId, PageId};
use crate::lru::pages::ResidentPages;
use crate::stat::Counter;
use crate::world::Ack;

impl ResidentPages {
    /// Takes the folios of a mapping off the lists of their lruvec; list by list, oldest first.
    pub(crate) fn take_listed(&mut self, mapping: MappingId, v: LruvecId) -> Vec<FolioId> {
        let pages = self.mapping_pages(mapping);
        let lruvec = &self.lruvecs[v.index()];
        let generations = lruvec.r#gen.lists.iter().flatten().flatten();
        let lists = lruvec.lists.iter().chain(generations);
        let of_mapping = |f: &FolioId| pages.contains(&self.folios.page(*f).0);
        let folios: Vec<FolioId> = lists.flat_map(|&l| self.folios.links.oldest_first(l)).filter(of_mapping).collect();
        folios.iter().for_each(|&f| self.lruvec_del(f, false));
        folios
    }

    #[inline]
    pub(crate) fn note_read(&mut self, f: FolioId, ack: Ack) {
        match ack {
            Ack::Done => self.folios.set(f, FolioFlags::UPTODATE),
            Ack::Pending => {
                self.folios.set(f, FolioFlags::LOCKED);
                self.reads_pending += 1;
            }
            Ack::Failed => self.count(f, Counter::ReadErrors, 1),
        }
    }

    /// Whether a slot is empty: neither in memory nor in swap, nor with a shadow.
    pub(crate) fn is_untouched(&self, page: PageId) -> bool {
        self.folios.slot(page) == Slot::EMPTY
    }

    /// Pages of a mapping that are in memory or in swap, and its page tables: what the
    /// out-of-memory killer weighs.
    pub(crate) fn footprint(&self, mapping: MappingId) -> u64 {
        let pages = self.mapping_pages(mapping).filter(|&p| !self.folios.slot(PageId(p)).is_empty()).count() as u64;
        let tables = self.space.mappings[mapping.index()].tables.clone();
        pages + tables.filter(|&t| self.space.tables[t as usize].present).count() as u64
    }
}
