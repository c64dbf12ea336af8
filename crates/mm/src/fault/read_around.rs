//! Reading around faults on mapped files. It ends at too many misses: faults that had to read, less
//! pages that faults find in memory.
//!
//! Mechanism: `docs/mechanisms.md#reading-around-faults`.

use crate::config::readahead::MmapMissDecrease;
use crate::config::recency::AccessAdvice;
use crate::fault::FaultContext;
use crate::fault::readahead::Readahead;
use crate::ids::PageId;
use crate::touch::Touch;
use crate::world::World;

/// `MMAP_LOTSAMISS`: misses above which faults of an open file read nothing around.
const LOTS_OF_MISSES: u32 = 100;

impl Readahead {
    fn miss(&mut self) -> bool {
        self.mmap_miss = (self.mmap_miss + 1).min(10 * LOTS_OF_MISSES);
        self.mmap_miss <= LOTS_OF_MISSES
    }

    fn hit(&mut self, pages: u32) {
        self.mmap_miss = self.mmap_miss.saturating_sub(pages);
    }
}

impl<W: World> FaultContext<'_, W> {
    /// A fault on a page of a mapped file, before the page is mapped: reads the pages that are due
    /// with it. True: the fault begins anew after that.
    pub(crate) fn read_around(
        &mut self,
        page: PageId,
        touch: Touch,
        advice: AccessAdvice,
        ra: &mut Readahead,
        max: u32,
    ) -> bool {
        if self.try_around(page, touch) {
            let hits = self.mem.pages.mmap_hits(&self.mem.cfg, page);
            ra.hit(hits);
            if self.mem.pages.is_ready(page) {
                return false;
            }
        }
        let is_there = self.mem.pages.folios.slot(page).folio().is_some();
        let window = match is_there {
            _ if max == 0 => return !is_there,
            true if self.mem.pages.is_locked(page) => return false,
            true => {
                ra.hit(1);
                if !self.mem.pages.is_marked(page) {
                    return false;
                }
                self.next_window(page, max, ra, max)
            }
            false if advice == AccessAdvice::Sequential => self.context_window(page, max, true, ra, max),
            false if ra.miss() => {
                let mapping = self.mem.pages.space.mapping_of(page).index();
                let first = self.mem.pages.space.mappings[mapping].first.0;
                let window = ra.open(page.0.saturating_sub(max / 2).max(first), max, max / 4);
                self.first_order(window, ra)
            }
            false => return true,
        };
        self.read_window(page, window, Touch::MapRead, ra);
        true
    }

    /// Counts pages in memory around a fault that began anew, once its page is mapped.
    pub(crate) fn note_retried(&mut self, page: PageId, touch: Touch, ra: &mut Readahead) {
        if self.mem.cfg.readahead.mmap_hits != MmapMissDecrease::FaultedPage && self.is_around(touch) {
            let hits = self.mem.pages.mmap_hits(&self.mem.cfg, page);
            ra.hit(hits);
        }
    }

    fn is_around(&self, touch: Touch) -> bool {
        touch == Touch::MapRead && self.mem.cfg.fault_around.pages > 1
    }

    /// Maps pages in memory around a fault of a kind that does so. True: it is of this kind.
    fn try_around(&mut self, page: PageId, touch: Touch) -> bool {
        if !self.is_around(touch) {
            return false;
        }
        let mapping = self.mem.pages.space.mapping_of(page).index();
        let memcg = self.mem.pages.space.mappings[mapping].memcg;
        let table = self.mem.pages.table_of(page);
        // Where there is no room for the table the fault itself says so.
        if self.alloc().charge_table(table, memcg).is_ok() {
            self.mem.pages.fault_around(&self.mem.cfg, self.world, page);
        }
        true
    }
}
