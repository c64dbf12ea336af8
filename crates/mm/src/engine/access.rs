//! Accesses: a hit is a look into a table, all else a fault.

use crate::config::lru::RefaultTest;
use crate::config::recency::AccessAdvice;
use crate::engine::Engine;
use crate::fault::readahead::Readahead;
use crate::folio::flags::FolioFlags;
use crate::ids::{NodeId, PageId};
use crate::node::hint::HintOutcome;
use crate::tiering::Promoter;
use crate::touch::{Outcome, Touch};
use crate::world::World;

impl Engine {
    /// One access. `page` must be registered.
    #[inline(always)]
    pub fn access<W: World>(&mut self, w: &mut W, page: PageId, touch: Touch) -> Outcome {
        if touch == Touch::Read {
            // The common case by table: the byte of the page gives its byte after a read; 0: the
            // read is more than a plain hit.
            let byte = &mut self.mem.pages.folios.hot[page.index()];
            let next = self.mem.pages.hit_transition[usize::from(*byte)];
            if next != 0 {
                *byte = next;
                return Outcome::Hit;
            }
            return self.read_beyond_hit(w, page);
        }
        if touch == Touch::MapRead {
            return self.fault(w).map_absent(page);
        }
        self.fault(w).access_slow(page, touch)
    }

    /// A read by descriptor that is more than a plain hit, as [`Engine::read_hits`] has found.
    #[inline(always)]
    pub fn read_beyond_hit<W: World>(&mut self, w: &mut W, page: PageId) -> Outcome {
        if u32::from(self.mem.pages.folios.hot[page.index()]) & FolioFlags::UPTODATE != 0 {
            self.fault(w).read_again(page)
        } else {
            self.fault(w).read_absent(page)
        }
    }

    /// Reads by descriptor in a row, up to the first that is more than a plain hit, or up to a
    /// `None`. Returns how many reads were made.
    #[inline(always)]
    pub fn read_hits(&mut self, pages: impl Iterator<Item = Option<PageId>>) -> usize {
        let (hot, hit_transition) = (&mut self.mem.pages.folios.hot[..], &self.mem.pages.hit_transition);
        let mut made = 0;
        for page in pages {
            let Some(page) = page else { break };
            let byte = &mut hot[page.index()];
            let next = hit_transition[usize::from(*byte)];
            if next == 0 {
                break;
            }
            *byte = next;
            made += 1;
        }
        made
    }

    /// Puts into `work` the pages whose reads by descriptor would be more than plain hits now: a
    /// hint for drivers that look ahead. Returns how many they are, `N` at most. There is no
    /// branch: one mispredicted every few accesses would keep the loads apart.
    #[inline(always)]
    pub fn collect_non_hits<const N: usize>(
        &self,
        pages: impl Iterator<Item = PageId>,
        work: &mut [PageId; N],
    ) -> usize {
        let (hot, hit_transition) = (&self.mem.pages.folios.hot[..], &self.mem.pages.hit_transition);
        let mut n = 0;
        for page in pages {
            work[n % N] = page;
            n += usize::from(hit_transition[usize::from(hot[page.index()])] == 0);
        }
        n.min(N)
    }

    /// A read of a file by descriptor, with reading ahead: `asked` pages from `page` on, of which
    /// this call accesses the first, as [`Engine::access`] does. Nothing is read ahead of anonymous
    /// memory, such as a file in tmpfs.
    pub fn read_file<W: World>(
        &mut self,
        w: &mut W,
        page: PageId,
        asked: u32,
        touch: Touch,
        ra: &mut Readahead,
    ) -> Outcome {
        let max = ra.max(self.mem.cfg.readahead.file_pages);
        let missed = self.mem.pages.folios.slot(page).folio().is_none();
        let marked = match self.mem.cfg.readahead.history {
            true => self.mem.pages.is_marked(page),
            false => ra.mark() == Some(page.0),
        };
        if max > 0 && (missed || marked) {
            self.fault(w).open_window(page, asked, missed, ra, max);
            // The folio of the missed page may carry the mark already.
            if missed && self.mem.cfg.readahead.history && self.mem.pages.is_marked(page) {
                self.fault(w).open_window(page, asked, false, ra, max);
            }
        }
        // A read that goes on in the folio where the last one ended is no other use of the folio.
        let goes_on = ra.next > 0 && self.mem.pages.are_of_one_folio(page, PageId(ra.next - 1));
        ra.next = page.0 + 1;
        let outcome = self.access(w, page, if goes_on { Touch::ReadContinued } else { touch });
        // A hit after a miss: a device that answers at once has just read the page.
        if missed && outcome == Outcome::Hit { Outcome::Major } else { outcome }
    }

    /// [`Engine::read_file`] of one page of a file that is read at random (`POSIX_FADV_RANDOM`), if
    /// it is a plain hit. Otherwise nothing is done: false.
    #[inline]
    pub fn read_at_random(&mut self, page: PageId, ra: &mut Readahead) -> bool {
        let goes_on = ra.next > 0 && self.mem.pages.are_of_one_folio(page, PageId(ra.next - 1));
        if goes_on || ra.max(self.mem.cfg.readahead.file_pages) > 0 {
            return false;
        }
        let hit = self.read_hits(std::iter::once(Some(page))) == 1;
        if hit {
            ra.next = page.0 + 1;
        }
        hit
    }

