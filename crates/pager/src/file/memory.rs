//! Effects of the engine's orders on the pages of a file.
//!
//! A page is in place, in the file, or in both. Protection tells whether both are the same: a page
//! that was read is protected from writes, so the first write is a fault, and dirties the page. To
//! be written back it is protected again, and a thread that would write to it waits.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use refault_mm::{Ack, Effect, PageId, World};

use super::stats::FileCounts;
use crate::core::{FillMode, Operations, Source};
use crate::store::PageBuf;

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
    /// It could not be had; the thread that touches it gets a signal.
    Lost,
}

impl State {
    /// Whether its content is in place.
    pub(super) fn is_present(self) -> bool {
        matches!(self, State::Clean | State::Dirty | State::Writing)
    }

    /// Whether a state may come after this one: a changed page never goes before it was written.
    fn may_become(self, to: State) -> bool {
        match self {
            State::Absent => matches!(to, State::Reading | State::Lost),
            State::Reading => matches!(to, State::Clean | State::Dirty | State::Absent | State::Lost),
            State::Clean => matches!(to, State::Dirty | State::Absent),
            State::Dirty => matches!(to, State::Writing | State::Dirty),
            State::Writing => matches!(to, State::Clean | State::Dirty),
            State::Lost => to == State::Absent || to == State::Lost,
        }
    }
}

/// The memory of a mapped file. Everything here is changed under one lock.
pub(super) struct Memory<O> {
    pub(super) ops: Arc<O>,
    state: Vec<State>,
    young: Vec<bool>,
    /// Pages that the engine was told to be dirty by their unmapping.
    was_dirty: bool,
    /// Pages in state Dirty.
    pub(super) dirty: BTreeSet<u32>,
    /// Pages in state Writing whose write has not begun, in the order in which they are to be
    /// written.
    pub(super) writes: VecDeque<u32>,
    /// Pages in state Writing.
    pub(super) writing: BTreeSet<u32>,
    /// Pages that are lost although the engine has them in memory.
    pub(super) unplaced: BTreeSet<u32>,
    /// Pages to be read.
    pub(super) reads: Vec<u32>,
    /// Pages that are of no use in place: dropped together.
    drops: Vec<u32>,
    /// Pages that were read just now, and which of them is for the page whose access goes on.
    pub(super) buffer: Vec<PageBuf>,
    pub(super) arrived: Option<(u32, usize)>,
    /// Buffers to read into, one for each thread that read at the same time.
    pub(super) spare: Vec<Vec<PageBuf>>,
    /// A limit that is tried may be impossible.
    pub(super) lowering: bool,
    pub(super) kswapd_awake: bool,
    pub(super) flusher_due: bool,
    pub(super) counts: FileCounts,
}

/// Bytes of tables for each page of the file.
pub(super) const BYTES_PER_PAGE: usize = 2;

