//! Moving folios from one node to another: demotion by reclaim (9.2), and the part that promotion has in common with it.
//!
//! A folio that moves is on no list, locked and unmapped; whoever touches it waits. It keeps its number, its slots, its charge and its flags:
//! only its frames are others afterwards, and with them its lists.

use crate::engine::Engine;
use crate::folio::table::State;
use crate::ids::{FolioId, NodeId, PageId};
use crate::lru::batch::Batch;
use crate::node::node::Mark;
use crate::node::nodes::ZoneId;
use crate::reclaim::scan::{ScanControl, ShrinkStat};
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};

/// Why a folio moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// Reclaim took it; what is counted if it goes well.
    Demotion(Counter),
    /// A hint fault found it hot.
    Promotion,
}

/// A folio on its way.
#[derive(Clone, Debug)]
pub(crate) struct Migration {
    /// Frames that are taken for it.
    to: ZoneId,
    reason: Reason,
    /// Its pages that were mapped, and whether they were young.
    mapped: Vec<(PageId, bool)>,
}

impl Engine {
    /// Moves an isolated folio, which is neither locked nor under writeback, to frames that were taken for it. `Failed`: it is as before,
    /// still isolated, and the frames are given back.
    pub(crate) fn migrate<W: World>(&mut self, w: &mut W, f: FolioId, to: ZoneId, reason: Reason) -> Ack {
        let st = self.pages.folios.st(f);
        debug_assert!(!st.has(State::LRU | State::LOCKED | State::WRITEBACK | State::ADDING));
        let mapped = self.unmap_migrating(w, f);
        self.pages.folios.set(f, State::LOCKED | State::MIGRATING);
        self.pages.work.migrated += st.nr_pages();
        let (page, order, from) = (self.pages.folios.page(f), st.order(), self.pages.folios.nid(f));
        let migration = Migration { to, reason, mapped };
        let ack = w.effect(Effect::Migrate { page, order, from, to: to.nid() });
        match ack {
            Ack::Pending => _ = self.frames.migrating.insert(f, migration),
            Ack::Done | Ack::Failed => self.settle_migration(w, f, migration, ack == Ack::Done),
        }
        if ack == Ack::Done {
            self.add_migrated(f, reason);
        }
        ack
    }

    /// A migration that was pending ended; any page of the folio stands for it.
    pub fn migrate_done<W: World>(&mut self, w: &mut W, page: PageId, ok: bool) {
        let Some(f) = self.folio_of(page) else { return };
        let Some(migration) = self.frames.migrating.remove(&f) else { return };
        let reason = migration.reason;
        self.settle_migration(w, f, migration, ok);
        self.add_migrated(f, reason);
        self.finish_dropping_pages(w, f);
    }

    /// Nobody may use it while it is copied. What the page tables know of it is kept: a page that was not young will not be.
    fn unmap_migrating<W: World>(&mut self, w: &mut W, f: FolioId) -> Vec<(PageId, bool)> {
        let mut mapped = Vec::new();
        let mut dirty = false;
        if self.pages.folios.st(f).has(State::MAPPED) {
            for page in self.pages.space.mapped_in(self.pages_of(f)) {
                mapped.push((page, w.test_and_clear_young(page)));
                w.effect(Effect::Unmap { page });
                dirty |= w.test_and_clear_dirty(page);
                self.pages.space.set_mapped(page, self.pages.folios.node_of(page), false);
            }
            self.pages.folios.clear(f, State::MAPPED);
        }
        if dirty {
            if self.pages.folios.st(f).has(State::ANON) {
                // Written after it was advised free.
                self.pages.folios.set(f, State::SWAPBACKED);
            }
            self.set_dirty(w, f);
        }
        mapped
    }

