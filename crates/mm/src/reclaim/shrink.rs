//! What becomes of an isolated folio (2.3, 2.4): freed, kept, activated, or sent to be written.

use crate::engine::Engine;
use crate::folio::slot::Slot;
use crate::folio::table::State;
use crate::folio::thp::SizeCounter;
use crate::ids::{FolioId, MemcgId, PageId};
use crate::reclaim::scan::{ScanControl, ShrinkStat};
use crate::stat::Counter;
use crate::swap_cache::front::Front;
use crate::world::{Ack, Effect, World};

/// What the reference check says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum References {
    Reclaim,
    ReclaimIfClean,
    Keep,
    Activate,
}

/// What happened to a folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Freed,
    Keep,
    Activate,
}

/// Anything that needs more than dropping a clean, unmapped file folio.
pub(crate) const SLOW: u32 = State::LOCKED
    | State::UNEVICTABLE
    | State::MAPPED
    | State::DIRTY
    | State::WRITEBACK
    | State::ANON
    | State::SWAPBACKED;

impl Engine {
    /// Frees what can be freed of `list`; what stays is left in it, oldest first. On a node with a slower one below, what could be freed
    /// moves there instead.
    pub(crate) fn shrink_folio_list<W: World>(
        &mut self,
        w: &mut W,
        list: &mut Vec<FolioId>,
        sc: &ScanControl,
    ) -> ShrinkStat {
        if sc.no_demotion || !self.can_demote(sc.nid) {
            return self.shrink_pass(w, list, sc, None);
        }
        let mut demoted = self.take_scratch();
        let mut stat = self.shrink_pass(w, list, sc, Some(&mut demoted));
        self.demote_folios(w, &mut demoted, sc, &mut stat);
        if !demoted.is_empty() && !sc.proactive {
            // There is no room below. What nobody is short of is not lost for that.
            stat.merge(&self.shrink_pass(w, &mut demoted, sc, None));
        }
        list.append(&mut demoted);
        self.return_scratch(demoted);
        stat
    }

    /// `demote`: what could be freed is collected there.
    fn shrink_pass<W: World>(
        &mut self,
        w: &mut W,
        list: &mut Vec<FolioId>,
        sc: &ScanControl,
        mut demote: Option<&mut Vec<FolioId>>,
    ) -> ShrinkStat {
        let taken = list.len();
        let is_easy = |f: &FolioId| {
            !self.pages.folios.st(*f).has(SLOW | State::LARGE) && !w.is_pinned(self.pages.folios.page(*f))
        };
        if demote.is_none() && list.iter().all(is_easy) {
            let stat = self.drop_alike(w, list, sc);
            list.clear();
            return stat;
        }
        let mut stat = ShrinkStat::default();
        let mut kept = 0;
        let mut easy = self.start_dropping(list.first().copied(), sc);
        let mut i = 0;
        while i < list.len() {
            let f = list[i];
            i += 1;
            let st = self.pages.folios.st(f);
            if demote.is_none() && !st.has(SLOW) && !w.is_pinned(self.pages.folios.page(f)) {
                self.drop_clean(w, f, st, &mut easy);
                continue;
            }
            // The rest looks at the clock and the counters that dropping advances.
            self.finish_dropping(&mut easy, &mut stat);
            // The parts of a folio that is split come next in the list.
            let verdict = match &mut demote {
                Some(demote) => self.choose_to_demote(w, f, sc, &mut stat, demote),
                None if st.has(SLOW) => self.shrink_folio(w, list, i - 1, sc, &mut stat),
                None => Verdict::Keep,
            };
            match verdict {
                Verdict::Freed => {}
                Verdict::Keep | Verdict::Activate => {
                    if verdict == Verdict::Activate {
                        self.activate_rejected(w, f, &mut stat);
                    }
                    list[kept] = f;
                    kept += 1;
                }
            }
        }
        self.finish_dropping(&mut easy, &mut stat);
        list.truncate(kept);
        if taken > 0 && stat.unqueued_dirty >= taken as u64 {
            self.wake_flusher(w);
        }
        stat
    }

    fn activate_rejected<W: World>(&mut self, w: &mut W, f: FolioId, stat: &mut ShrinkStat) {
        let st = self.pages.folios.st(f);
        if st.has(State::SWAPCACHE) && !st.has(State::WRITEBACK) && self.is_swap_full(f) {
            self.release_swap_cache(w, f);
        }
        if !st.has(State::UNEVICTABLE) {
            self.pages.folios.set(f, State::ACTIVE);
            self.count(f, Counter::Pgactivate, st.nr_pages());
            stat.activated += st.nr_pages();
        }
    }

