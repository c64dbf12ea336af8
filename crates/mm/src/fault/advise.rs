//! Advice of programs on ranges of their memory: `madvise` and `fadvise`.

use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, MemcgId, PageId};
use crate::scan::ScanControl;
use crate::world::World;

/// Advice of a program on pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// `MADV_COLD`: deactivate it.
    Cold,
    /// `MADV_FREE`: its content may be dropped, unless it is written again.
    Free,
    /// `POSIX_FADV_DONTNEED` on a page that cannot be dropped at once: to the end of the inactive
    /// list.
    DontNeed,
    /// The page was touched just after it had been ordered out. A driver without accessed bits thus
    /// learns what such a bit would have said a moment before: a page that is young for the second
    /// time is activated; under multi-gen LRU it gets the youngest generation.
    InUse,
}

impl<W: World> FaultContext<'_, W> {
    /// `MADV_PAGEOUT`: reclaims `nr` pages from `first` on now, used or not. Folios that cannot be
    /// freed at once, because they are being written or swap is full, stay. Returns how many were
    /// freed.
    pub(crate) fn page_out(&mut self, first: PageId, nr: u32) -> u64 {
        let mut sc = ScanControl::for_memcg(MemcgId::ROOT, u64::from(nr), None);
        (sc.ignore_references, sc.no_demotion) = (true, true);
        self.mem.pages.drain_batches();
        let (mut at, end, mut freed) = (first.0, first.0 + nr, 0);
        while at < end {
            // A page table at a time, as a walk over the range meets them.
            let table_end = self.mem.pages.space.table_pages(self.mem.pages.table_of(PageId(at)) as u32).end.min(end);
            freed += self.page_out_table(at, table_end, &mut sc);
            at = table_end;
        }
        freed
    }

    fn page_out_table(&mut self, mut at: u32, end: u32, sc: &mut ScanControl) -> u64 {
        let mut list = self.mem.pages.take_scratch();
        while at < end {
            let mapped = self.mem.pages.space.is_mapped(PageId(at));
            let Some((f, next)) = self.mem.next_folio(at, end).filter(|_| mapped) else {
                at += 1;
                continue;
            };
            at = next;
            let st = self.mem.pages.folios.st(f);
            if st.has(FolioFlags::LRU) && !st.has(FolioFlags::UNEVICTABLE) {
                self.isolate_for_page_out(f, st);
                list.push(f);
            }
        }
        let taken: u64 = list.iter().map(|&f| self.mem.pages.folios.st(f).nr_pages()).sum();
        let mut freed = 0;
        for nid in self.mem.frames.nodes.ids() {
            sc.nid = nid;
            freed += self.page_out_on_node(&list, sc);
        }
        self.mem.pages.return_scratch(list);
        self.mem.pages.work.scanned += taken;
        self.mem.pages.work.reclaimed += freed;
        freed
    }

    /// Reclaims the isolated folios that are on the node of `sc`: a batch is of one lruvec.
    fn page_out_on_node(&mut self, folios: &[FolioId], sc: &ScanControl) -> u64 {
        let mut list = self.mem.pages.take_scratch();
        list.extend(folios.iter().filter(|&&f| self.mem.pages.folios.nid(f) == sc.nid));
        let freed =
            if list.is_empty() { 0 } else { self.reclaim_with(sc.clone()).shrink_folio_list(&mut list).reclaimed };
        for &f in &list {
            self.mem.pages.folios.set(f, FolioFlags::LRU);
            self.mem.pages.lruvec_add(f, false);
        }
        self.mem.pages.return_scratch(list);
        freed
    }

    /// Takes a folio off its list for reclaim. If it was active, it is part of the working set.
    fn isolate_for_page_out(&mut self, f: FolioId, st: FolioFlags) {
        self.mem.pages.folios.clear(f, FolioFlags::REFERENCED);
        if st.has(FolioFlags::ACTIVE) {
            self.mem.pages.folios.set(f, FolioFlags::WORKINGSET);
        }
        self.mem.pages.lruvec_del(f, false);
        self.mem.pages.folios.clear(f, FolioFlags::LRU);
    }
}
