//! Dirty file pages and the flusher that writes them, oldest first.
//!
//! Reclaim on behalf of a task never writes file pages itself (what becomes of an isolated folio),
//! so someone must. As in Linux that is a flusher of its own, started when more than
//! `dirty_background_ratio` of a memcg's cache is dirty, or by reclaim that met nothing but dirty
//! pages. A driver whose devices answer at once has it run on the spot.

use std::collections::VecDeque;

use crate::folio::state::State;
use crate::ids::{FolioId, MemcgId, PageId};
use crate::lru::lruvec::{ACTIVE_FILE, INACTIVE_FILE};
use crate::stat::Counter;
use crate::world::{Ack, Effect, World};
use crate::writeback::Writeout;

/// Pages that were dirtied, and when, oldest first. A page that was cleaned otherwise is passed
/// over.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirtyQueue {
    pages: VecDeque<(PageId, u64)>,
    /// When the flusher looks for pages that are dirty for too long.
    next_look_ns: u64,
    /// Dirty pages of files, and pages under writeback, of all groups.
    total: u64,
    writeback: u64,
}

impl DirtyQueue {
    /// The totals are those of the groups.
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
        if st.has(State::DIRTY) {
            return;
        }
        self.pages.folios.set(f, State::DIRTY);
        if !st.has(State::ANON) {
            self.note_dirty(f);
        }
    }

    /// After a write that failed: dirty as before. Nobody is woken for it, or a device that fails
    /// would be asked for ever.
    pub(crate) fn set_dirty_again(&mut self, f: FolioId) {
        let st = self.pages.folios.st(f);
        if st.has(State::DIRTY) {
            return;
        }
        self.pages.folios.set(f, State::DIRTY);
        if !st.has(State::ANON) {
            self.queue_dirty(f);
        }
    }

    fn queue_dirty(&mut self, f: FolioId) -> MemcgId {
        let memcg = self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg;
        let nr = self.pages.folios.st(f).nr_pages();
        self.groups.memcgs.get_mut(memcg).dirty += nr;
        self.writeback.queue.total += nr;
        self.writeback.queue.pages.push_back((self.pages.folios.page(f), self.now_ns));
        self.forget_cleaned();
        memcg
    }

    fn note_dirty(&mut self, f: FolioId) {
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

    /// Whether too much of what could be cache is dirty: for the flusher to start, and for writers
    /// to go on. Looked at for the group itself, and for the machine where it has a size.
    fn dirty_levels(&self, memcg: MemcgId) -> (bool, bool) {
        let m = self.groups.memcgs.get(memcg);
        let size = self.pages.sizes_of(memcg);
        // What is not used yet could become cache.
        let room = m.max.saturating_sub(m.usage).min(self.cfg.total_pages);
        let own = self.levels(size[INACTIVE_FILE] + size[ACTIVE_FILE] + room, m.dirty, m.writeback);
        if !self.frames.nodes.is_limited() {
            return own;
        }
        let size = self.pages.total_size();
        let cache = size[INACTIVE_FILE] + size[ACTIVE_FILE] + self.frames.nodes.free_pages();
        let all = self.levels(cache, self.writeback.queue.total, self.writeback.queue.writeback);
        (own.0 || all.0, own.1 || all.1)
    }

    pub(crate) fn levels(&self, cache: u64, dirty: u64, writeback: u64) -> (bool, bool) {
        let background = dirty * 100 > cache * self.cfg.dirty.background_ratio;
        (background, (dirty + writeback) * 100 > cache * self.cfg.dirty.ratio)
    }

    /// A write ended: writers may go on once the group is below its limit.
    pub(crate) fn note_cleaned(&mut self, memcg: MemcgId) {
        if self.frames.is_dirtier_waiting() && !self.dirty_levels(memcg).1 {
            self.frames.relieve_dirtiers(self.world);
        }
    }

    /// Bounds the queue: pages that reclaim cleaned stay in it until they are met.
    fn forget_cleaned(&mut self) {
        let dirty = self.writeback.queue.total;
        if self.writeback.queue.pages.len() as u64 > 2 * dirty + 1024 {
            let folios = &self.pages.folios;
            self.writeback
                .queue
                .pages
                .retain(|&(p, _)| folios.slot(p).folio().is_some_and(|f| folios.st(f).has(State::DIRTY)));
        }
    }

    pub(crate) fn clear_dirty(&mut self, f: FolioId) {
        let st = self.pages.folios.st(f);
        let (was, file, nr) = (st.has(State::DIRTY), !st.has(State::ANON), st.nr_pages());
        self.pages.folios.clear(f, State::DIRTY);
        if was && file {
            debug_assert!(self.writeback.queue.total >= nr, "more is clean than was dirty");
            self.groups.memcgs.get_mut(self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg).dirty -= nr;
            self.writeback.queue.total -= nr;
        }
    }

    pub(crate) fn count_writeback(&mut self, f: FolioId, nr: i64) {
        let m = self.groups.memcgs.get_mut(self.pages.lruvecs[self.pages.folios.lruvec(f).index()].memcg);
        m.writeback = m.writeback.checked_add_signed(nr).expect("never fewer than none under writeback");
        self.writeback.queue.writeback =
            self.writeback.queue.writeback.checked_add_signed(nr).expect("nor of all groups");
    }

    /// Reclaim met nothing but dirty pages: all are to be written.
    pub(crate) fn wake_flusher(&mut self) {
        self.writeback.flush_all = true;
        if self.world.effect(Effect::WakeFlusher) == Ack::Done {
            self.flush();
        }
    }

    /// Starts to write the page of a file now, if it is dirty and is not being written: what
    /// `msync` does with each.
    pub(crate) fn write_page(&mut self, page: PageId) {
        let Some(f) = self.pages.folios.slot(page).folio() else { return };
        let st = self.pages.folios.st(f);
        if st.has(State::DIRTY) && !st.has(State::WRITEBACK | State::ANON | State::MIGRATING) {
            self.start_write(f, true);
        }
    }

    /// Writes dirty file pages, oldest first, as far as the flusher was asked to.
    pub(crate) fn flush(&mut self) {
        if std::mem::replace(&mut self.writeback.flushing, true) {
            return;
        }
        self.writeback.flush_due = false;
        let all = std::mem::take(&mut self.writeback.flush_all);
        // Half of what waits, so that it does not start for every page. A page whose write fails
        // waits for the next time.
        let mut left =
            if all { self.writeback.queue.pages.len() } else { self.writeback.queue.pages.len().div_ceil(2) };
        while left > 0 {
            left -= 1;
            self.flush_oldest();
        }
        self.writeback.flushing = false;
    }

    /// Writes file pages that are dirty for longer than `dirty_expire_ns`, if the last look for
    /// them was `dirty_writeback_ns` ago. A driver with a flusher that runs by itself calls this
    /// now and then.
    pub(crate) fn flush_expired(&mut self) {
        if self.now_ns < self.writeback.queue.next_look_ns || std::mem::replace(&mut self.writeback.flushing, true) {
            return;
        }
        self.writeback.queue.next_look_ns = self.now_ns + self.cfg.dirty.writeback_ns;
        // What cannot be written now goes to the end of the queue, and is not met again.
        let mut left = self.writeback.queue.pages.len();
        let (now_ns, expire_ns) = (self.now_ns, self.cfg.dirty.expire_ns);
        let is_old = |since_ns: u64| since_ns + expire_ns <= now_ns;
        while left > 0 && self.writeback.queue.pages.front().is_some_and(|&(_, since_ns)| is_old(since_ns)) {
            left -= 1;
            self.flush_oldest();
        }
        self.writeback.flushing = false;
    }

    fn flush_oldest(&mut self) {
        let Some((page, _)) = self.writeback.queue.pages.pop_front() else { return };
        let Some(f) = self.pages.folios.slot(page).folio() else { return };
        let st = self.pages.folios.st(f);
        if !st.has(State::DIRTY) || st.has(State::ANON) {
            return;
        }
        // It was dirtied again while it is written or moved.
        match st.has(State::MIGRATING | State::WRITEBACK) {
            true => self.writeback.queue.pages.push_back((page, self.now_ns)),
            false => self.start_write(f, true),
        }
    }
}
