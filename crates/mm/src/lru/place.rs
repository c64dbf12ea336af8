//! Putting folios on lists and taking them off, and what an access does to a folio.

use crate::config::lru::{Clock, FaultedPages};
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, LruvecId, PageId};
use crate::lru::batch::Batch;
use crate::lru::lru_list::{FILE, UNEVICTABLE, list_index};
use crate::lru::pages::ResidentPages;
use crate::lru::policy::LruPolicy;

impl ResidentPages {
    /// A new folio, whose frames were noted, waits in the add batch; under multi-gen LRU a faulted
    /// one starts in the youngest generation.
    #[inline(always)]
    pub(crate) fn add_folio(&mut self, page: PageId, st: FolioFlags, in_fault: bool) -> FolioId {
        let st = self.state_of_new(st, in_fault);
        let f = self.folios.alloc(page, st);
        self.batch_push(Batch::Add, f, st);
        f
    }

    #[inline]
    pub(crate) fn state_of_new(&self, mut st: FolioFlags, in_fault: bool) -> FolioFlags {
        if in_fault && by_policy!(self.cfg.kind, P => P::FAULTED_IS_ACTIVE) {
            match self.cfg.faulted_pages {
                FaultedPages::Accessed if !st.has(FolioFlags::WORKINGSET) => {
                    if !st.has(FolioFlags::REFERENCED) {
                        self.cfg.generations.count_access(&mut st);
                    }
                }
                _ => st.set(FolioFlags::ACTIVE),
            }
        }
        st.set(FolioFlags::ADDING);
        st
    }

    /// Puts a folio on the list that its flags ask for: at the tail if `reclaiming` (rotated after
    /// writeback).
    #[inline]
    pub(crate) fn lruvec_add(&mut self, f: FolioId, reclaiming: bool) {
        self.lruvec_add_as(f, self.folios.st(f), reclaiming);
    }

    /// As `lruvec_add`, for a folio whose flags are to be `st`.
    #[inline(always)]
    pub(crate) fn lruvec_add_as(&mut self, f: FolioId, mut st: FolioFlags, reclaiming: bool) {
        let v = &mut self.lruvecs[self.folios.lruvec(f).index()];
        let nr = st.nr_pages();
        debug_assert!(st.generation().is_none() && !st.has(FolioFlags::ADDING), "{f:?} is on a list already: {st:?}");
        let (l, list) = if st.has(FolioFlags::UNEVICTABLE) {
            (UNEVICTABLE, v.lists[UNEVICTABLE])
        } else {
            by_policy!(self.cfg.kind, P => P::place(v, &self.folios, f, &mut st, reclaiming, &self.cfg))
        };
        v.size[l] += nr;
        self.node_sizes[v.nid.index()][l] += nr;
        self.folios.put_on(list, f, st, reclaiming);
    }

    /// The lruvec and the type of folios, if [`ResidentPages::add_bulk`] may put them on their
    /// lists: all of one type and of one page each, in one lruvec, and on no list. Folios that come
    /// together mostly are.
    pub(crate) fn adds_by_list(&self, folios: &[FolioId]) -> Option<(LruvecId, usize)> {
        const ODD: u32 =
            FolioFlags::UNEVICTABLE | FolioFlags::RECLAIM | FolioFlags::LRU | FolioFlags::GEN_MASK | FolioFlags::LARGE;
        let by_list = self.one_zone && by_policy!(self.cfg.kind, P => P::adds_by_list(&self.cfg));
        let t = self.folios.st(*folios.first().filter(|_| by_list)?).type_index();
        if t == FILE {
            return Some((self.folios.plain_lruvec(folios, ODD | FolioFlags::SWAPBACKED)?, t));
        }
        let own = self.folios.plain_lruvec(folios, ODD)?;
        let active = by_policy!(self.cfg.kind, P => P::ADDS_ACTIVE_ANON_BY_LIST);
        let needed = FolioFlags::SWAPBACKED | if active { FolioFlags::ACTIVE } else { 0 };
        (self.folios.flags_of(folios).1 & needed == needed).then_some((own, t))
    }

    /// Puts folios on their lists if [`ResidentPages::adds_by_list`] allows it: `lruvec_add_as` for
    /// many at once. Returns how many of them are active there.
    pub(crate) fn add_bulk(&mut self, (own, t): (LruvecId, usize), folios: &[FolioId]) -> u64 {
        let v = &mut self.lruvecs[own.index()];
        let sizes = by_policy!(self.cfg.kind, P => P::add_bulk(v, &mut self.folios, (folios, t), &self.cfg));
        for (l, nr) in sizes {
            v.size[l] += nr;
            self.node_sizes[v.nid.index()][l] += nr;
        }
        sizes[1].1
    }

