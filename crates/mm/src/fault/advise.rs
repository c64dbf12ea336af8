//! What programs say about ranges of their memory: `madvise` and `fadvise`.

use crate::engine::Engine;
use crate::folio::table::State;
use crate::ids::{FolioId, MemcgId, PageId};
use crate::lru::batch::Batch;
use crate::reclaim::scan::ScanControl;
use crate::world::World;

/// What a program says about pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// `MADV_COLD`: deactivate it.
    Cold,
    /// `MADV_FREE`: its content may be dropped, unless it is written again.
    Free,
    /// `POSIX_FADV_DONTNEED` on a page that cannot be dropped at once: to the end of the inactive list.
    DontNeed,
    /// It was touched just after it had been ordered out. A driver that has no accessed bits learns by that what such a bit would have
    /// said a moment before: a page that is young for the second time is activated, under many generations it gets the youngest.
    InUse,
}

impl Engine {
    /// Advice on one page. A large folio of which it is a part is split.
    pub fn advise(&mut self, page: PageId, advice: Advice) {
        self.advise_range(page, 1, advice);
    }

    /// Advice on `nr` pages from `first` on. Large folios that lie inside as a whole stay whole, others are split; busy ones are passed
    /// over.
    pub fn advise_range(&mut self, first: PageId, nr: u32, advice: Advice) {
        let batch = match advice {
            Advice::Cold => Batch::Deactivate,
            Advice::Free => Batch::LazyFree,
            Advice::DontNeed => Batch::DeactivateFile,
            Advice::InUse if self.cfg.one_list => return,
            Advice::InUse => Batch::Activate,
        };
        let (mut at, end) = (first.0, first.0 + nr);
        while at < end {
            let Some((f, next)) = self.next_folio(at, end) else {
                at += 1;
                continue;
            };
            at = next;
            if !self.pages.folios.st(f).has(State::UNEVICTABLE) {
                self.batch_add(batch, f);
            }
        }
    }

    /// The folio of a resident page, cut to what lies before `end`, and the page after it. None: there is none, or it cannot be
    /// cut now.
    fn next_folio(&mut self, at: u32, end: u32) -> Option<(FolioId, u32)> {
        let f = self.pages.folios.slot(PageId(at)).folio()?;
        if !self.pages.folios.st(f).has(State::LARGE) {
            return Some((f, at + 1));
        }
        let pages = self.pages_of(f);
        let whole =
            pages.start == at && pages.end <= end && self.pages.space.mapped_in(pages.clone()).count() == pages.len();
        if whole {
            return Some((f, pages.end));
        }
        self.split_unless_busy(f).then_some((FolioId(at), at + 1))
    }

    /// `MADV_PAGEOUT`: reclaims `nr` pages from `first` on now, used or not. What cannot be freed at once, because it is being written
    /// or swap is full, stays. Returns how many were freed.
    pub fn page_out<W: World>(&mut self, w: &mut W, first: PageId, nr: u32) -> u64 {
        let mut sc = ScanControl::for_memcg(MemcgId::ROOT, u64::from(nr), None);
        (sc.ignore_references, sc.no_demotion) = (true, true);
        self.drain_batches();
        let (mut at, end, mut freed) = (first.0, first.0 + nr, 0);
        while at < end {
            // A page table at a time, as a walk over the range meets them.
            let table_end = self.pages.space.table_pages(self.table_of(PageId(at)) as u32).end.min(end);
            freed += self.page_out_table(w, at, table_end, &mut sc);
            at = table_end;
        }
        freed
    }

    fn page_out_table<W: World>(&mut self, w: &mut W, mut at: u32, end: u32, sc: &mut ScanControl) -> u64 {
        let mut list = self.take_scratch();
        while at < end {
            let mapped = self.pages.space.is_mapped(PageId(at));
            let Some((f, next)) = self.next_folio(at, end).filter(|_| mapped) else {
                at += 1;
                continue;
            };
            at = next;
            let st = self.pages.folios.st(f);
            if st.has(State::LRU) && !st.has(State::UNEVICTABLE) {
                self.isolate_for_page_out(f, st);
                list.push(f);
            }
        }
        let taken: u64 = list.iter().map(|&f| self.pages.folios.st(f).nr_pages()).sum();
        let mut freed = 0;
        for nid in self.frames.nodes.ids() {
            sc.nid = nid;
            freed += self.page_out_on_node(w, &list, sc);
        }
        self.return_scratch(list);
        self.pages.work.scanned += taken;
        self.pages.work.reclaimed += freed;
        freed
    }

    /// Those of the isolated folios that are on the node of `sc`: a batch is of one lruvec.
    fn page_out_on_node<W: World>(&mut self, w: &mut W, folios: &[FolioId], sc: &ScanControl) -> u64 {
        let mut list = self.take_scratch();
        list.extend(folios.iter().filter(|&&f| self.pages.folios.nid(f) == sc.nid));
        let freed = if list.is_empty() { 0 } else { self.shrink_folio_list(w, &mut list, sc).reclaimed };
        for &f in &list {
            self.pages.folios.set(f, State::LRU);
            self.lruvec_add(f, false);
        }
        self.return_scratch(list);
        freed
    }

    /// Off its list. It had its use if it was active.
    fn isolate_for_page_out(&mut self, f: FolioId, st: State) {
        self.pages.folios.clear(f, State::REFERENCED);
        if st.has(State::ACTIVE) {
            self.pages.folios.set(f, State::WORKINGSET);
        }
        self.lruvec_del(f, false);
        self.pages.folios.clear(f, State::LRU);
    }
}
