//! Writes: how they start, and what follows when they have ended.

use crate::folio::flags::FolioFlags;
use crate::folio::size_stats::SizeCounter;
use crate::ids::{FolioId, PageId};
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};
use crate::writeback::Writeout;

impl<W: World> Writeout<'_, W> {
    /// Starts to write a dirty folio: to its file, or to its swap slot. `rotate`: it is on a list.
    pub(crate) fn start_write(&mut self, f: FolioId, rotate: bool) {
        let st = self.pages.folios.st(f);
        let (page, order) = (self.pages.folios.page(f), st.order());
        self.begin_write(f);
        let ack = if st.has(FolioFlags::SWAPCACHE) {
            self.pages.count(f, Counter::Pswpout, st.nr_pages());
            if st.has(FolioFlags::LARGE) {
                self.pages.count_size(
                    self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg,
                    order,
                    SizeCounter::Swpout,
                );
            }
            self.world.effect(Effect::SwapOut { page, order, slot: self.pages.folios.swap(f) })
        } else {
            if st.has(FolioFlags::MAPPED) {
                (page.0..page.0 + st.nr_pages() as u32)
                    .for_each(|p| _ = self.world.effect(Effect::WriteProtect { page: PageId(p) }));
            }
            self.world.effect(Effect::Write { page, order })
        };
        if ack != Ack::Pending {
            self.end_write(f, ack == Ack::Done, rotate);
        }
    }

    /// A folio is under writeback, not dirty any more.
    pub(crate) fn begin_write(&mut self, f: FolioId) {
        let st = self.pages.folios.st(f);
        debug_assert!(
            st.has(FolioFlags::UPTODATE) && !st.has(FolioFlags::WRITEBACK),
            "{f:?} starts to be written: {st:?}"
        );
        self.clear_dirty(f);
        self.pages.folios.set(f, FolioFlags::WRITEBACK);
        self.count_writeback(f, st.nr_pages() as i64);
    }

    /// A write ended. A folio that reclaim waits for goes to the tail, unless reclaim holds it
    /// itself.
    pub(crate) fn end_write(&mut self, f: FolioId, ok: bool, rotate: bool) {
        let st = self.pages.folios.st(f);
        let (nr, reclaim) = (st.nr_pages(), st.has(FolioFlags::RECLAIM));
        debug_assert!(st.has(FolioFlags::WRITEBACK), "{f:?} was not being written: {st:?}");
        self.pages.folios.clear(f, FolioFlags::WRITEBACK | FolioFlags::RECLAIM);
        self.count_writeback(f, -(nr as i64));
        if !st.has(FolioFlags::ANON) {
            self.note_cleaned(self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg);
        }
        if !ok {
            self.pages.count(f, Counter::WriteErrors, nr);
            self.writeback.writes_failed += nr;
            self.set_dirty_again(f);
            return;
        }
        self.pages.count(f, Counter::NrWritten, nr);
        self.writeback.writes_failed = 0;
        if reclaim {
            self.frames.note_reclaim_written(self.cfg, self.world, nr);
        }
        if reclaim && rotate && !self.pages.folios.st(f).has(FolioFlags::DIRTY) {
            self.pages.batch_add(crate::lru::batch::Batch::MoveTail, f);
        }
    }
}
