//! Memory as programs see it: advice on it, and giving it up.

use crate::config::recency::AccessAdvice;
use crate::config::thp::HugeAdvice;
use crate::engine::Engine;
use crate::fault::advise::Advice;
use crate::folio::flags::FolioFlags;
use crate::folio::mapping::MappingKind;
use crate::folio::size_stats::SizeStats;
use crate::ids::{MAX_ORDER, MappingId, PageId};
use crate::lru::batch::Batch;
use crate::lru::recency::VmaRecency;
use crate::world::World;
use crate::writeback::expired::FlushStep;

impl Engine {
    /// Advice on one page. If the page is a part of a large folio, the folio is split.
    pub fn advise(&mut self, page: PageId, advice: Advice) {
        self.advise_range(page, 1, advice);
    }

    /// Advice on `nr` pages from `first` on. Large folios that lie inside as a whole stay whole,
    /// others are split; busy ones are passed over.
    pub fn advise_range(&mut self, first: PageId, nr: u32, advice: Advice) {
        let batch = match advice {
            Advice::Cold => Batch::Deactivate,
            Advice::Free => Batch::LazyFree,
            Advice::DontNeed => Batch::DeactivateFile,
            Advice::InUse if self.mem.cfg.lru.one_list => return,
            Advice::InUse => Batch::Activate,
        };
        let (mut at, end) = (first.0, first.0 + nr);
        while at < end {
            let Some((f, next)) = self.mem.next_folio(at, end) else {
                at += 1;
                continue;
            };
            at = next;
            // Advice in the place of an accessed bit counts where an accessed bit would.
            if advice == Advice::InUse
                && self.mem.pages.vma_recency(self.mem.pages.folios.page(f)) != VmaRecency::Counts
            {
                continue;
            }
            if !self.mem.pages.folios.st(f).has(FolioFlags::UNEVICTABLE) {
                self.mem.pages.batch_add(batch, f);
            }
        }
    }

    /// `MADV_HUGEPAGE` or `MADV_NOHUGEPAGE` for an anonymous mapping: it holds for faults from now
    /// on.
    pub fn advise_huge(&mut self, mapping: MappingId, advice: HugeAdvice) {
        let m = &mut self.mem.pages.space.mappings[mapping.index()];
        if m.kind == MappingKind::Anon {
            m.huge = advice;
            m.orders = self.mem.cfg.thp.orders(advice);
        }
    }

    /// Sets the largest order of the folios of this file, from now on; 0: single pages.
    pub fn set_file_order(&mut self, mapping: MappingId, order: u8) {
        let m = &mut self.mem.pages.space.mappings[mapping.index()];
        if m.kind == MappingKind::File {
            m.max_order = order.min(MAX_ORDER);
        }
    }

    /// Sets the present end of a file (`i_size`), which writes and truncations move: pages from
    /// `end` on lie beyond it, and readahead stops there. Until it is set, it is behind the last
    /// page.
    pub fn set_i_size(&mut self, mapping: MappingId, end: PageId) {
        self.mem.pages.space.mappings[mapping.index()].i_size = end.0;
    }

    /// `MADV_RANDOM`, `MADV_SEQUENTIAL` or `POSIX_FADV_NOREUSE` for all of a mapping, or
    /// `MADV_NORMAL` again. It holds for what reclaim and faults see from now on.
    pub fn advise_access(&mut self, mapping: MappingId, advice: AccessAdvice) {
        self.mem.pages.space.mappings[mapping.index()].advice = advice;
        self.mem.pages.space.advised |= advice != AccessAdvice::Normal;
    }

    /// The counters of the sizes of folios, of the whole machine: `hugepages-<size>kB/stats`.
    pub fn size_stats(&self) -> &SizeStats {
        &self.mem.pages.size_stats
    }

    /// The order of the folio that a page belongs to, if it is in memory.
    pub fn folio_order(&self, page: PageId) -> Option<u8> {
        self.mem.swap.folio_of(&self.mem.pages, page).map(|f| self.mem.pages.folios.st(f).order())
    }

    /// Splits the large folio that holds a page, also in the swap cache: if its read failed, each
    /// page can then be tried by itself. False: the folio is busy.
    pub fn split(&mut self, page: PageId) -> bool {
        self.mem.pages.drain_all();
        self.mem.swap.folio_of(&self.mem.pages, page).is_none_or(|f| self.mem.split_unless_busy(f))
    }