    /// Steps 1 to 5 of 2.4: whether a folio can go, and what its references say about that. The error: it stays.
    #[inline(always)]
    fn examine<W: World>(
        &mut self,
        w: &mut W,
        f: FolioId,
        sc: &ScanControl,
        stat: &mut ShrinkStat,
    ) -> Result<References, Verdict> {
        let st = self.pages.folios.st(f);
        if st.has(State::LOCKED | State::UNEVICTABLE) || (st.has(State::MAPPED) && !sc.may_unmap) {
            return Err(Verdict::Keep);
        }
        if self.is_multi_gen() && st.has(State::MAPPED) && st.has(State::REFERENCED) && !sc.ignore_references {
            // Promoted while it was isolated.
            return Err(Verdict::Keep);
        }
        account_dirty(st, stat);
        if st.has(State::WRITEBACK) {
            return Err(self.meet_writeback(f, sc, stat));
        }
        let references = if sc.ignore_references { References::Reclaim } else { self.check_references(w, f) };
        match references {
            References::Activate => return Err(Verdict::Activate),
            References::Keep => return Err(Verdict::Keep),
            References::Reclaim | References::ReclaimIfClean => {}
        }
        match self.pages_of(f).any(|p| w.is_pinned(PageId(p))) {
            true => Err(Verdict::Keep),
            false => Ok(references),
        }
    }

    /// Step 6 of 2.4: what can go is collected, to be moved to a slower node.
    #[inline(never)]
    fn choose_to_demote<W: World>(
        &mut self,
        w: &mut W,
        f: FolioId,
        sc: &ScanControl,
        stat: &mut ShrinkStat,
        chosen: &mut Vec<FolioId>,
    ) -> Verdict {
        match self.examine(w, f, sc, stat) {
            Err(stays) => stays,
            Ok(_) => {
                chosen.push(f);
                Verdict::Freed
            }
        }
    }

    /// The folio at a place of the list.
    fn shrink_folio<W: World>(
        &mut self,
        w: &mut W,
        list: &mut Vec<FolioId>,
        at: usize,
        sc: &ScanControl,
        stat: &mut ShrinkStat,
    ) -> Verdict {
        let f = list[at];
        let references = match self.examine(w, f, sc, stat) {
            Ok(references) => references,
            Err(stays) => return stays,
        };
        let st = self.pages.folios.st(f);
        let needs_slot = st.has(State::ANON) && st.has(State::SWAPBACKED) && !st.has(State::SWAPCACHE);
        if needs_slot && !self.add_to_swap(w, f) && !(st.has(State::LARGE) && self.split_for_swap(w, list, at)) {
            return Verdict::Activate;
        }
        if self.pages.folios.st(f).has(State::MAPPED) && !self.unmap_folio(w, f) {
            return Verdict::Activate;
        }
        if self.pages.folios.st(f).has(State::DIRTY) {
            let verdict = self.meet_dirty(w, f, references, sc, stat);
            if verdict != Verdict::Freed {
                return verdict;
            }
        }
        stat.reclaimed += self.pages.folios.st(f).nr_pages();
        match self.pages.folios.st(f).has(State::ANON) {
            true => self.free_anon(w, f, sc.target),
            false => self.free_file(w, f, sc.target),
        }
    }

    /// Step 7 of 2.4: swap has no range for a large folio. It is split, its first page tries again, the others follow in the list.
    fn split_for_swap<W: World>(&mut self, w: &mut W, list: &mut Vec<FolioId>, at: usize) -> bool {
        let f = list[at];
        let order = self.pages.folios.st(f).order();
        let parts = self.pages_of(f).skip(1).map(FolioId);
        self.split_folio(f);
        list.splice(at + 1..at + 1, parts);
        let memcg = self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg;
        self.count_size(memcg, order, SizeCounter::SwpoutFallback);
        self.add_to_swap(w, f)
    }

    /// Step 4 of 2.4: kswapd counts what comes round again before it is written; all others mark and go on.
    fn meet_writeback(&mut self, f: FolioId, sc: &ScanControl, stat: &mut ShrinkStat) -> Verdict {
        let st = self.pages.folios.st(f);
        if sc.kswapd && st.has(State::RECLAIM) && self.frames.nodes.get(sc.nid).writeback {
            stat.immediate += st.nr_pages();
        } else {
            self.pages.folios.set(f, State::RECLAIM);
            stat.writeback += st.nr_pages();
        }
        Verdict::Activate
    }

