//! Decides the fate of an isolated folio: freed, kept, activated, or sent to be written.
//!
//! Mechanism: `docs/mechanisms.md#the-reference-check`,
//! `docs/mechanisms.md#verdicts-on-an-isolated-folio`.

use crate::config::lru::{Generations, Lru};
use crate::config::swap::SwapSplit;
use crate::folio::flags::FolioFlags;
use crate::folio::size_stats::SizeCounter;
use crate::ids::{FolioId, PageId};
use crate::lru::lru_list::FILE;
use crate::lru::tier::note_reference;
use crate::node::throttle::WRITEBACK_WAIT_NS;
use crate::page_io::store::SwapWriteout;
use crate::reclaim::Reclaim;
use crate::reclaim::policy::ReclaimPolicy;
use crate::reclaim::swap_out::ShrinkBatch;
use crate::scan::ShrinkStat;
use crate::stat::Counter;
use crate::world::{ThrottleReason, World};

/// Verdict of the reference check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum References {
    Reclaim,
    ReclaimIfClean,
    Keep,
    Activate,
}

/// Fate of a folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Freed,
    Keep,
    Activate,
}

/// Anything that needs more than dropping a clean, unmapped file folio.
pub(crate) const SLOW: u32 = FolioFlags::LOCKED
    | FolioFlags::UNEVICTABLE
    | FolioFlags::MAPPED
    | FolioFlags::DIRTY
    | FolioFlags::WRITEBACK
    | FolioFlags::ANON
    | FolioFlags::SWAPBACKED;

/// file folios only.
fn account_dirty(st: FolioFlags, stat: &mut ShrinkStat) {
    if st.has(FolioFlags::ANON) {
        return;
    }
    let (dirty, writeback) = (st.has(FolioFlags::DIRTY), st.has(FolioFlags::WRITEBACK));
    stat.dirty += st.nr_pages() * u64::from(dirty || writeback);
    stat.unqueued_dirty += st.nr_pages() * u64::from(dirty && !writeback);
    stat.congested += st.nr_pages() * u64::from(writeback && st.has(FolioFlags::RECLAIM));
}