    /// The copy is made, or will not be: the frames of one side are free, and the pages are mapped again.
    fn settle_migration<W: World>(&mut self, w: &mut W, f: FolioId, migration: Migration, ok: bool) {
        let Migration { to, reason, mapped } = migration;
        self.pages.folios.clear(f, State::LOCKED | State::MIGRATING);
        let nr = self.pages.folios.st(f).nr_pages();
        let from = self.pages.folios.zone_of(f);
        if ok {
            self.count_migrated(f, to.nid(), reason);
            self.frames.nodes.give_back(from, nr);
            if reason == Reason::Demotion(Counter::PgdemoteKswapd) {
                self.frames.nodes.get_mut(from.nid()).kswapd.failures = 0;
            }
            self.pages.folios.note_frames(self.pages.folios.page(f), nr, to);
        } else {
            self.frames.nodes.give_back(to, nr);
            self.count_machine(Counter::PgmigrateFail, nr);
        }
        let writable = self.pages.folios.st(f).has(State::ANON);
        for (page, young) in mapped {
            // It may have been dropped meanwhile.
            if !self.pages.dropping.contains(&page) {
                self.map_page(w, f, page, young, writable);
            }
        }
    }

    fn count_migrated(&mut self, f: FolioId, to: NodeId, reason: Reason) {
        let nr = self.pages.folios.st(f).nr_pages();
        self.count_machine(Counter::PgmigrateSuccess, nr);
        match reason {
            Reason::Demotion(counter) => self.count(f, counter, nr),
            Reason::Promotion => self.count_promoted(f, to),
        }
    }

    /// A folio that has moved, or that could not after all, goes to the list that its flags ask for, by way of a batch as new ones do.
    pub(crate) fn add_migrated(&mut self, f: FolioId, reason: Reason) {
        let st = self.state_of_new(self.pages.folios.st(f), reason == Reason::Promotion);
        self.pages.folios.put(f, st);
        self.batch_push(Batch::Add, f, st);
    }

    /// 9.2: whether reclaim on a node can move pages to a slower one.
    #[inline(always)]
    pub(crate) fn can_demote(&self, nid: NodeId) -> bool {
        self.frames.nodes.are_several() && self.frames.nodes.demotes(nid)
    }

    /// Moves folios that reclaim isolated to a slower node; they count as reclaimed. What cannot go stays in the list.
    pub(crate) fn demote_folios<W: World>(
        &mut self,
        w: &mut W,
        list: &mut Vec<FolioId>,
        sc: &ScanControl,
        stat: &mut ShrinkStat,
    ) {
        let Some(target) = self.frames.nodes.demotion_target(sc.nid) else { return };
        let counter = match (sc.kswapd, sc.proactive) {
            (true, _) => Counter::PgdemoteKswapd,
            (false, true) => Counter::PgdemoteProactive,
            (false, false) => Counter::PgdemoteDirect,
        };
        let mut kept = 0;
        for i in 0..list.len() {
            let f = list[i];
            let nr = self.pages.folios.st(f).nr_pages();
            let zone = self.demotion_frames(w, sc.nid, target, nr);
            let ack = zone.map_or(Ack::Failed, |zone| self.migrate(w, f, zone, Reason::Demotion(counter)));
            if ack == Ack::Failed {
                list[kept] = f;
                kept += 1;
                continue;
            }
            stat.reclaimed += nr;
            if ack == Ack::Pending && sc.kswapd {
                self.frames.nodes.get_mut(sc.nid).kswapd.on_their_way += nr;
            }
        }
        list.truncate(kept);
    }

    /// Frames on the target, else on any slower node, the nearest to the target first. Nobody reclaims for them here, or waits, but kswapd
    /// is woken where there are none.
    fn demotion_frames<W: World>(&mut self, w: &mut W, from: NodeId, target: NodeId, nr: u64) -> Option<ZoneId> {
        let zone = self.frames_without_reclaim(w, target, nr);
        if zone.is_some() {
            return zone;
        }
        let others: Vec<NodeId> = self.frames.nodes.demotion_fallbacks(from, target).collect();
        others.into_iter().find_map(|nid| self.frames_without_reclaim(w, nid, nr))
    }

    fn frames_without_reclaim<W: World>(&mut self, w: &mut W, nid: NodeId, nr: u64) -> Option<ZoneId> {
        let zone = self.frames.nodes.take_on(nid, nr, Mark::Low);
        if zone.is_some() {
            return zone;
        }
        self.wake_kswapd(w, nid);
        self.frames.nodes.take_on(nid, nr, Mark::Min)
    }

    /// Frames that are taken for folios on their way there, by node: they belong to no folio yet.
    pub(crate) fn frames_under_way(&self) -> impl Iterator<Item = (NodeId, u64)> + '_ {
        self.frames.migrating.iter().map(|(&f, m)| (m.to.nid(), self.pages.folios.st(f).nr_pages()))
    }
}