impl<O: Operations> Memory<O> {
    pub(super) fn new(ops: Arc<O>, pages: usize) -> Memory<O> {
        Memory {
            ops,
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

    /// Pages that there are.
    pub(super) fn len(&self) -> usize {
        self.state.len()
    }

    pub(super) fn state(&self, page: u32) -> State {
        self.state[page as usize]
    }

    pub(super) fn states(&self) -> &[State] {
        &self.state
    }

    /// A page is in another state from now on.
    pub(super) fn set_state(&mut self, page: u32, to: State) {
        let from = std::mem::replace(&mut self.state[page as usize], to);
        debug_assert!(from.may_become(to), "page {page} was {from:?} and is {to:?}");
    }

    /// Bytes of its tables. A node of a tree has room for 11 and is half full at least.
    pub(super) fn table_bytes(&self) -> usize {
        let trees = 3 * (self.dirty.len() + self.writing.len() + self.unplaced.len());
        let lists = self.writes.capacity() + self.reads.capacity() + self.drops.capacity() + trees;
        self.state.capacity() * BYTES_PER_PAGE + lists * size_of::<u32>()
    }

    /// A page is dirty from now on, and may be written to.
    fn set_dirty(&mut self, page: u32) {
        self.set_state(page, State::Dirty);
        self.dirty.insert(page);
    }

    /// Puts a page in its place that was read, or lifts its protection.
    fn map(&mut self, page: u32, writable: bool) {
        match self.state(page) {
            State::Reading => {
                let arrived = self.arrived.take_if(|(arrived, _)| *arrived == page);
                let arrived = arrived.and_then(|(_, i)| self.buffer.get(i..=i));
                let Some(content) = arrived else { return self.counts.inconsistent += 1 };
                let mode = FillMode { quiet: false, protected: !writable };
                if self.ops.fill(page, 1, Source::Content(content), mode) == 0 {
                    self.counts.fill_errors += 1;
                } else if writable {
                    self.set_dirty(page);
                } else {
                    self.set_state(page, State::Clean);
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

    /// Protects a page from writes, or lifts that and lets waiting threads go on. Returns false if
    /// it could not be done.
    fn protect(&mut self, page: u32, protect: bool) -> bool {
        let is_done = self.ops.protect(page, protect);
        self.counts.protect_errors += u64::from(!is_done);
        is_done
    }

    /// Starts to write a page: protected first, for a write that nobody learns of would be lost.
    fn write(&mut self, page: u32) -> Ack {
        // A touch that was to write to it never came about: the file has what there is.
        if self.state(page) == State::Lost {
            return Ack::Done;
        }
        if self.state(page) != State::Dirty || !self.protect(page, true) {
            return Ack::Failed;
        }
        self.set_state(page, State::Writing);
        self.dirty.remove(&page);
        self.writing.insert(page);
        self.writes.push_back(page);
        Ack::Pending
    }

    /// A write ended.
    pub(super) fn written(&mut self, page: u32, ok: bool) {
        self.writing.remove(&page);
        if ok {
            self.set_state(page, State::Clean);
        } else {
            // It is protected as it was: the next write to it is a fault, and finds it dirty.
            self.set_dirty(page);
        }
    }

    /// The frame is free.
    fn release(&mut self, page: u32) {
        match self.state(page) {
            State::Clean => {
                self.set_state(page, State::Absent);
                self.drops.push(page);
            }
            State::Absent | State::Lost => {}
            // It was read, and is not mapped yet.
            State::Reading if self.arrived.is_some_and(|(arrived, _)| arrived == page) => {
                self.set_state(page, State::Absent);
            }
            State::Reading => self.counts.inconsistent += 1,
            State::Dirty | State::Writing => self.ops.fatal("a page of a file that was changed is to be dropped"),
        }
    }

    /// Takes pages out of memory that are of no use.
    pub(super) fn settle_drops(&mut self) {
        let mut drops = std::mem::take(&mut self.drops);
        drops.sort_unstable();
        for run in drops.chunk_by(|a, b| a + 1 == *b) {
            if let Err(e) = self.ops.discard(run[0], run.len()) {
                self.ops.fatal(&format!("discarding memory: {e}"));
            }
        }
        drops.clear();
        self.drops = drops;
    }
}

impl<O: Operations> World for Memory<O> {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::Read { order, .. } | Effect::Write { order, .. } if order > 0 => return Ack::Failed,
            Effect::Read { page, .. } => {
                if self.state(page.0) != State::Absent {
                    self.counts.inconsistent += u64::from(self.state(page.0) != State::Lost);
                    return Ack::Failed;
                }
                if !self.drops.is_empty() {
                    self.settle_drops();
                }
                self.set_state(page.0, State::Reading);
                self.reads.push(page.0);
                return Ack::Pending;
            }
            Effect::Write { page, .. } => return self.write(page.0),
            Effect::Map { page, young, writable } => {
                self.map(page.0, writable);
                self.young[page.index()] |= young;
            }
            // It stays in place, so that a touch finds it, until it is dropped. It is asked for its
            // dirty bit next.
            Effect::Unmap { page } => self.was_dirty = self.state(page.0) == State::Dirty,
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
            // A thread that faults waits until it is served anyway.
            Effect::Throttle { .. } | Effect::Unthrottle { .. } => {}
            Effect::Oom { .. } if self.lowering => {}
            Effect::Oom { .. } => self.counts.oom += 1,
            // There is one node and no swap.
            Effect::SwapIn { .. }
            | Effect::SwapOut { .. }
            | Effect::FreeSlot { .. }
            | Effect::Discard { .. }
            | Effect::ZeroFill { .. }
            | Effect::ZswapStore { .. }
            | Effect::ZswapLoad { .. }
            | Effect::ZswapDrop { .. }
            | Effect::WakeZswap
            | Effect::Migrate { .. } => return Ack::Failed,
        }
        Ack::Done
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.young[page.index()])
    }

    fn test_and_clear_dirty(&mut self, page: PageId) -> bool {
        // Asked right after the unmapping, of the same page.
        std::mem::take(&mut self.was_dirty) && self.state(page.0) == State::Dirty
    }
}