impl<W: World> Reclaim<'_, W> {
    /// Frees what can be freed of `list`; what stays is left in it, oldest first. On a node with a
    /// slower one below, what could be freed moves there instead.
    pub(crate) fn shrink_folio_list(&mut self, list: &mut Vec<FolioId>) -> ShrinkStat {
        if self.sc.no_demotion || !self.mem.frames.can_demote(self.sc.nid) {
            return self.shrink_pass(list, None);
        }
        let mut demoted = self.mem.pages.take_scratch();
        let mut stat = self.shrink_pass(list, Some(&mut demoted));
        self.demote_folios(&mut demoted, &mut stat);
        if !demoted.is_empty() && !self.sc.proactive {
            // There is no room below. Proactive reclaim leaves it at that: nobody is short of
            // memory.
            stat.merge(&self.shrink_pass(&mut demoted, None));
        }
        list.append(&mut demoted);
        self.mem.pages.return_scratch(demoted);
        stat
    }

    /// One pass over `list`. `demote`: collects folios to be demoted instead of freed.
    fn shrink_pass(&mut self, list: &mut Vec<FolioId>, mut demote: Option<&mut Vec<FolioId>>) -> ShrinkStat {
        let taken = list.len();
        let is_easy = |f: &FolioId| {
            !self.mem.pages.folios.st(*f).has(SLOW | FolioFlags::LARGE)
                && !self.world.is_pinned(self.mem.pages.folios.page(*f))
        };
        if demote.is_none() && list.iter().all(is_easy) {
            let target = self.sc.target;
            let stat = self.mem.memcontrol().evict_bulk(self.world, list, target);
            list.clear();
            return stat;
        }
        let mut stat = ShrinkStat::default();
        let mut batch = self.start_batch(list.first().copied());
        let (mut i, mut kept) = (0, 0);
        while i < list.len() {
            let f = list[i];
            i += 1;
            let plain = if demote.is_none() { self.shrink_plain(f, &mut batch, &mut stat) } else { None };
            let verdict = plain.unwrap_or_else(|| {
                // The rest looks at the clock and the counters that dropping advances.
                self.finish_batch(&mut batch, &mut stat);
                // The parts of a folio that is split come next in the list.
                let verdict = match &mut demote {
                    Some(demote) => self.choose_to_demote(f, &mut stat, demote),
                    None if batch.takes(self.mem.pages.folios.st(f)) => Verdict::Keep,
                    None => self.shrink_folio(list, i - 1, &mut stat),
                };
                self.resume_batch(&mut batch);
                verdict
            });
            if verdict == Verdict::Freed {
                continue;
            }
            if verdict == Verdict::Activate {
                self.activate_rejected(f, &mut stat);
            }
            list[kept] = f;
            kept += 1;
        }
        self.finish_batch(&mut batch, &mut stat);
        list.truncate(kept);
        if taken > 0 && stat.unqueued_dirty >= taken as u64 {
            self.mem.writeout(self.world).wake_flusher();
            self.wait_for_flusher();
        }
        stat
    }

    /// Whether reclaim for a group has to wait for writes: no dirty limit of its own holds back who
    /// makes pages dirty.
    fn is_brake_of_writers(&self) -> bool {
        !self.mem.cfg.dirty.cgroup_writeback && self.sc.is_cgroup_reclaim() && !self.sc.proactive
    }

    /// A batch had nothing but dirty folios, and the flusher is on its way: the run ends, and the
    /// task waits until some are written.
    fn wait_for_flusher(&mut self) {
        let waits = self.mem.cfg.dirty.waits_for_flusher && self.is_brake_of_writers();
        if waits && self.mem.writeback.flush_all {
            self.mem.frames.throttle(self.world, ThrottleReason::Writeback, WRITEBACK_WAIT_NS);
            self.sc.blocked = true;
        }
    }

    /// Shrinks a plain folio as one of its batch. None: the folio is not plain.
    #[inline(always)]
    fn shrink_plain(&mut self, f: FolioId, batch: &mut ShrinkBatch, stat: &mut ShrinkStat) -> Option<Verdict> {
        let st = self.mem.pages.folios.st(f);
        if batch.evict.t == FILE && st.0 & (SLOW | FolioFlags::LARGE) == FolioFlags::MAPPED {
            let plain = self.mem.pages.ext.is_none();
            return plain.then(|| self.shrink_mapped(f, st, batch, stat));
        }
        if batch.swaps_out(st) {
            return Some(self.swap_out(f, st, batch, stat));
        }
        let plain = batch.takes(st) && !self.world.is_pinned(self.mem.pages.folios.page(f));
        plain.then(|| {
            self.mem.memcontrol().evict_clean(self.world, f, st, &mut batch.evict);
            Verdict::Freed
        })
    }

    fn activate_rejected(&mut self, f: FolioId, stat: &mut ShrinkStat) {
        let st = self.mem.pages.folios.st(f);
        if st.has(FolioFlags::SWAPCACHE)
            && !st.has(FolioFlags::WRITEBACK)
            && self.mem.swap.is_swap_full(&self.mem.pages, &self.mem.groups, f)
        {
            self.mem.swap_cache(self.world).release_swap_cache(f);
        }
        if !st.has(FolioFlags::UNEVICTABLE) {
            self.mem.pages.folios.set(f, FolioFlags::ACTIVE);
            self.mem.pages.count(f, Counter::Pgactivate, st.nr_pages());
            stat.activated += st.nr_pages();
        }
    }

    /// whether a folio can go, and what its references say about that. The error: it stays.
    #[inline(always)]
    fn check_folio(&mut self, f: FolioId, stat: &mut ShrinkStat) -> Result<References, Verdict> {
        let st = self.mem.pages.folios.st(f);
        if st.has(FolioFlags::LOCKED | FolioFlags::UNEVICTABLE) || (st.has(FolioFlags::MAPPED) && !self.sc.may_unmap) {
            return Err(Verdict::Keep);
        }
        if !self.sc.ignore_references && by_policy!(self.mem.cfg.lru.kind, P => P::was_promoted(st, &self.mem.cfg.lru))
        {
            // Promoted while it was isolated.
            return Err(Verdict::Keep);
        }
        account_dirty(st, stat);
        if st.has(FolioFlags::WRITEBACK) {
            return Err(self.on_writeback(f, stat));
        }
        let references = if self.sc.ignore_references { References::Reclaim } else { self.check_references(f) };
        match references {
            References::Activate => return Err(Verdict::Activate),
            References::Keep => return Err(Verdict::Keep),
            References::Reclaim | References::ReclaimIfClean => {}
        }
        match self.mem.pages.pages_of(f).any(|p| self.world.is_pinned(PageId(p))) {
            true => Err(Verdict::Keep),
            false => Ok(references),
        }
    }

    /// what can go is collected, to be moved to a slower node.
    #[inline(never)]
    fn choose_to_demote(&mut self, f: FolioId, stat: &mut ShrinkStat, chosen: &mut Vec<FolioId>) -> Verdict {
        match self.check_folio(f, stat) {
            Err(stays) => stays,
            Ok(_) => {
                chosen.push(f);
                Verdict::Freed
            }
        }
    }

    /// A clean, mapped file folio of one page, as most are that programs map. The steps beside
    /// dropping look at neither the clock nor the counters that this advances: it is one of the
    /// batch, unless it turns out dirty.
    #[inline]
    fn shrink_mapped(&mut self, f: FolioId, st: FolioFlags, batch: &mut ShrinkBatch, stat: &mut ShrinkStat) -> Verdict {
        if !self.sc.may_unmap {
            return Verdict::Keep;
        }
        let references = match self.check_page(f, st) {
            Ok(references) => references,
            Err(stays) => return stays,
        };
        let page = self.mem.pages.folios.page(f);
        let mut st = self.mem.pages.folios.st(f);
        let dirty = self.unmap_page(f, page, st);
        if dirty {
            self.mem.pages.folios.clear(f, FolioFlags::MAPPED | FolioFlags::EXEC);
            self.finish_batch(batch, stat);
            self.mem.writeout(self.world).set_dirty(f);
            let verdict = self.free_unmapped(f, references, stat);
            self.resume_batch(batch);
            return verdict;
        }
        st.clear(FolioFlags::MAPPED | FolioFlags::EXEC);
        self.mem.memcontrol().evict_clean(self.world, f, st, &mut batch.evict);
        Verdict::Freed
    }

    /// [`Reclaim::check_folio`] for one page that is neither locked nor under writeback, and may be
    /// unmapped.
    #[inline]
    pub(crate) fn check_page(&mut self, f: FolioId, st: FolioFlags) -> Result<References, Verdict> {
        let mut references = References::Reclaim;
        if !self.sc.ignore_references {
            if by_policy!(self.mem.cfg.lru.kind, P => P::was_promoted(st, &self.mem.cfg.lru)) {
                return Err(Verdict::Keep);
            }
            references = self.check_references(f);
            match references {
                References::Activate => return Err(Verdict::Activate),
                References::Keep => return Err(Verdict::Keep),
                References::Reclaim | References::ReclaimIfClean => {}
            }
        }
        match self.world.is_pinned(self.mem.pages.folios.page(f)) {
            true => Err(Verdict::Keep),
            false => Ok(references),
        }
    }

    /// The folio at a place of the list.
    fn shrink_folio(&mut self, list: &mut Vec<FolioId>, at: usize, stat: &mut ShrinkStat) -> Verdict {
        let f = list[at];
        let references = match self.check_folio(f, stat) {
            Ok(references) => references,
            Err(stays) => return stays,
        };
        let st = self.mem.pages.folios.st(f);
        let needs_slot = st.has(FolioFlags::ANON) && st.has(FolioFlags::SWAPBACKED) && !st.has(FolioFlags::SWAPCACHE);
        if needs_slot
            && !self.mem.swap_cache(self.world).add_to_swap(f)
            && !(st.has(FolioFlags::LARGE) && self.split_for_swap(list, at))
        {
            return Verdict::Activate;
        }
        if self.mem.pages.folios.st(f).has(FolioFlags::MAPPED) && !self.unmap_folio(f) {
            return Verdict::Activate;
        }
        self.free_unmapped(f, references, stat)
    }

    /// A folio that can go, and is not mapped any more.
    fn free_unmapped(&mut self, f: FolioId, references: References, stat: &mut ShrinkStat) -> Verdict {
        if self.mem.pages.folios.st(f).has(FolioFlags::DIRTY) {
            let verdict = self.on_dirty(f, references, stat);
            if verdict != Verdict::Freed {
                return verdict;
            }
        }
        stat.reclaimed += self.mem.pages.folios.st(f).nr_pages();
        let target = self.sc.target;
        match self.mem.pages.folios.st(f).has(FolioFlags::ANON) {
            true => self.mem.swap_cache(self.world).free_anon(f, target),
            false => self.free_file(f, target),
        }
        Verdict::Freed
    }

    /// swap has no range for a large folio. It is split, its first page tries again, the others
    /// follow in the list.
    fn split_for_swap(&mut self, list: &mut Vec<FolioId>, at: usize) -> bool {
        let f = list[at];
        let order = self.mem.pages.folios.st(f).order();
        let parts = self.mem.pages.pages_of(f).skip(1).map(FolioId);
        self.mem.split_folio(f);
        match self.mem.cfg.swap.policy.split {
            SwapSplit::Ascending => _ = list.splice(at + 1..at + 1, parts),
            SwapSplit::FirstThenBack => _ = list.splice(at + 1..at + 1, parts.rev()),
        }
        let memcg = self.mem.pages.lruvecs[self.mem.pages.folios.lruvec(f).index()].memcg;
        self.mem.pages.count_size(memcg, order, SizeCounter::SwpoutFallback);
        self.mem.swap_cache(self.world).add_to_swap(f)
    }

    /// Handles a folio under writeback. kswapd counts folios met again before their write has
    /// ended; all others mark the folio and go on.
    fn on_writeback(&mut self, f: FolioId, stat: &mut ShrinkStat) -> Verdict {
        let st = self.mem.pages.folios.st(f);
        if self.sc.kswapd && st.has(FolioFlags::RECLAIM) && self.mem.frames.nodes.get(self.sc.nid).writeback {
            stat.immediate += st.nr_pages();
        } else {
            // Two lists wait for a folio that they meet again. Generations take the mark off when
            // they isolate: Linux goes round in vain until a write ends, which takes a CPU and ends
            // nothing sooner; here they wait at the first.
            let again = match self.mem.cfg.lru.kind {
                Lru::MultiGen => self.mem.cfg.dirty.waits_for_flusher,
                Lru::TwoList => st.has(FolioFlags::RECLAIM),
            };
            self.sc.blocked |= again && self.is_brake_of_writers();
            self.mem.pages.folios.set(f, FolioFlags::RECLAIM);
            stat.writeback += st.nr_pages();
        }
        Verdict::Activate
    }

    /// A dirty folio. `Freed` means: clean now, go on and free it.
    fn on_dirty(&mut self, f: FolioId, references: References, stat: &mut ShrinkStat) -> Verdict {
        let st = self.mem.pages.folios.st(f);
        let file = st.type_index() == crate::lru::lru_list::FILE;
        if file && !(self.sc.kswapd && st.has(FolioFlags::RECLAIM) && self.mem.frames.nodes.get(self.sc.nid).dirty) {
            self.mem.pages.count(f, Counter::NrVmscanImmediateReclaim, st.nr_pages());
            self.mem.pages.folios.set(f, FolioFlags::RECLAIM);
            return Verdict::Activate;
        }
        if references == References::ReclaimIfClean || !self.sc.may_writepage {
            return Verdict::Keep;
        }
        if file && !self.mem.cfg.lru.kswapd_writes_files {
            // The file system has no `writepage`.
            return Verdict::Activate;
        }
        match if st.has(FolioFlags::SWAPCACHE) { self.page_io().swap_writeout(f) } else { SwapWriteout::Device } {
            SwapWriteout::Taken => self.mem.writeout(self.world).clear_dirty(f),
            SwapWriteout::Refused => return Verdict::Activate,
            SwapWriteout::Device => {
                self.mem.pages.folios.set(f, FolioFlags::RECLAIM);
                self.mem.writeout(self.world).start_write(f, false);
            }
        }
        self.mem.pages.count(f, Counter::NrVmscanWrite, st.nr_pages());
        stat.pageout += st.nr_pages();
        // A device that answers at once: go ahead.
        match self.mem.pages.folios.st(f).has(FolioFlags::WRITEBACK | FolioFlags::DIRTY) {
            true => Verdict::Keep,
            false => Verdict::Freed,
        }
    }

    /// The use-once rule (the reference check).
    #[inline]
    fn check_references(&mut self, f: FolioId) -> References {
        let young = self.mem.pages.folio_referenced(self.world, f);
        let st = self.mem.pages.folios.st(f);
        let lru = &self.mem.cfg.lru;
        if lru.kind == Lru::MultiGen && lru.generations == Generations::Independent {
            return self.references_by_use(f, young);
        }
        let referenced = st.has(FolioFlags::REFERENCED);
        self.mem.pages.folios.clear(f, FolioFlags::REFERENCED);
        if young > 0 {
            // Every mapped page starts young from its own fault: one reference proves nothing.
            self.mem.pages.folios.set(f, FolioFlags::REFERENCED);
            let exec = st.has(FolioFlags::EXEC) && st.type_index() == crate::lru::lru_list::FILE;
            return if referenced || young > 1 || exec { References::Activate } else { References::Keep };
        }
        if referenced && st.type_index() == crate::lru::lru_list::FILE {
            References::ReclaimIfClean
        } else {
            References::Reclaim
        }
    }

    /// The check under multi-gen LRU since 6.14: only accessed bits count, from the second time on.
    fn references_by_use(&mut self, f: FolioId, young: u32) -> References {
        if young == 0 {
            return References::Reclaim;
        }
        let mut st = self.mem.pages.folios.st(f);
        let again = note_reference(&mut st, self.mem.cfg.lru.faulted_pages);
        self.mem.pages.folios.put(f, st);
        if again { References::Activate } else { References::Keep }
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

    /// A mapped page among pages that were read by descriptor is freed by itself, and advances the
    /// clock for those behind it as any other does.
    #[test]
    fn pages_freed_by_batch_and_by_themselves_are_stamped_in_turn() {
        let mut cfg = Config::new(Policy::Lru);
        (cfg.lru.batch_folios, cfg.total_pages, cfg.fault_around.pages) = (0, 1 << 16, 1);
        let mut e = Engine::new(cfg).unwrap();
        let group = e.add_memcg(MemcgId::ROOT, "/g", 100, 0).unwrap();
        let (_, first) = e.add_mapping(MappingKind::File, group, 0..6).unwrap();
        let mut w = AtOnce::default();
        for i in 0..6 {
            let touch = if i % 2 == 0 { Touch::Read } else { Touch::MapRead };
            e.access(&mut w, PageId(first.0 + i), touch);
        }
        assert_eq!(e.reclaim(&mut w, group, 6, None), Ok(6));
        let stamp = |i| {
            let left = e.mem.pages.folios.slot(PageId(first.0 + i)).as_value().expect("a shadow");
            e.mem.pages.layout.unpack(left).eviction
        };
        assert_eq!([0, 1, 2, 3, 4, 5].map(stamp), [0, 1, 2, 3, 4, 5]);
    }
}