    /// Step 9 of 2.4. `Freed` means: clean now, go on and free it.
    fn meet_dirty<W: World>(
        &mut self,
        w: &mut W,
        f: FolioId,
        references: References,
        sc: &ScanControl,
        stat: &mut ShrinkStat,
    ) -> Verdict {
        let st = self.pages.folios.st(f);
        let file = st.type_index() == crate::lru::lruvec::FILE;
        if file && !(sc.kswapd && st.has(State::RECLAIM) && self.frames.nodes.get(sc.nid).dirty) {
            self.count(f, Counter::NrVmscanImmediateReclaim, st.nr_pages());
            self.pages.folios.set(f, State::RECLAIM);
            return Verdict::Activate;
        }
        if references == References::ReclaimIfClean || !sc.may_writepage {
            return Verdict::Keep;
        }
        match if st.has(State::SWAPCACHE) { self.store_in_front(w, f) } else { Front::Device } {
            Front::Taken => self.clear_dirty(f),
            Front::Refused => return Verdict::Activate,
            Front::Device => {
                self.pages.folios.set(f, State::RECLAIM);
                self.start_write(w, f, false);
            }
        }
        self.count(f, Counter::NrVmscanWrite, st.nr_pages());
        stat.pageout += st.nr_pages();
        // A device that answers at once: go ahead.
        match self.pages.folios.st(f).has(State::WRITEBACK | State::DIRTY) {
            true => Verdict::Keep,
            false => Verdict::Freed,
        }
    }

    /// The use-once rule (2.3).
    fn check_references<W: World>(&mut self, w: &mut W, f: FolioId) -> References {
        let young = self.folio_referenced(w, f);
        let st = self.pages.folios.st(f);
        let referenced = st.has(State::REFERENCED);
        self.pages.folios.clear(f, State::REFERENCED);
        if young > 0 {
            // Every mapped page starts young from its own fault: one reference proves nothing.
            self.pages.folios.set(f, State::REFERENCED);
            let exec = st.has(State::EXEC) && st.type_index() == crate::lru::lruvec::FILE;
            return if referenced || young > 1 || exec { References::Activate } else { References::Keep };
        }
        if referenced && st.type_index() == crate::lru::lruvec::FILE {
            References::ReclaimIfClean
        } else {
            References::Reclaim
        }
    }

    /// How many mappings of the folio had the accessed bit set; clears them. Multi-gen LRU looks around, too.
    pub(crate) fn folio_referenced<W: World>(&mut self, w: &mut W, f: FolioId) -> u32 {
        let st = self.pages.folios.st(f);
        if !st.has(State::MAPPED) {
            return 0;
        }
        if !st.has(State::LARGE) {
            return self.page_referenced(w, self.pages.folios.page(f));
        }
        // Several young pages in one mapping are one reference.
        let mapped = self.pages.space.mapped_in(self.pages_of(f));
        mapped.fold(0, |young, page| young.max(self.page_referenced(w, page)))
    }

    fn page_referenced<W: World>(&mut self, w: &mut W, page: PageId) -> u32 {
        let young = w.test_and_clear_young_count(page);
        if young > 0 && self.is_multi_gen() {
            self.look_around(w, page);
        }
        young
    }

    /// Makes the folio inaccessible; takes over the dirty bit. False: a lazily freed folio was written again.
    fn unmap_folio<W: World>(&mut self, w: &mut W, f: FolioId) -> bool {
        let st = self.pages.folios.st(f);
        // A page of a large folio may have been unmapped before.
        let mapped = st.has(State::LARGE).then(|| self.pages.space.mapped_in(self.pages_of(f)));
        let dirty = match mapped {
            None => self.unmap_page(w, f, self.pages.folios.page(f), st),
            Some(mapped) => mapped.fold(false, |dirty, page| self.unmap_page(w, f, page, st) | dirty),
        };
        self.pages.folios.clear(f, State::MAPPED);
        if dirty && st.has(State::ANON) && !st.has(State::SWAPBACKED) {
            self.pages.folios.set(f, State::SWAPBACKED);
            self.map_folio(w, f, false);
            return false;
        }
        if dirty {
            self.set_dirty(w, f);
        }
        true
    }

    /// Makes a page of a folio inaccessible. True: it was dirty.
    fn unmap_page<W: World>(&mut self, w: &mut W, f: FolioId, page: PageId, st: State) -> bool {
        w.effect(Effect::Unmap { page });
        let dirty = w.test_and_clear_dirty(page);
        self.pages.space.set_mapped(page, self.pages.folios.node_of(page), false);
        if st.has(State::SWAPCACHE) {
            let slot = self.pages.folios.swap(f).nth(page.0 - f.0);
            self.swap.slots.get(slot);
            self.pages.folios.store(page, Slot::value(u64::from(slot.0)));
        }
        dirty
    }

