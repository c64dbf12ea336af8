//! What the engine's orders mean for the pages of a file.
//!
//! A page is in place, or in the file, or both. Whether both are the same is known by protection: a page that was read is
//! protected from writes, so the first write is a fault, and dirties it. To write it back it is protected again, and who would write to it waits.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use refault_mm::{Ack, Effect, PageId, World};

use super::stats::FileCounts;
use crate::calls;
use crate::store::PageBuf;
use crate::threads::fatal;
use crate::uffd::{FillMode, PAGE, Uffd};

/// A call that the kernel asks to repeat is repeated so often.
const ATTEMPTS: u32 = 8;

/// Where the content of a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// In the file.
    Absent,
    /// In the file, and on its way from there.
    Reading,
    /// In place and in the file; the first write is a fault.
    Clean,
    /// In place; the file may have something older.
    Dirty,
    /// In place and on its way to the file; who writes to it waits.
    Writing,
    /// It could not be had; whoever touches it gets a signal.
    Lost,
}

/// The memory of a mapped file. Everything here is changed under one lock.
pub(super) struct Memory {
    pub(super) uffd: Arc<Uffd>,
    pub(super) start: usize,
    pub(super) state: Vec<State>,
    young: Vec<bool>,
    /// Pages that the engine was told to be dirty by their unmapping.
    was_dirty: bool,
    /// Pages in state Dirty.
    pub(super) dirty: BTreeSet<u32>,
    /// Pages in state Writing, in the order in which they are to be written; those that are written now are not named.
    pub(super) writes: VecDeque<u32>,
    /// Pages in state Writing.
    pub(super) writing: BTreeSet<u32>,
    /// Pages that are lost although the engine has them in memory.
    pub(super) unplaced: BTreeSet<u32>,
    /// Pages to be read.
    pub(super) reads: Vec<u32>,
    /// Pages that are of no use in place: dropped together.
    drops: Vec<u32>,
    /// What was read just now, and which of it is for the page whose access goes on.
    pub(super) buffer: Vec<PageBuf>,
    pub(super) arrived: Option<usize>,
    /// Buffers to read into, one for each thread that read at the same time.
    pub(super) spare: Vec<Vec<PageBuf>>,
    /// A limit that is tried may be impossible.
    pub(super) lowering: bool,
    pub(super) kswapd_awake: bool,
    pub(super) flusher_due: bool,
    pub(super) counts: FileCounts,
}

impl Memory {
    pub(super) fn new(uffd: Arc<Uffd>, start: usize, pages: usize) -> Memory {
        Memory {
            uffd,
            start,
            state: vec![State::Absent; pages],
            young: vec![false; pages],
            was_dirty: false,
            dirty: BTreeSet::new(),
            writes: VecDeque::new(),
            writing: BTreeSet::new(),
            unplaced: BTreeSet::new(),
            reads: Vec::new(),
            drops: Vec::new(),
            buffer: Vec::new(),
            arrived: None,
            spare: Vec::new(),
            lowering: false,
            kswapd_awake: false,
            flusher_due: false,
            counts: FileCounts::default(),
        }
    }

    pub(super) fn address(&self, page: u32) -> usize {
        self.start + page as usize * PAGE
    }

    /// Bytes of tables for each page of the file.
    pub(super) const BYTES_PER_PAGE: usize = 2;

    /// Bytes of its tables. A node of a tree has room for 11 and is half full at least.
    pub(super) fn table_bytes(&self) -> usize {
        let trees = 3 * (self.dirty.len() + self.writing.len() + self.unplaced.len());
        let lists = self.writes.capacity() + self.reads.capacity() + self.drops.capacity() + trees;
        self.state.capacity() * Self::BYTES_PER_PAGE + lists * size_of::<u32>()
    }

    /// A page is dirty from now on, and may be written to.
    fn set_dirty(&mut self, page: u32) {
        self.state[page as usize] = State::Dirty;
        self.dirty.insert(page);
    }

    /// Puts a page in its place that was read, or lifts its protection.
    fn map(&mut self, page: u32, writable: bool) {
        match self.state[page as usize] {
            State::Reading => {
                let Some(from) = self.arrived.take().and_then(|i| self.buffer.get(i)).map(|b| b.0.as_ptr()) else {
                    return self.counts.inconsistent += 1;
                };
                if !self.fill(page, from, !writable) {
                    self.counts.fill_errors += 1;
                } else if writable {
                    self.set_dirty(page);
                } else {
                    self.state[page as usize] = State::Clean;
                }
            }
            // Dirty and protected: its write failed, or has not begun.
            State::Clean | State::Dirty if writable => match self.protect(page, false) {
                true => self.set_dirty(page),
                false => self.counts.fill_errors += 1,
            },
            State::Clean | State::Dirty | State::Writing | State::Lost => {}
            State::Absent => self.counts.inconsistent += 1,
        }
    }

