//! Dirty file pages and the flusher that writes them, file by file.
//!
//! Reclaim on behalf of a task never writes file pages itself (what becomes of an isolated folio),
//! so someone must. As in Linux that is a flusher of its own, started when more than
//! `dirty_background_ratio` of a memcg's cache is dirty, or by reclaim that met nothing but dirty
//! pages. A driver whose devices answer at once has it run on the spot.

use crate::config::dirty::DirtyConfig;
use crate::folio::flags::FolioFlags;
use crate::ids::{FolioId, MappingId, MemcgId, PageId};
use crate::lru::lru_list::{ACTIVE_FILE, INACTIVE_FILE};
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};
use crate::writeback::Writeout;
use crate::writeback::expired::ExpiredFiles;
use crate::writeback::files::DirtyFiles;

/// Dirty pages, by file and in all.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirtyPages {
    pub(crate) files: DirtyFiles,
    pub(crate) expired: ExpiredFiles,
    /// Dirty pages of files, and pages under writeback, of all groups.
    total: u64,
    pub(crate) writeback: u64,
}

/// `MIN_WRITEBACK_PAGES`: pages of a file are written in multiples of 4 MiB at a time.
const MIN_WRITEBACK_PAGES: u64 = 1024;
/// Pages of half a second at the bandwidth that Linux assumes of an unmeasured device (100 MiB/s).
const HALF_SECOND_PAGES: u64 = 12_800;

/// `percent` of `pages`, rounded to the 4096ths in which Linux reckons.
fn share(pages: u64, percent: u64) -> u64 {
    (u128::from(pages) * u128::from(percent * 4096 / 100) / 4096) as u64
}

impl DirtyPages {
    /// Checks that the totals are the sums over the groups, `dirty` and `writeback`.
    pub(crate) fn validate(&self, dirty: u64, writeback: u64) -> Result<(), String> {
        match (self.total, self.writeback) == (dirty, writeback) {
            true => Ok(()),
            false => {
                Err(format!("{} dirty, {} writeback; groups have {dirty}, {writeback}", self.total, self.writeback))
            }
        }
    }
}

