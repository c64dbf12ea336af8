//! Giving back: folios, page tables, and the pages of kernel objects, with what was charged for
//! them.

use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, MappingId, MemcgId, ZoneId};
use crate::memcg::group::PAGE_BYTES;
use crate::memcontrol::Memcontrol;
use crate::node::page_blocks::MigrateType;
use crate::stat::Counter;
use crate::world::{Effect, World};

impl Memcontrol<'_> {
    /// Page tables of which nothing is mapped: the tasks that had them are gone.
    pub(crate) fn release_tables(&mut self, id: MemcgId) {
        if self.groups.memcgs.get(id).page_tables == 0 {
            return;
        }
        for m in 0..self.pages.space.mappings.len() {
            if self.pages.space.mappings[m].memcg == id {
                self.free_tables(MappingId(m as u32));
            }
        }
    }

    /// Frees the page tables of a mapping that map nothing.
    pub(crate) fn free_tables(&mut self, mapping: MappingId) {
        let (memcg, tables) = {
            let m = &self.pages.space.mappings[mapping.index()];
            (m.memcg, m.tables.clone())
        };
        for t in tables {
            let table = &mut self.pages.space.tables[t as usize];
            if !table.present || table.mapped > 0 {
                continue;
            }
            table.present = false;
            if self.cfg.memcg.charge_kernel {
                self.frames.nodes.free_kernel_pages(1, MigrateType::Unmovable);
                self.groups.memcgs.uncharge(memcg, 1);
                let m = self.groups.memcgs.get_mut(memcg);
                m.kernel -= 1;
                m.page_tables -= 1;
            }
        }
    }

    /// Pages of kernel objects that hold none any more.
    pub(crate) fn release_objects(&mut self, id: MemcgId) {
        let m = self.groups.memcgs.get_mut(id);
        if m.nodes > 0 {
            return;
        }
        let pages = m.obj_bytes / PAGE_BYTES;
        m.obj_bytes %= PAGE_BYTES;
        m.kernel -= pages;
        self.groups.memcgs.uncharge(id, pages);
        self.frames.nodes.free_kernel_pages(pages, MigrateType::Reclaimable);
    }

    /// Takes back a charge that turned out to be of no use.
    pub(crate) fn cancel_charge(&mut self, memcg: MemcgId, zone: ZoneId, nr: u64) {
        self.groups.memcgs.uncharge(memcg, nr);
        self.frames.nodes.give_back(zone, nr);
    }

    /// Uncharges a folio, which was in state `st`, and gives back its entry and frames.
    #[inline]
    pub(crate) fn free_folio<W: World>(&mut self, w: &mut W, f: FolioId, st: FolioFlags) {
        if self.pages.ext.is_some() {
            self.pages.cache_ext_removed(f, false);
        }
        let own = self.pages.folios.lruvec(f);
        let memcg = self.pages.lruvecs[own.index()].memcg;
        debug_assert!(!st.has(FolioFlags::WRITEBACK | FolioFlags::MIGRATING), "{f:?} is free and under way: {st:?}");
        self.groups.memcgs.uncharge(memcg, st.nr_pages());
        if self.frames.nodes.is_limited() {
            self.frames.nodes.give_back(self.pages.folios.zone_of(f), st.nr_pages());
            self.frames.drop_buffers(self.pages.folios.page(f), st.nr_pages());
        }
        self.pages.count_lruvec(own, Counter::Pgfree, st.nr_pages());
        w.effect(Effect::Free { page: self.pages.folios.page(f), order: st.order() });
        self.pages.folios.release(f);
        debug_assert!(!self.pages.folios.is_used(f), "{f:?} is free, and still a folio");
    }
}