    /// `POSIX_FADV_WILLNEED` or `readahead(2)` for `nr` pages of a file from `first` on: pages that
    /// are not in memory are read now, and nobody has used them yet.
    pub fn will_need<W: World>(&mut self, w: &mut W, first: PageId, nr: u32) {
        self.fault(w).will_need(first, nr)
    }

    /// A write of a file by descriptor: `asked` pages from `page` on, of which this call accesses
    /// the first, as [`Engine::access`] does. Where the file may have large folios, one folio may
    /// take several of the pages.
    pub fn write_file<W: World>(&mut self, w: &mut W, page: PageId, asked: u32) -> Outcome {
        self.fault(w).write_file(page, asked)
    }

    /// A touch of a page of a mapped file that is in no page table. `ra`: state of the open file;
    /// `advice`: advice on the mapping (`madvise`). As [`Engine::access`], with reading around the
    /// page where the configuration has `history`.
    pub fn fault_file<W: World>(
        &mut self,
        w: &mut W,
        page: PageId,
        touch: Touch,
        advice: AccessAdvice,
        ra: &mut Readahead,
    ) -> Outcome {
        let max = ra.max_of_fault(advice, self.mem.cfg.readahead.file_pages);
        let missed = self.mem.pages.folios.slot(page).folio().is_none();
        let begins_anew = self.mem.cfg.readahead.history && self.fault(w).read_around(page, touch, advice, ra, max);
        let outcome = self.access(w, page, touch);
        if begins_anew {
            self.fault(w).note_retried(page, touch, ra);
        }
        // A minor fault after a miss: a device that answers at once has just read the page.
        if missed && outcome == Outcome::Minor { Outcome::Major } else { outcome }
    }

    /// Whether waiting for this page is a memory stall (pressure stall information): it is read
    /// again after it was evicted from the working set.
    pub fn is_refault_wait(&self, page: PageId) -> bool {
        self.stalls(page, FolioFlags::LOCKED | FolioFlags::WORKINGSET)
    }

    /// Whether the time that the CPU takes to read this page, or to order the read, is a memory
    /// stall: the page was evicted from the working set. To be asked after the access that read it.
    pub fn is_refault_read(&self, page: PageId) -> bool {
        self.stalls(page, FolioFlags::WORKINGSET)
    }

    fn stalls(&self, page: PageId, flags: u32) -> bool {
        let cached = || self.mem.pages.swap_entry(page).and_then(|s| self.mem.swap.slots.cached(s));
        let folio = self.mem.pages.folios.slot(page).folio().or_else(cached);
        self.mem.cfg.lru.refault != RefaultTest::None
            && folio.is_some_and(|f| self.mem.pages.folios.st(f).0 & flags == flags)
    }

    /// Ends a read that was pending; of a large folio, `page` is any page. If the read failed the
    /// page stays in the cache, not up to date, and the next access tries again.
    pub fn read_done<W: World>(&mut self, w: &mut W, page: PageId, ok: bool) {
        self.fault(w).read_done(page, ok)
    }

    /// Ends a write that was pending; of a large folio, `page` is any page. After a failure the
    /// folio is dirty again.
    pub fn write_done<W: World>(&mut self, w: &mut W, page: PageId, ok: bool) {
        self.fault(w).write_done(page, ok)
    }

    /// Cancels a write that was pending, because the page was needed before the write began:
    /// possible for a driver that keeps pages for a while before it writes them. The folio is dirty
    /// as before, and nothing failed.
    pub fn write_cancelled<W: World>(&mut self, w: &mut W, page: PageId) {
        self.fault(w).write_cancelled(page)
    }

    /// Ends a migration that was pending; `page` is any page of the folio.
    pub fn migrate_done<W: World>(&mut self, w: &mut W, page: PageId, ok: bool) {
        self.fault(w).migrate_done(page, ok)
    }

    /// Marks a page, so that its next touch is a hint fault. False: the driver is to leave the page
    /// alone: it is not mapped, not on slow memory, or a dirty page of a file, which could not be
    /// moved.
    pub fn hint_mark(&mut self, page: PageId) -> bool {
        self.mem.frames.hint_mark(&mut self.mem.pages, self.mem.now_ns, page)
    }

    /// A marked page was touched, on the current CPU. The mark is gone.
    pub fn hint_fault<W: World>(&mut self, w: &mut W, page: PageId) -> HintOutcome {
        self.fault(w).hint_fault(page)
    }

    /// The promoter of a node, for its threshold and counts; none: nothing is promoted to the node.
    pub fn promoter(&self, node: NodeId) -> Option<&Promoter> {
        self.mem.frames.hints.as_ref().and_then(|h| h.promoters.get(node.index())?.as_ref())
    }
}
