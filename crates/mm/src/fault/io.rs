//! Reads: their start, and the calls at the end of I/O.

use crate::fault::FaultContext;
use crate::folio::flags::FolioFlags;
use crate::folio::size_stats::SizeCounter;
use crate::ids::{FolioId, PageId};
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};

impl<W: World> FaultContext<'_, W> {
    /// Ends a migration that was pending; `page` is any page of the folio.
    pub(crate) fn migrate_done(&mut self, page: PageId, ok: bool) {
        let Some(f) = self.mem.swap.folio_of(&self.mem.pages, page) else { return };
        let Some(migration) = self.mem.frames.migrating.remove(&f) else { return };
        let reason = migration.reason;
        self.mem.migration(self.world).settle_migration(f, migration, ok);
        self.mem.migration(self.world).add_migrated(f, reason);
        self.finish_zapping(f);
    }

    /// Starts to read a folio, from its file or its slot.
    pub(crate) fn read_folio(&mut self, f: FolioId) -> Ack {
        let st = self.mem.pages.folios.st(f);
        let (page, order) = (self.mem.pages.folios.page(f), st.order());
        if st.has(FolioFlags::ANON) && self.mem.swap_cache(self.world).load_without_read(f) {
            return Ack::Done;
        }
        let ack = match st.has(FolioFlags::ANON) {
            true => {
                self.mem.pages.count(f, Counter::Pswpin, st.nr_pages());
                if st.has(FolioFlags::LARGE) {
                    self.mem.pages.count_size(
                        self.mem.pages.lruvecs[self.mem.pages.folios.lruvec(f).index()].memcg,
                        order,
                        SizeCounter::Swpin,
                    );
                }
                self.world.effect(Effect::SwapIn { page, order, slot: self.mem.pages.folios.swap(f) })
            }
            false => self.world.effect(Effect::Read { page, order }),
        };
        self.mem.pages.note_read(f, ack);
        ack
    }

    /// Ends a read that was pending; of a large folio, `page` is any page. If the read failed the
    /// page stays in the cache, not up to date, and the next access tries again.
    pub(crate) fn read_done(&mut self, page: PageId, ok: bool) {
        let Some(f) = self.mem.swap.folio_of(&self.mem.pages, page) else { return };
        if !self.mem.pages.folios.st(f).has(FolioFlags::LOCKED)
            || self.mem.pages.folios.st(f).has(FolioFlags::MIGRATING)
        {
            return;
        }
        self.mem.pages.folios.clear(f, FolioFlags::LOCKED);
        self.mem.pages.reads_pending -= 1;
        if ok {
            self.mem.pages.folios.set(f, FolioFlags::UPTODATE);
        } else {
            self.mem.pages.count(f, Counter::ReadErrors, 1);
        }
        self.finish_zapping(f);
    }

    /// Ends a write that was pending; of a large folio, `page` is any page. After a failure the
    /// folio is dirty again.
    pub(crate) fn write_done(&mut self, page: PageId, ok: bool) {
        let Some(f) = self.mem.swap.folio_of(&self.mem.pages, page) else { return };
        if self.mem.pages.folios.st(f).has(FolioFlags::WRITEBACK) {
            self.mem.writeout(self.world).end_write(f, ok, true);
            self.finish_zapping(f);
        }
    }

    /// Cancels a write that was pending, because the page was needed before the write began:
    /// possible for a driver that keeps pages for a while before it writes them. The folio is dirty
    /// as before, and nothing failed.
    pub(crate) fn write_cancelled(&mut self, page: PageId) {
        let Some(f) = self.mem.swap.folio_of(&self.mem.pages, page) else { return };
        if self.mem.pages.folios.st(f).has(FolioFlags::WRITEBACK) {
            self.mem.pages.folios.clear(f, FolioFlags::WRITEBACK | FolioFlags::RECLAIM);
            let nr = self.mem.pages.folios.st(f).nr_pages() as i64;
            self.mem.writeout(self.world).count_writeback(f, -nr);
            self.mem.writeout(self.world).set_dirty_again(f);
            self.finish_zapping(f);
        }
    }
}