    /// `MADV_PAGEOUT`: reclaims `nr` pages from `first` on now, used or not. Folios that cannot be
    /// freed at once, because they are being written or swap is full, stay. Returns how many were
    /// freed.
    pub fn page_out<W: World>(&mut self, w: &mut W, first: PageId, nr: u32) -> u64 {
        self.fault(w).page_out(first, nr)
    }

    /// Whether a slot is empty: neither in memory nor in swap, nor with a shadow.
    pub fn is_untouched(&self, page: PageId) -> bool {
        self.mem.pages.is_untouched(page)
    }

    /// Pages of a mapping that are in memory or in swap, and its page tables: what the
    /// out-of-memory killer weighs.
    pub fn footprint(&self, mapping: MappingId) -> u64 {
        self.mem.pages.footprint(mapping)
    }

    /// The task that owned this anonymous mapping is gone: its pages and slots are free. Pages that
    /// are being read or written go when that has ended. The mapping may be used again, from
    /// nothing.
    pub fn zap_mapping<W: World>(&mut self, w: &mut W, mapping: MappingId) {
        self.fault(w).zap_mapping(mapping)
    }

    /// `MADV_DONTNEED` for `nr` pages from `first` on, as far as they belong to the same anonymous
    /// mapping: they become as untouched as at the start. A large folio that is dropped in part is
    /// split. Pages that are being read or written go when the I/O has ended; until then an access
    /// waits for them.
    pub fn zap_range<W: World>(&mut self, w: &mut W, first: PageId, nr: u32) {
        self.fault(w).zap_range(first, nr)
    }

    /// `munmap` of `nr` pages from `first` on, as far as they belong to the same file: the pages
    /// stay in memory, and take over what their accessed and dirty bits said.
    pub fn unmap_range<W: World>(&mut self, w: &mut W, first: PageId, nr: u32) {
        self.fault(w).unmap_range(first, nr)
    }

    /// Truncation or deletion of a file: `nr` pages from `first` on, as far as they belong to the
    /// same file, leave memory, dirty or not. They leave no shadow, and shadows of pages that left
    /// before go, too. Pages that are being read or written go when the I/O has ended; until then
    /// an access waits for them.
    pub fn truncate_range<W: World>(&mut self, w: &mut W, first: PageId, nr: u32) {
        self.fault(w).truncate_range(first, nr)
    }

    /// Flushes all batches of every CPU.
    pub fn drain_all(&mut self) {
        self.mem.pages.drain_all()
    }

    /// Starts to write the page of a file now, if it is dirty and is not being written: what
    /// `msync` does with each.
    pub fn write_page<W: World>(&mut self, w: &mut W, page: PageId) {
        self.mem.writeout(w).write_page(page)
    }

    /// The first of `nr` pages from `first` on that is being written: a task that waits for writes
    /// waits for this page first.
    pub fn next_written(&self, first: PageId, nr: u32) -> Option<PageId> {
        if self.mem.writeback.dirty.writeback == 0 {
            return None;
        }
        let is_written = |&p: &PageId| {
            let folio = self.mem.pages.folios.slot(p).folio();
            folio.is_some_and(|f| self.mem.pages.folios.st(f).has(FolioFlags::WRITEBACK))
        };
        (first.0..first.0 + nr).map(PageId).find(is_written)
    }

    /// Starts to write all dirty pages of a file now: what `fsync` does, which then waits.
    pub fn fsync<W: World>(&mut self, w: &mut W, file: MappingId) {
        self.mem.writeout(w).fsync(file)
    }

    /// Writes dirty file pages, file by file, as far as the flusher was asked to: while more are
    /// dirty than `dirty_background_ratio` allows, or all if reclaim met nothing else.
    pub fn flush<W: World>(&mut self, w: &mut W) {
        self.mem.writeout(w).flush()
    }

    /// Whether a file has dirty pages: else a flusher that looks for old ones is not woken.
    pub fn has_dirty_files(&self) -> bool {
        self.mem.writeback.dirty.files.nr_files() > 0
    }

    /// Writes the dirty pages of files that have had some for longer than `dirty_expire_ns`, if the
    /// last look for them was `dirty_writeback_ns` ago. A driver with a flusher that runs by itself
    /// calls this now and then.
    pub fn flush_expired<W: World>(&mut self, w: &mut W) {
        self.mem.writeout(w).flush_expired()
    }

    /// As [`Engine::flush_expired`], a chunk of a file at a time: for a driver whose flusher is a
    /// thread that takes turns with others and waits for its device.
    pub fn flush_expired_step<W: World>(&mut self, w: &mut W) -> FlushStep {
        self.mem.writeout(w).flush_expired_step()
    }
}