    /// Notes that a list has `nr` pages more, or fewer.
    pub(crate) fn resize_list(&mut self, v: LruvecId, l: usize, nr: i64) {
        let v = &mut self.lruvecs[v.index()];
        for size in [&mut v.size[l], &mut self.node_sizes[v.nid.index()][l]] {
            *size = size.checked_add_signed(nr).expect("a list never holds less than nothing");
        }
    }

    /// Takes a folio off its list. Under multi-gen LRU a folio that does not leave for reclaim
    /// stays known as active if its generation was one of the two youngest.
    #[inline]
    pub(crate) fn lruvec_del(&mut self, f: FolioId, reclaiming: bool) {
        let st = self.folios.st(f);
        let v = &mut self.lruvecs[self.folios.lruvec(f).index()];
        let nr = st.nr_pages();
        debug_assert!(!st.has(FolioFlags::ADDING | FolioFlags::MIGRATING), "{f:?} is on no list: {st:?}");
        self.folios.links.del(f);
        if st.has(FolioFlags::UNEVICTABLE) {
            v.size[UNEVICTABLE] -= nr;
            self.node_sizes[v.nid.index()][UNEVICTABLE] -= nr;
            return;
        }
        let t = st.type_index();
        match st.generation() {
            None => {
                let l = list_index(t, st.has(FolioFlags::ACTIVE));
                v.size[l] -= nr;
                self.node_sizes[v.nid.index()][l] -= nr;
            }
            Some(i) => {
                let active = v.r#gen.is_active(i);
                v.r#gen.nr_pages[i][t] -= nr;
                v.size[list_index(t, active)] -= nr;
                self.node_sizes[v.nid.index()][list_index(t, active)] -= nr;
                let mut new = st;
                new.clear(FolioFlags::GEN_MASK);
                if active && !reclaiming {
                    new.set(FolioFlags::ACTIVE);
                }
                self.folios.put(f, new);
            }
        }
    }

    /// Moves the accounting (not the folio) from one generation to another.
    pub(crate) fn gen_update_size(&mut self, v: LruvecId, t: usize, from: usize, to: usize, nr: u64) {
        let v = &mut self.lruvecs[v.index()];
        v.r#gen.nr_pages[from][t] -= nr;
        v.r#gen.nr_pages[to][t] += nr;
        let (was, is) = (v.r#gen.is_active(from), v.r#gen.is_active(to));
        if was != is {
            v.size[list_index(t, was)] -= nr;
            v.size[list_index(t, is)] += nr;
            self.node_sizes[v.nid.index()][list_index(t, was)] -= nr;
            self.node_sizes[v.nid.index()][list_index(t, is)] += nr;
        }
    }

    /// Counts an access by descriptor.
    #[inline]
    pub(crate) fn mark_accessed(&mut self, f: FolioId) {
        if self.ext.is_some() {
            self.cache_ext_read(f);
        }
        by_policy!(self.cfg.kind, P => P::mark_accessed(self, f));
    }

    /// The policy beside the lists learns of a read.
    #[cold]
    pub(crate) fn cache_ext_read(&mut self, f: FolioId) {
        let own = self.folios.lruvec(f);
        if let (Some(ext), true) = (&mut self.ext, self.folios.st(f).is_file()) {
            ext.read(own, f);
        }
    }

    /// Tells the policy beside the lists that a mapped folio was in use, or that its group changed.
    #[cold]
    pub(crate) fn cache_ext_accessed(&mut self, f: FolioId) {
        let own = self.folios.lruvec(f);
        if let (Some(ext), true) = (&mut self.ext, self.folios.st(f).is_file()) {
            ext.accessed(own, f);
        }
    }

    /// The policy beside the lists learns that a folio is gone: taken by reclaim, or otherwise.
    #[cold]
    pub(crate) fn cache_ext_removed(&mut self, f: FolioId, evicted: bool) {
        if let Some(ext) = &mut self.ext {
            ext.removed(f, evicted);
        }
    }

    /// Second access to an inactive folio.
    pub(crate) fn activate_accessed(&mut self, f: FolioId) {
        let st = self.folios.st(f);
        let mut now = st;
        now.clear(FolioFlags::LRU | FolioFlags::REFERENCED);
        if st.has(FolioFlags::ADDING) {
            // The folio is moved to the active list when the batch that it waits in is drained.
            now.set(FolioFlags::ACTIVE);
        }
        self.folios.put(f, now);
        if self.cfg.clock == Clock::EvictionsAndActivations {
            self.age_nonresident(self.folios.lruvec(f), st.nr_pages());
        }
        if st.has(FolioFlags::LRU) {
            self.batch_push(Batch::Activate, f, st);
        }
    }

    /// Advances the clock of non-resident pages, here and in all ancestors.
    #[inline]
    pub(crate) fn age_nonresident(&mut self, v: LruvecId, nr: u64) {
        let mut at = Some(v);
        while let Some(v) = at {
            let v = &mut self.lruvecs[v.index()];
            v.nonresident_age += nr;
            at = v.parent;
        }
    }
}
