//! What the engine's orders mean for anonymous memory: page states, and what they are about.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use refault_mm::{Ack, Effect, Engine, MemcgId, PageId, SwapSlot, ThrottleReason, World};

use super::effects;
use super::folio_reads::Folios;
use super::memory_high::MemoryHigh;
use super::operations::Operations;
use super::places::Places;
use super::state::State;
use super::stats::Counts;
use super::written_cache::WrittenCache;
use crate::store::{PageBuf, SwapArea};

/// The pages of a driver. Everything here is changed under one lock.
pub(crate) struct Memory<O> {
    pub(crate) ops: Arc<O>,
    pub(crate) area: Arc<SwapArea>,
    pub(super) state: Vec<State>,
    young: Vec<bool>,
    /// The kernel tells which pages were written since the last walk.
    pub(crate) tells_writes: bool,
    written_cache: WrittenCache,
    /// The swap slot that the engine gave the page.
    pub(super) slot: Vec<u32>,
    /// The staging place of the page.
    pub(super) place: Vec<u32>,
    pub(crate) places: Places,
    /// Pages to be moved out.
    pub(crate) leaving: VecDeque<u32>,
    /// A page of each folio in staging places, the first to be written in front. Those that came
    /// back or went on are still named; their state or place tells.
    pub(super) staged: VecDeque<(u32, u32)>,
    pub(crate) staged_pages: u64,
    /// Staging places whose content is of no use any more.
    pub(crate) discards: Vec<u32>,
    /// Slots that the engine freed: kept until what was in them is in memory.
    pub(super) freed: Vec<u32>,
    /// Pages to be read, with their slots.
    pub(crate) reads: Vec<(u32, u32)>,
    /// The content that was read for the page whose access goes on.
    pub(super) arrived: Option<Box<PageBuf>>,
    /// That page, if it was put in place before the engine was told.
    pub(super) placed: Option<u32>,
    /// Buffers to read into.
    pub(super) spare: Vec<Box<PageBuf>>,
    pub(crate) folios: Folios,
    /// The access is a write: a page of zeros of its own is better than the shared one.
    pub(super) write: bool,
    pub(crate) kswapd_awake: bool,
    pub(crate) high: MemoryHigh<u32>,
    /// A limit is being lowered: that there is nothing to reclaim is no verdict.
    pub(crate) lowering: bool,
    /// The owner gives pages up.
    pub(super) dropping: bool,
    pub(crate) counts: Counts,
}

/// Bytes of tables for each page.
pub(crate) const BYTES_PER_PAGE: usize = 2 + 2 * size_of::<u32>();

impl<O: Operations> Memory<O> {
    pub(crate) fn new(ops: Arc<O>, area: Arc<SwapArea>, pages: usize, places: Places) -> Memory<O> {
        Memory {
            ops,
            area,
            state: vec![State::Empty; pages],
            young: vec![false; pages],
            tells_writes: false,
            written_cache: WrittenCache::default(),
            slot: vec![0; pages],
            place: vec![0; pages],
            places,
            leaving: VecDeque::new(),
            staged: VecDeque::new(),
            staged_pages: 0,
            discards: Vec::new(),
            freed: Vec::new(),
            reads: Vec::new(),
            arrived: None,
            placed: None,
            spare: Vec::new(),
            folios: Folios::default(),
            write: false,
            kswapd_awake: false,
            high: MemoryHigh::default(),
            lowering: false,
            dropping: false,
            counts: Counts::default(),
        }
    }

    /// Pages that there are.
    pub(crate) fn len(&self) -> usize {
        self.state.len()
    }

    pub(crate) fn state(&self, page: u32) -> State {
        self.state[page as usize]
    }

    /// A page is in another state from now on.
    pub(super) fn set_state(&mut self, page: u32, to: State) {
        let from = std::mem::replace(&mut self.state[page as usize], to);
        debug_assert!(from.may_become(to), "page {page} was {from:?} and is {to:?}");
    }

    /// A buffer to read into.
    pub(crate) fn buffer(&mut self) -> Box<PageBuf> {
        self.spare.pop().unwrap_or_default()
    }

    /// Bytes of its tables.
    pub(super) fn table_bytes(&self) -> usize {
        self.state.capacity() * BYTES_PER_PAGE
            + self.staged.capacity() * 8
            + self.leaving.capacity() * size_of::<u32>()
            + self.folios.bytes()
    }

    pub(super) fn set_staged(&mut self, page: u32, place: u32) {
        self.place[page as usize] = place;
        self.set_state(page, State::Staged);
        self.staged_pages += 1;
    }

    /// The folio of this page is in staging places: it is to be written.
    pub(super) fn queue_staged(&mut self, page: u32) {
        self.staged.push_back((page, self.place[page as usize]));
    }

