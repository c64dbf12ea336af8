//! Writeback by age: files that have had dirty pages for longer than `dirty_expire_ns` are looked
//! for every `dirty_writeback_ns`, and written whole.
//!
//! A driver whose flusher is a thread has it written step by step: a chunk of a file, then one of
//! the next, and a wait where the device has all the requests that it takes.

use std::collections::VecDeque;

use crate::ids::MappingId;
use crate::world::World;
use crate::writeback::Writeout;

/// State of the flusher after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushStep {
    /// There is more to write.
    Again,
    /// There is more to write, when the device takes requests again
    /// ([`World::is_file_queue_full`]).
    Wait,
    /// Nothing is left to write.
    Sleep,
}

/// A file that is written for its age.
#[derive(Clone, Copy, Debug)]
struct ExpiredFile {
    file: MappingId,
    /// Folios still to write of those that were dirty when the file was found. Folios that become
    /// dirty later are for the next look.
    left: u64,
    /// Folios still to write before the turn of the next file.
    slice: u64,
}

/// Files that the last look found, and when the next one is.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpiredFiles {
    next_look_ns: u64,
    queue: VecDeque<ExpiredFile>,
}

impl<W: World> Writeout<'_, W> {
    /// Writes all that is old, at once.
    pub(crate) fn flush_expired(&mut self) {
        if std::mem::replace(&mut self.writeback.flushing, true) {
            return;
        }
        self.look_for_expired();
        while let Some(old) = self.writeback.dirty.expired.queue.pop_front() {
            self.write_file(old.file, u64::MAX);
            self.writeback.dirty.files.set_since(old.file, self.now_ns);
        }
        self.writeback.flushing = false;
    }

    /// Writes a chunk of a file that is old, or as much of it as the device takes.
    pub(crate) fn flush_expired_step(&mut self) -> FlushStep {
        if std::mem::replace(&mut self.writeback.flushing, true) {
            return FlushStep::Sleep;
        }
        self.look_for_expired();
        let Some(mut old) = self.writeback.dirty.expired.queue.pop_front() else {
            self.writeback.flushing = false;
            return FlushStep::Sleep;
        };
        if old.slice == 0 {
            old.slice = self.writeback_chunk(self.pages.space.mappings[old.file.index()].memcg);
        }
        let is_full = self.write_slice(&mut old);
        if self.writeback.dirty.files.dirty_of(old.file) == 0 {
            old.left = 0;
        }
        let queue = &mut self.writeback.dirty.expired.queue;
        match (old.left, old.slice) {
            (0, _) => self.writeback.dirty.files.set_since(old.file, self.now_ns),
            (_, 0) => queue.push_back(old),
            _ => queue.push_front(old),
        }
        self.writeback.flushing = false;
        match (self.writeback.dirty.expired.queue.is_empty(), is_full) {
            (true, _) => FlushStep::Sleep,
            (false, true) => FlushStep::Wait,
            (false, false) => FlushStep::Again,
        }
    }

    /// Writes folios of a file until its slice ends, or the device takes no more: that is true
    /// then.
    fn write_slice(&mut self, old: &mut ExpiredFile) -> bool {
        while old.left > 0 && old.slice > 0 {
            let Some(page) = self.write_next(old.file) else {
                old.left = 0;
                break;
            };
            (old.left, old.slice) = (old.left - 1, old.slice - 1);
            if self.world.is_file_queue_full(page) {
                return true;
            }
        }
        false
    }

    /// Looks for what is old, if it is time and all that was found before is written.
    fn look_for_expired(&mut self) {
        let dirty = &mut self.writeback.dirty;
        if self.now_ns < dirty.expired.next_look_ns || !dirty.expired.queue.is_empty() {
            return;
        }
        dirty.expired.next_look_ns = self.now_ns + self.cfg.dirty.writeback_ns;
        let Some(then_ns) = self.now_ns.checked_sub(self.cfg.dirty.expire_ns) else { return };
        let old = dirty.files.older_than(then_ns).into_iter();
        dirty.expired.queue = old.map(|f| ExpiredFile { file: f, left: dirty.files.dirty_of(f), slice: 0 }).collect();
    }
}