    /// `from` is a page of the buffer.
    fn fill(&mut self, page: u32, from: *const u8, protected: bool) -> bool {
        let (to, mode) = (self.address(page), FillMode { quiet: false, protected });
        for attempt in 0..ATTEMPTS {
            // SAFETY: the source is a buffer of a page; the destination a page of the mapping, which is watched for writes, too.
            let done = unsafe { self.uffd.copy_in_mode(to, from, PAGE, mode) };
            match done.errno {
                0 if done.bytes == PAGE => return true,
                libc::EEXIST => fatal("a page that is not in memory is in the page tables"),
                0 | libc::EAGAIN => {}
                libc::ENOMEM => std::thread::sleep(std::time::Duration::from_millis(1 << attempt)),
                _ => break,
            }
        }
        false
    }

    /// Protects a page from writes, or lifts that and lets those go on who wait. False: it could not be done.
    fn protect(&mut self, page: u32, protect: bool) -> bool {
        for attempt in 0..ATTEMPTS {
            // SAFETY: the page is of the mapping, which is watched for writes and served.
            match unsafe { self.uffd.write_protect(self.address(page), PAGE, protect) } {
                Ok(()) => return true,
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(e) if e.raw_os_error() == Some(libc::ENOMEM) => {
                    std::thread::sleep(std::time::Duration::from_millis(1 << attempt));
                }
                Err(_) => break,
            }
        }
        self.counts.protect_errors += 1;
        false
    }

    /// Starts to write a page: protected first, for a write that nobody learns of would be lost.
    fn write(&mut self, page: u32) -> Ack {
        // A touch that was to write to it never came about: the file has what there is.
        if self.state[page as usize] == State::Lost {
            return Ack::Done;
        }
        if self.state[page as usize] != State::Dirty || !self.protect(page, true) {
            return Ack::Failed;
        }
        self.state[page as usize] = State::Writing;
        self.dirty.remove(&page);
        self.writing.insert(page);
        self.writes.push_back(page);
        Ack::Pending
    }

    /// A write ended.
    pub(super) fn written(&mut self, page: u32, ok: bool) {
        self.writing.remove(&page);
        if ok {
            self.state[page as usize] = State::Clean;
        } else {
            // It is protected as it was: the next write to it is a fault, and finds it dirty.
            self.set_dirty(page);
        }
    }

    /// The frame is free.
    fn release(&mut self, page: u32) {
        match self.state[page as usize] {
            State::Clean => {
                self.state[page as usize] = State::Absent;
                self.drops.push(page);
            }
            State::Absent | State::Lost => {}
            State::Reading => self.counts.inconsistent += 1,
            State::Dirty | State::Writing => fatal("a page of a file that was changed is to be dropped"),
        }
    }

    /// Takes pages out of memory that are of no use.
    pub(super) fn settle_drops(&mut self) {
        let mut drops = std::mem::take(&mut self.drops);
        drops.sort_unstable();
        for run in drops.chunk_by(|a, b| a + 1 == *b) {
            let (start, len) = (self.address(run[0]), run.len() * PAGE);
            // SAFETY: the pages are of the mapping, protected, and the file has what they hold: nothing is lost, and whoever touches
            // them faults and waits for the lock under which this is done.
            if let Err(e) = unsafe { calls::discard(start, len) } {
                fatal(&format!("discarding memory: {e}"));
            }
        }
        drops.clear();
        self.drops = drops;
    }
}

impl World for Memory {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::Read { order, .. } | Effect::Write { order, .. } if order > 0 => return Ack::Failed,
            Effect::Read { page, .. } => {
                if self.state[page.index()] != State::Absent {
                    self.counts.inconsistent += u64::from(self.state[page.index()] != State::Lost);
                    return Ack::Failed;
                }
                if !self.drops.is_empty() {
                    self.settle_drops();
                }
                self.state[page.index()] = State::Reading;
                self.reads.push(page.0);
                return Ack::Pending;
            }
            Effect::Write { page, .. } => return self.write(page.0),
            Effect::Map { page, young, writable } => {
                self.map(page.0, writable);
                self.young[page.index()] |= young;
            }
            // It stays in place, so that a touch finds it, until it is dropped. It is asked for its dirty bit next.
            Effect::Unmap { page } => self.was_dirty = self.state[page.index()] == State::Dirty,
            // The write that follows does it, and does not happen without it.
            Effect::WriteProtect { .. } => {}
            Effect::Free { page, order } => (page.0..page.0 + (1 << order)).for_each(|p| self.release(p)),
            Effect::WakeKswapd { .. } => {
                self.kswapd_awake = true;
                return Ack::Pending;
            }
            Effect::WakeFlusher => {
                self.flusher_due = true;
                return Ack::Pending;
            }
            // Who faults waits until it is served anyway.
            Effect::Throttle { .. } | Effect::Unthrottle { .. } => {}
            Effect::Oom { .. } if self.lowering => {}
            Effect::Oom { .. } => self.counts.oom += 1,
            // There is one node and no swap.
            _ => return Ack::Failed,
        }
        Ack::Done
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.young[page.index()])
    }

    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        // Asked right after the unmapping, of the same page.
        std::mem::take(&mut self.was_dirty) && self.state[page.index()] == State::Dirty
    }
}