    /// The page is in a staging place no more.
    pub(super) fn leave_place(&mut self, page: u32, to: State) {
        debug_assert!(self.state(page).is_in_place() && !to.is_in_place());
        self.staged_pages -= u64::from(self.state(page) == State::Staged);
        self.set_state(page, to);
        self.discards.push(self.place[page as usize]);
    }

    /// Pages that were written since the last time are young. What cannot be had is not known, as
    /// before.
    pub(crate) fn collect_writes(&mut self, pages: Range<u32>) {
        if !self.tells_writes {
            return;
        }
        let mut found = Vec::new();
        self.ops.take_written(pages, &mut found);
        for range in found {
            self.counts.seen_written += range.len() as u64;
            self.young[range.start as usize..range.end as usize].fill(true);
        }
    }

    /// Whether a page was written since the last walk.
    fn was_written(&mut self, page: u32) -> bool {
        let known = self.written_cache.answer(page);
        let ask = || self.tells_writes && self.ops.was_written(page).unwrap_or(false);
        known.unwrap_or_else(ask)
    }

    /// Pages that the next steps of reclaim may ask [`Memory::was_written`] about, in order.
    pub(super) fn pages_to_ask_about(&mut self, engine: &Engine, group: MemcgId, now_ns: u64) -> Vec<u32> {
        let mut next = Vec::new();
        let wanted = self.written_cache.wanted(now_ns);
        if wanted > 0 && self.tells_writes && self.counts.walks > 0 {
            engine.peek_reclaim_candidates(group, wanted, &mut next);
        }
        let is_asked = |&p: &u32| self.state(p) == State::Mapped && !self.young[p as usize];
        let mut pages: Vec<u32> = next.iter().map(|p| p.0).filter(is_asked).collect();
        pages.sort_unstable();
        pages
    }

    /// What came of that: whether each was written.
    pub(super) fn fill_written_cache(&mut self, answers: Vec<(u32, bool)>, now_ns: u64) {
        self.written_cache.set(answers, now_ns);
    }

    /// Nobody needs this memory any more.
    fn release(&mut self, page: u32) {
        match self.state(page) {
            State::Written => self.leave_place(page, State::Stored),
            State::Staged => self.leave_place(page, State::Empty),
            // Its owner gave it up, and the whole range is discarded in one go.
            State::Mapped if self.dropping => self.set_state(page, State::Empty),
            // The engine frees a page that is mapped only if its content is of no use.
            State::Mapped if self.ops.discard(page, 1).is_ok() => self.set_state(page, State::Empty),
            State::Mapped => self.counts.inconsistent += 1,
            State::Empty | State::Stored | State::Poisoned => {}
            State::Leaving | State::Writing | State::Reading => self.counts.inconsistent += 1,
        }
    }
}

impl<O: Operations> World for Memory<O> {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            Effect::SwapIn { page, order, slot } => return self.swap_in(page.0, order, slot.0),
            Effect::SwapOut { page, order, slot } => return self.swap_out(page.0, order, slot.0),
            Effect::Map { page, young, .. } => {
                self.folios.to_map.push(page.0);
                self.young[page.index()] |= young;
            }
            Effect::Free { page, order } => (page.0..page.0 + (1 << order)).for_each(|p| self.release(p)),
            Effect::FreeSlot { slot } => self.freed.push(slot.0),
            Effect::WakeKswapd { .. } => {
                self.kswapd_awake = true;
                return Ack::Pending;
            }
            Effect::Throttle { reason: ThrottleReason::High, max_wait_ns } => {
                self.high.sleep_ns = max_wait_ns;
                return Ack::Pending;
            }
            // The limit that is tried may be impossible.
            Effect::Oom { .. } if self.lowering => {}
            Effect::Oom { .. } => self.counts.oom += 1,
            other => return effects::answer(&other),
        }
        Ack::Done
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.young[page.index()])
    }

    fn before_walk(&mut self) {
        self.counts.walks += 1;
        self.written_cache.forget();
        self.collect_writes(0..self.state.len() as u32);
    }

    /// Asked of what may leave, so it should be known to the moment. Under a policy that never
    /// walks, pages are never protected, and all of them are as if written.
    fn test_and_clear_young_count(&mut self, page: PageId) -> u32 {
        let young = self.test_and_clear_young(page);
        u32::from(young || self.counts.walks > 0 && self.was_written(page.0))
    }

    fn keeps_swap_copy(&self, slot: SwapSlot) -> bool {
        self.area.keeps_copy(slot.0)
    }

    fn is_write_queue_full(&self) -> bool {
        self.leaving.len() >= self.high.most_leaving
    }

    /// The page tables know, but asking them costs more than writing the page once more.
    fn test_and_clear_dirty(&mut self, _: PageId) -> bool {
        true
    }
}
