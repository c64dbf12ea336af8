//! Moving folios from one node to another.
//!
//! A folio that moves is on no list, locked and unmapped; accesses to it wait. It keeps its number,
//! its slots, its charge and its flags: only its frames are others afterwards, and with them its
//! lists.
//!
//! It may call: `lru`, `node`, `writeback`. It is called by: `reclaim` to demote, `fault` to
//! promote.

use crate::config::Config;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, NodeId, PageId, ZoneId};
use crate::lru::batch::Batch;
use crate::lru::pages::ResidentPages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;
use crate::node::migration::{MigrateReason, Migration};
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};
use crate::writeback::{Writeback, Writeout};

/// A move from node to node, with the parts that it may change.
pub(crate) struct MigrateContext<'a, W> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut ResidentPages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
    pub(crate) writeback: &'a mut Writeback,
    pub(crate) now_ns: u64,
    pub(crate) world: &'a mut W,
}

impl<W> MigrateContext<'_, W> {
    /// See [`Writeout`].
    #[inline(always)]
    fn writeout(&mut self) -> Writeout<'_, W> {
        Writeout {
            cfg: self.cfg,
            pages: self.pages,
            groups: self.groups,
            frames: self.frames,
            writeback: self.writeback,
            now_ns: self.now_ns,
            world: self.world,
        }
    }
}

impl<W: World> MigrateContext<'_, W> {
    /// Moves an isolated folio, neither locked nor under writeback, to frames that were taken for
    /// it. `Failed`: the folio is as before, still isolated, and the new frames are given back.
    pub(crate) fn migrate(&mut self, f: FolioId, to: ZoneId, reason: MigrateReason) -> Ack {
        let st = self.pages.folios.st(f);
        debug_assert!(!st.has(FolioFlags::LRU | FolioFlags::LOCKED | FolioFlags::WRITEBACK | FolioFlags::ADDING));
        let mapped = self.unmap_migrating(f);
        self.pages.folios.set(f, FolioFlags::LOCKED | FolioFlags::MIGRATING);
        self.pages.work.migrated += st.nr_pages();
        let (page, order, from) = (self.pages.folios.page(f), st.order(), self.pages.folios.nid(f));
        let migration = Migration { to, reason, mapped };
        let ack = self.world.effect(Effect::Migrate { page, order, from, to: to.nid() });
        match ack {
            Ack::Pending => _ = self.frames.migrating.insert(f, migration),
            Ack::Done | Ack::Failed => self.settle_migration(f, migration, ack == Ack::Done),
        }
        if ack == Ack::Done {
            self.add_migrated(f, reason);
        }
        ack
    }

    /// Unmaps a folio, so that nobody uses it while it is copied. Returns each page that was
    /// mapped, and whether it was young.
    fn unmap_migrating(&mut self, f: FolioId) -> Vec<(PageId, bool)> {
        let mut mapped = Vec::new();
        let mut dirty = false;
        if self.pages.folios.st(f).has(FolioFlags::MAPPED) {
            for page in self.pages.space.mapped_in(self.pages.pages_of(f)) {
                mapped.push((page, self.world.test_and_clear_young(page)));
                self.world.effect(Effect::Unmap { page });
                dirty |= self.world.test_and_clear_dirty(page);
                self.pages.space.set_mapped(page, self.pages.folios.node_of(page), false);
            }
            self.pages.folios.clear(f, FolioFlags::MAPPED | FolioFlags::EXEC);
        }
        if dirty {
            if self.pages.folios.st(f).has(FolioFlags::ANON) {
                // Written after it was advised free.
                self.pages.folios.set(f, FolioFlags::SWAPBACKED);
            }
            self.writeout().set_dirty(f);
        }
        mapped
    }

    /// Ends a migration. If it is `ok`, the old frames are freed, else the new ones; the pages are
    /// mapped again.
    pub(crate) fn settle_migration(&mut self, f: FolioId, migration: Migration, ok: bool) {
        let Migration { to, reason, mapped } = migration;
        let st = self.pages.folios.st(f);
        debug_assert!(st.has(FolioFlags::LOCKED) && st.has(FolioFlags::MIGRATING), "{f:?} was not on its way: {st:?}");
        debug_assert!(!st.has(FolioFlags::LRU | FolioFlags::MAPPED), "{f:?} could be reached on its way: {st:?}");
        self.pages.folios.clear(f, FolioFlags::LOCKED | FolioFlags::MIGRATING);
        let nr = self.pages.folios.st(f).nr_pages();
        let from = self.pages.folios.zone_of(f);
        if ok {
            self.count_migrated(f, to.nid(), reason);
            self.frames.nodes.give_back(from, nr);
            if reason == MigrateReason::Demotion(Counter::PgdemoteKswapd) {
                self.frames.nodes.get_mut(from.nid()).kswapd.failures = 0;
            }
            self.pages.folios.note_frames(self.pages.folios.page(f), nr, to);
        } else {
            self.frames.nodes.give_back(to, nr);
            self.pages.count_machine(Counter::PgmigrateFail, nr);
        }
        let writable = self.pages.folios.st(f).has(FolioFlags::ANON);
        for (page, young) in mapped {
            // It may have been dropped meanwhile.
            if !self.pages.zapping.contains(&page) {
                self.pages.map_page(self.world, f, page, young, writable);
            }
        }
    }

    fn count_migrated(&mut self, f: FolioId, to: NodeId, reason: MigrateReason) {
        let nr = self.pages.folios.st(f).nr_pages();
        self.pages.count_machine(Counter::PgmigrateSuccess, nr);
        match reason {
            MigrateReason::Demotion(counter) => self.pages.count(f, counter, nr),
            MigrateReason::Promotion => self.count_promoted(f, to),
        }
    }

    /// A folio that has moved, or that could not after all, goes to the list that its flags ask
    /// for, by way of a batch as new ones do.
    pub(crate) fn add_migrated(&mut self, f: FolioId, reason: MigrateReason) {
        let st = self.pages.state_of_new(self.pages.folios.st(f), reason == MigrateReason::Promotion);
        self.pages.folios.put(f, st);
        self.pages.batch_push(Batch::Add, f, st);
    }

    /// Counts a folio that was promoted by a hint fault.
    fn count_promoted(&mut self, f: FolioId, to: NodeId) {
        let nr = self.pages.folios.st(f).nr_pages();
        self.pages.count(f, Counter::NumaPagesMigrated, nr);
        let Some(hints) = &mut self.frames.hints else { return };
        if let Some(promoter) = &mut hints.promoters[to.index()] {
            promoter.promoted(nr);
            self.pages.count(f, Counter::PgpromoteSuccess, nr);
        }
    }
}
