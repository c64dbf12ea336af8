//! Steps of a folio on its way out: unmapping, freeing, or a move to a slower node.

use crate::folio::flags::FolioFlags;
use crate::folio::slot::Slot;
use crate::ids::{FolioId, MemcgId, PageId};
use crate::node::migration::MigrateReason;
use crate::reclaim::Reclaim;
use crate::scan::ShrinkStat;
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};

impl<W: World> Reclaim<'_, W> {
    /// Moves folios that reclaim isolated to a slower node; they count as reclaimed. Folios that
    /// cannot go stay in the list.
    pub(crate) fn demote_folios(&mut self, list: &mut Vec<FolioId>, stat: &mut ShrinkStat) {
        let Some(target) = self.mem.frames.nodes.demotion_target(self.sc.nid) else { return };
        let counter = match (self.sc.kswapd, self.sc.proactive) {
            (true, _) => Counter::PgdemoteKswapd,
            (false, true) => Counter::PgdemoteProactive,
            (false, false) => Counter::PgdemoteDirect,
        };
        let mut kept = 0;
        for i in 0..list.len() {
            let f = list[i];
            let nr = self.mem.pages.folios.st(f).nr_pages();
            let zone = self.mem.frames.demotion_frames(
                &mut self.mem.pages,
                self.mem.now_ns,
                self.world,
                self.sc.nid,
                target,
                nr,
            );
            let ack = zone.map_or(Ack::Failed, |zone| {
                self.mem.migration(self.world).migrate(f, zone, MigrateReason::Demotion(counter))
            });
            if ack == Ack::Failed {
                list[kept] = f;
                kept += 1;
                continue;
            }
            stat.reclaimed += nr;
            if ack == Ack::Pending && self.sc.kswapd {
                self.mem.frames.nodes.get_mut(self.sc.nid).kswapd.on_their_way += nr;
            }
        }
        list.truncate(kept);
    }

    /// Makes the folio inaccessible; takes over the dirty bit. False: a lazily freed folio was
    /// written again.
    pub(crate) fn unmap_folio(&mut self, f: FolioId) -> bool {
        let st = self.mem.pages.folios.st(f);
        // A page of a large folio may have been unmapped before.
        let mapped = st.has(FolioFlags::LARGE).then(|| self.mem.pages.space.mapped_in(self.mem.pages.pages_of(f)));
        let dirty = match mapped {
            None => self.unmap_page(f, self.mem.pages.folios.page(f), st),
            Some(mapped) => mapped.fold(false, |dirty, page| self.unmap_page(f, page, st) | dirty),
        };
        self.mem.pages.folios.clear(f, FolioFlags::MAPPED | FolioFlags::EXEC);
        if dirty && st.has(FolioFlags::ANON) && !st.has(FolioFlags::SWAPBACKED) {
            self.mem.pages.folios.set(f, FolioFlags::SWAPBACKED);
            self.mem.pages.map_folio(self.world, f, false);
            return false;
        }
        if dirty {
            self.mem.writeout(self.world).set_dirty(f);
        }
        true
    }

    /// Makes a page of a folio inaccessible. True: it was dirty.
    #[inline]
    pub(crate) fn unmap_page(&mut self, f: FolioId, page: PageId, st: FolioFlags) -> bool {
        self.world.effect(Effect::Unmap { page });
        let dirty = self.world.test_and_clear_dirty(page);
        self.mem.pages.space.set_mapped(page, self.mem.pages.folios.node_of(page), false);
        if st.has(FolioFlags::SWAPCACHE) {
            let slot = self.mem.pages.folios.swap(f).nth(page.0 - f.0);
            self.mem.swap.slots.get(slot);
            self.mem.pages.folios.store(page, Slot::value(u64::from(slot.0)));
        }
        dirty
    }

    /// Drops a clean file folio, leaving its shadow.
    #[inline]
    pub(crate) fn free_file(&mut self, f: FolioId, target: MemcgId) {
        if self.mem.pages.ext.is_some() {
            self.mem.pages.cache_ext_removed(f, true);
        }
        let shadow = self.mem.pages.workingset_eviction(f, target);
        let (page, st) = (self.mem.pages.folios.page(f), self.mem.pages.folios.st(f));
        for p in page.0..page.0 + st.nr_pages() as u32 {
            self.mem.memcontrol().replace_slot(PageId(p), shadow);
        }
        self.mem.memcontrol().free_folio(self.world, f, st);
    }
}