impl<W: World> Writeout<'_, W> {
    /// Marks a folio dirty; a file folio joins the flusher's queue.
    #[inline]
    pub(crate) fn set_dirty(&mut self, f: FolioId) {
        let st = self.pages.folios.st(f);
        if st.has(FolioFlags::DIRTY) {
            return;
        }
        self.pages.folios.set(f, FolioFlags::DIRTY);
        if !st.has(FolioFlags::ANON) {
            self.note_dirty(f);
        }
    }

    /// After a write that failed: dirty as before. Nobody is woken for it, or a device that fails
    /// would be asked for ever.
    pub(crate) fn set_dirty_again(&mut self, f: FolioId) {
        let st = self.pages.folios.st(f);
        if st.has(FolioFlags::DIRTY) {
            return;
        }
        self.pages.folios.set(f, FolioFlags::DIRTY);
        if !st.has(FolioFlags::ANON) {
            self.queue_dirty(f);
        }
    }

    fn queue_dirty(&mut self, f: FolioId) -> MemcgId {
        let memcg = self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg;
        let nr = self.pages.folios.st(f).nr_pages();
        self.groups.memcgs.get_mut(memcg).dirty += nr;
        self.writeback.dirty.total += nr;
        let page = self.pages.folios.page(f);
        self.writeback.dirty.files.add(self.pages.space.mapping_of(page), page, self.now_ns);
        memcg
    }

    fn note_dirty(&mut self, f: FolioId) {
        let range = (self.pages.folios.page(f), self.pages.folios.st(f).nr_pages());
        self.frames.attach_buffers(self.pages, self.now_ns, self.world, range);
        self.pages.count(f, Counter::NrDirtied, self.pages.folios.st(f).nr_pages());
        let memcg = self.queue_dirty(f);
        let (over_background, over_limit) = self.dirty_levels(memcg);
        // Not at once: the write that dirties the page is still to come, and must not be taken for
        // written.
        if over_background && self.world.effect(Effect::WakeFlusher) == Ack::Done {
            self.writeback.flush_due = true;
        }
        if over_limit {
            self.frames.throttle_dirtier(self.world);
        }
    }

    /// Whether more pages are dirty than the background limit (the flusher starts), and than the
    /// limit (writers wait). Counts the group itself with cgroup writeback, and the machine if its
    /// size is known; the root has then only the machine's limits.
    fn dirty_levels(&self, memcg: MemcgId) -> (bool, bool) {
        let m = self.groups.memcgs.get(memcg);
        let machine = self.dirtyable_of_machine();
        let has_own = self.cfg.dirty.cgroup_writeback && (memcg != MemcgId::ROOT || machine.is_none());
        let own = match has_own {
            true => self.levels(self.dirtyable_of(memcg, machine), m.dirty, m.writeback),
            false => (false, false),
        };
        let Some(dirtyable) = machine else { return own };
        let all = self.levels(dirtyable, self.writeback.dirty.total, self.writeback.dirty.writeback);
        (own.0 || all.0, own.1 || all.1)
    }

    /// Pages of a group that may become dirty file pages: its cache, and the pages by which it may
    /// grow below all limits that hold for it, but no more than other groups leave clean.
    fn dirtyable_of(&self, memcg: MemcgId, machine: Option<u64>) -> u64 {
        let size = self.pages.lru_sizes(memcg);
        let cache = size[INACTIVE_FILE] + size[ACTIVE_FILE];
        let limits = self.groups.memcgs.chain(memcg).map(|id| self.groups.memcgs.get(id));
        let headroom = limits.map(|m| m.max.min(m.high).saturating_sub(m.usage)).min().unwrap_or(u64::MAX);
        let m = self.groups.memcgs.get(memcg);
        let clean_elsewhere = machine.map_or(self.cfg.total_pages, |dirtyable| {
            let unclean = self.writeback.dirty.total + self.writeback.dirty.writeback;
            dirtyable.saturating_sub(unclean).saturating_sub(cache.saturating_sub(m.dirty + m.writeback))
        });
        cache + headroom.min(clean_elsewhere)
    }

    /// Pages of the machine that may become dirty file pages, if its size is known: its cache, and
    /// free pages beyond `totalreserve_pages`.
    fn dirtyable_of_machine(&self) -> Option<u64> {
        let size = self.pages.total_size();
        let nodes = &self.frames.nodes;
        nodes.is_limited().then(|| {
            size[INACTIVE_FILE] + size[ACTIVE_FILE] + nodes.free_pages().saturating_sub(nodes.totalreserve_pages())
        })
    }

    pub(crate) fn levels(&self, dirtyable: u64, dirty: u64, writeback: u64) -> (bool, bool) {
        let DirtyConfig { background_ratio, ratio, .. } = self.cfg.dirty;
        (dirty > share(dirtyable, background_ratio), dirty + writeback > share(dirtyable, ratio))
    }

    /// A write ended: writers may go on once the group is below its limit.
    pub(crate) fn note_cleaned(&mut self, memcg: MemcgId) {
        if self.frames.is_dirtier_waiting() && !self.dirty_levels(memcg).1 {
            self.frames.relieve_dirtiers(self.world);
        }
    }

    pub(crate) fn clear_dirty(&mut self, f: FolioId) {
        let st = self.pages.folios.st(f);
        let (was, file, nr) = (st.has(FolioFlags::DIRTY), !st.has(FolioFlags::ANON), st.nr_pages());
        self.pages.folios.clear(f, FolioFlags::DIRTY);
        if was && file {
            debug_assert!(self.writeback.dirty.total >= nr, "more is clean than was dirty");
            self.groups.memcgs.get_mut(self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg).dirty -= nr;
            self.writeback.dirty.total -= nr;
            let page = self.pages.folios.page(f);
            self.writeback.dirty.files.remove(self.pages.space.mapping_of(page), page);
        }
    }

    pub(crate) fn count_writeback(&mut self, f: FolioId, nr: i64) {
        let m = self.groups.memcgs.get_mut(self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg);
        m.writeback = m.writeback.checked_add_signed(nr).expect("never fewer than none under writeback");
        self.writeback.dirty.writeback =
            self.writeback.dirty.writeback.checked_add_signed(nr).expect("nor of all groups");
    }

    /// Reclaim met nothing but dirty pages: all are to be written.
    pub(crate) fn wake_flusher(&mut self) {
        self.writeback.flush_all = true;
        if self.world.effect(Effect::WakeFlusher) == Ack::Done {
            self.flush();
        }
    }

    /// Starts to write a file page now, if it is dirty and not being written, as `msync` does with
    /// each page.
    pub(crate) fn write_page(&mut self, page: PageId) {
        let Some(f) = self.pages.folios.slot(page).folio() else { return };
        let st = self.pages.folios.st(f);
        if st.has(FolioFlags::DIRTY) && !st.has(FolioFlags::WRITEBACK | FolioFlags::ANON | FolioFlags::MIGRATING) {
            self.start_write(f, true);
        }
    }

    /// Starts to write all dirty pages of a file now: `fsync`.
    pub(crate) fn fsync(&mut self, file: MappingId) {
        if !std::mem::replace(&mut self.writeback.flushing, true) {
            self.write_file(file, u64::MAX);
            self.writeback.flushing = false;
        }
    }

    /// Writes dirty file pages, one file after the other: while there are too many, or all if that
    /// was asked.
    pub(crate) fn flush(&mut self) {
        if std::mem::replace(&mut self.writeback.flushing, true) {
            return;
        }
        self.writeback.flush_due = false;
        let all = std::mem::take(&mut self.writeback.flush_all);
        // Writes each page at most once: a page whose write fails waits for the next time.
        let mut left = self.writeback.dirty.files.nr_dirty();
        let mut spared = 0;
        while left > 0 && spared < self.writeback.dirty.files.nr_files() {
            let Some(file) = self.writeback.dirty.files.first() else { break };
            let chunk = match all {
                true => left,
                false => self.chunk_over_background(file).min(left),
            };
            spared = if chunk == 0 { spared + 1 } else { 0 };
            left -= self.write_file(file, chunk);
            self.writeback.dirty.files.rotate();
        }
        self.writeback.flushing = false;
    }

    /// Pages of a file that are written at a time; 0 if its group and the machine have no more
    /// dirty pages than the background limit.
    fn chunk_over_background(&mut self, file: MappingId) -> u64 {
        let memcg = self.pages.space.mappings[file.index()].memcg;
        if self.dirty_levels(memcg).0 { self.writeback_chunk(memcg) } else { 0 }
    }

    /// Pages of a file that are written before the turn of the next (`writeback_chunk_size`): half
    /// a second's, or an eighth of the dirty limit if that is less, in multiples of 4 MiB.
    pub(crate) fn writeback_chunk(&self, memcg: MemcgId) -> u64 {
        let machine = self.dirtyable_of_machine();
        let own = self.cfg.dirty.cgroup_writeback.then(|| self.dirtyable_of(memcg, machine));
        let limit = share(machine.unwrap_or(u64::MAX).min(own.unwrap_or(u64::MAX)), self.cfg.dirty.ratio);
        let least = self.cfg.lru.part(MIN_WRITEBACK_PAGES);
        let pages = self.cfg.lru.part(HALF_SECOND_PAGES).min(limit / 8) + least;
        pages - pages % least
    }

    /// Writes up to `most` dirty pages of a file by index, from where the flusher left it. Returns
    /// how many it was to look at.
    pub(crate) fn write_file(&mut self, file: MappingId, most: u64) -> u64 {
        let most = most.min(self.writeback.dirty.files.dirty_of(file));
        for _ in 0..most {
            if self.write_next(file).is_none() {
                break;
            }
        }
        most
    }

    /// Writes the next dirty page of a file; none: there is none.
    pub(crate) fn write_next(&mut self, file: MappingId) -> Option<PageId> {
        let page = self.writeback.dirty.files.next_of(file, self.pages.mapping_pages(file))?;
        let f = self.pages.folios.slot(page).folio().expect("what is dirty is in memory");
        // A folio that became dirty again while it is written or moved waits for the next time.
        if !self.pages.folios.st(f).has(FolioFlags::MIGRATING | FolioFlags::WRITEBACK) {
            self.start_write(f, true);
        }
        Some(page)
    }
}
