//! Two lists: taking folios off their tails, and putting back what stays.

use crate::config::lru::{Clock, Lru, RefaultTest};
use crate::folio::flags::FolioFlags;
use crate::folio::list::Target;
use crate::ids::{FolioId, LruvecId, PageId};
use crate::lru::lru_list::list_index;
use crate::lru::pages::ResidentPages;
use crate::lru::sort::needs_write;
use crate::stat::Counter;

impl ResidentPages {
    /// Whether refaults may have the active list challenged: not before mainline's test.
    pub(crate) fn refaults_challenge_active(&self) -> bool {
        !matches!(self.cfg.refault, RefaultTest::None | RefaultTest::Distance2013)
    }

    /// Takes up to `nr` pages from the tail of a list; with `wait`, only up to the first folio that
    /// must be written. A folio that someone else holds goes to the head and counts as scanned.
    /// Returns pages scanned and pages taken.
    pub(crate) fn isolate(&mut self, v: LruvecId, l: usize, nr: u64, wait: bool, out: &mut Vec<FolioId>) -> (u64, u64) {
        let list = self.lruvecs[v.index()].lists[l];
        self.folios.prefetch_tail(list, nr as usize);
        let (mut scanned, mut isolated) = (0, 0);
        while scanned < nr {
            // Folios of one page that nobody else holds are taken in a row.
            let in_row = self.folios.take_oldest(list, (nr - scanned) as usize, out, |mut st| {
                let take =
                    st.0 & (FolioFlags::LRU | FolioFlags::LARGE) == FolioFlags::LRU && !(wait && needs_write(st));
                st.clear(FolioFlags::LRU);
                take.then_some(st)
            }) as u64;
            if in_row > 0 {
                (scanned, isolated) = (scanned + in_row, isolated + in_row);
                continue;
            }
            let Some(f) = self.folios.links.tail(list) else { break };
            let st = self.folios.st(f);
            if wait && needs_write(st) {
                break;
            }
            scanned += st.nr_pages();
            self.folios.links.pop_tail(list);
            if !st.has(FolioFlags::LRU) {
                self.folios.links.add(list, f);
                continue;
            }
            self.folios.clear(f, FolioFlags::LRU);
            isolated += st.nr_pages();
            out.push(f);
        }
        self.resize_list(v, l, -(isolated as i64));
        (scanned, isolated)
    }

    /// Takes up to `nr` pages of low zones from the tail of a list. Folios of higher zones on the
    /// way go to the head, and count as scanned. Returns pages scanned and pages taken.
    pub(crate) fn isolate_low(
        &mut self,
        v: LruvecId,
        l: usize,
        nr: u64,
        highest_zone: usize,
        out: &mut Vec<FolioId>,
    ) -> (u64, u64) {
        let list = self.lruvecs[v.index()].lists[l];
        let (mut scanned, mut skipped, mut isolated) = (0, 0, 0);
        let mut head = self.take_scratch();
        while scanned < nr {
            let Some(f) = self.folios.links.tail(list) else { break };
            let st = self.folios.st(f);
            self.folios.links.pop_tail(list);
            if self.folios.zone_list(f) > highest_zone {
                skipped += st.nr_pages();
                head.push(f);
                continue;
            }
            scanned += st.nr_pages();
            if !st.has(FolioFlags::LRU) {
                head.push(f);
                continue;
            }
            self.folios.clear(f, FolioFlags::LRU);
            isolated += st.nr_pages();
            out.push(f);
        }
        head.iter().for_each(|&f| self.folios.links.add(list, f));
        self.return_scratch(head);
        self.count_lruvec(v, Counter::PgscanSkip, skipped);
        self.work.skipped += skipped;
        self.resize_list(v, l, -(isolated as i64));
        (scanned + skipped, isolated)
    }

    /// Pages of zones up to `highest_zone`, by list. They are counted when somebody asks, which is
    /// rare.
    pub(crate) fn sizes_up_to(&self, v: LruvecId, highest_zone: usize) -> [u64; 5] {
        let lists = &self.lruvecs[v.index()].lists;
        std::array::from_fn(|l| {
            let folios = lists.get(l).into_iter().flat_map(|&list| self.folios.links.oldest_first(list));
            let low = folios.filter(|&f| self.folios.zone_list(f) <= highest_zone);
            low.map(|f| self.folios.st(f).nr_pages()).sum()
        })
    }

    /// Takes the `nr` oldest folios off a list, if all can be taken and none has a flag of `odd`;
    /// their flags stay. False: none is taken.
    pub(crate) fn isolate_bulk(
        &mut self,
        v: LruvecId,
        l: usize,
        nr: u64,
        odd: u32,
        pinned: impl Fn(PageId) -> bool,
        out: &mut Vec<FolioId>,
    ) -> bool {
        let list = self.lruvecs[v.index()].lists[l];
        if self.folios.links.tail(list).is_some_and(|f| self.folios.st(f).has(odd)) {
            return false;
        }
        let passed = self.folios.links.oldest(list, nr as usize, out);
        let (any, all) = self.folios.flags_of(out);
        if any & odd != 0 || all & FolioFlags::LRU == 0 || out.iter().any(|&f| pinned(self.folios.page(f))) {
            out.clear();
            return false;
        }
        self.folios.links.pop_oldest(list, out.len(), passed);
        self.resize_list(v, l, -(out.len() as i64));
        true
    }

    /// Puts active folios that nothing can keep at the head of the inactive list.
    pub(crate) fn deactivate_bulk(&mut self, v: LruvecId, t: usize, folios: &[FolioId]) {
        let (nr, l) = (folios.len() as u64, list_index(t, false));
        let list = self.lruvecs[v.index()].lists[l];
        self.folios.add_each(folios, &[Target::new(list, !FolioFlags::ACTIVE, FolioFlags::WORKINGSET)]);
        self.resize_list(v, l, nr as i64);
        self.count_lruvec(v, Counter::Pgrefill, nr);
        self.count_lruvec(v, Counter::Pgdeactivate, nr);
        self.work.scanned += nr;
    }

    /// Whether the clock advances for folios that reclaim puts back as active: in mainline, not in
    /// 2013. Generations put none back as active.
    fn put_back_ages(&self) -> bool {
        self.cfg.kind == Lru::TwoList
            && self.cfg.clock == Clock::EvictionsAndActivations
            && self.cfg.refault != RefaultTest::Distance2013
    }

    /// Puts isolated folios back, oldest first, each at the head of the list its flags ask for.
    pub(crate) fn put_back(&mut self, list: &[FolioId]) {
        if let Some(alike) = self.adds_by_list(list) {
            let active = self.add_bulk(alike, list);
            if active > 0 && self.put_back_ages() {
                self.age_nonresident(alike.0, active);
            }
            return;
        }
        for &f in list {
            self.folios.set(f, FolioFlags::LRU);
            self.lruvec_add(f, false);
            let st = self.folios.st(f);
            if st.has(FolioFlags::ACTIVE) && self.put_back_ages() {
                self.age_nonresident(self.folios.lruvec(f), st.nr_pages());
            }
        }
    }
}