    /// Drops a clean file folio, leaving its shadow.
    #[inline]
    fn free_file<W: World>(&mut self, w: &mut W, f: FolioId, target: MemcgId) -> Verdict {
        let shadow = self.workingset_eviction(f, target);
        let (page, st) = (self.pages.folios.page(f), self.pages.folios.st(f));
        for p in page.0..page.0 + st.nr_pages() as u32 {
            self.replace_slot(PageId(p), shadow);
        }
        self.free_folio(w, f, st);
        Verdict::Freed
    }

    /// Drops an anonymous folio whose data is in swap, or that was lazily freed.
    fn free_anon<W: World>(&mut self, w: &mut W, f: FolioId, target: MemcgId) -> Verdict {
        let st = self.pages.folios.st(f);
        if !st.has(State::SWAPCACHE) {
            let first = self.pages.folios.page(f).0;
            for p in first..first + st.nr_pages() as u32 {
                self.pages.folios.store(PageId(p), Slot::EMPTY);
            }
            self.count(f, Counter::Pglazyfreed, st.nr_pages());
        } else {
            let slot = self.pages.folios.swap(f);
            let shadow = self.workingset_eviction(f, target);
            self.swap.slots.drop_cache(slot, st.order(), shadow.as_value());
            self.note_swap_cache(f, -1);
            self.settle_swap(w);
        }
        self.free_folio(w, f, st);
        Verdict::Freed
    }

    /// Uncharges a folio, which was in state `st`, and gives back its entry and frames.
    #[inline]
    pub(crate) fn free_folio<W: World>(&mut self, w: &mut W, f: FolioId, st: State) {
        let memcg = self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg;
        self.groups.memcgs.uncharge(memcg, st.nr_pages());
        self.frames.nodes.give_back(self.pages.folios.zone_of(f), st.nr_pages());
        self.groups.memcgs.get_mut(memcg).stat.add(Counter::Pgfree, st.nr_pages());
        w.effect(Effect::Free { page: self.pages.folios.page(f), order: st.order() });
        self.pages.folios.release(f);
    }

    /// Starts to write a dirty folio: to its file, or to its swap slot. `rotate`: it is on a list.
    pub(crate) fn start_write<W: World>(&mut self, w: &mut W, f: FolioId, rotate: bool) {
        let st = self.pages.folios.st(f);
        let (page, order) = (self.pages.folios.page(f), st.order());
        self.clear_dirty(f);
        self.pages.folios.set(f, State::WRITEBACK);
        self.count_writeback(f, st.nr_pages() as i64);
        let ack = if st.has(State::SWAPCACHE) {
            self.count(f, Counter::Pswpout, st.nr_pages());
            if st.has(State::LARGE) {
                self.count_size(
                    self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg,
                    order,
                    SizeCounter::Swpout,
                );
            }
            w.effect(Effect::SwapOut { page, order, slot: self.pages.folios.swap(f) })
        } else {
            if st.has(State::MAPPED) {
                (page.0..page.0 + st.nr_pages() as u32)
                    .for_each(|p| _ = w.effect(Effect::WriteProtect { page: PageId(p) }));
            }
            w.effect(Effect::Write { page, order })
        };
        if ack != Ack::Pending {
            self.end_write(w, f, ack == Ack::Done, rotate);
        }
    }

    /// A write ended. A folio that reclaim waits for goes to the tail, unless reclaim holds it itself.
    pub(crate) fn end_write<W: World>(&mut self, w: &mut W, f: FolioId, ok: bool, rotate: bool) {
        let st = self.pages.folios.st(f);
        let (nr, reclaim) = (st.nr_pages(), st.has(State::RECLAIM));
        self.pages.folios.clear(f, State::WRITEBACK | State::RECLAIM);
        self.count_writeback(f, -(nr as i64));
        if !st.has(State::ANON) {
            self.note_cleaned(w, self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg);
        }
        if !ok {
            self.count(f, Counter::WriteErrors, nr);
            self.writeback.writes_failed += nr;
            self.set_dirty_again(f);
            return;
        }
        self.count(f, Counter::NrWritten, nr);
        self.writeback.writes_failed = 0;
        if reclaim {
            self.note_reclaim_written(w, nr);
        }
        if reclaim && rotate && !self.pages.folios.st(f).has(State::DIRTY) {
            self.batch_add(crate::lru::batch::Batch::MoveTail, f);
        }
    }
}

/// Step 3 of 2.4: file folios only.
fn account_dirty(st: State, stat: &mut ShrinkStat) {
    if st.has(State::ANON) {
        return;
    }
    let (dirty, writeback) = (st.has(State::DIRTY), st.has(State::WRITEBACK));
    stat.dirty += st.nr_pages() * u64::from(dirty || writeback);
    stat.unqueued_dirty += st.nr_pages() * u64::from(dirty && !writeback);
    stat.congested += st.nr_pages() * u64::from(writeback && st.has(State::RECLAIM));
}
