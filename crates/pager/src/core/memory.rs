//! Effects of the engine's orders on anonymous memory: page states, and what they are about.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use refault_mm::{Ack, Effect, Engine, MemcgId, PageId, SwapSlot, ThrottleReason, World};

use super::effects;
use super::folio_reads::Folios;
use super::memory_high::MemoryHigh;
use super::operations::Operations;
use super::pages::DriverPages;
use super::places::Places;
use super::state::State;
use super::written_cache::WrittenCache;
use crate::store::SwapArea;

/// The pages of a driver, and the calls on its memory. Everything here is changed under one lock.
pub(crate) struct Memory<O> {
    pages: DriverPages,
    pub(crate) ops: Arc<O>,
    /// The kernel tells which pages were written since the last walk.
    pub(crate) tells_writes: bool,
    written_cache: WrittenCache,
    /// The page whose content arrived, if it was put in place before the engine was told.
    pub(super) placed: Option<u32>,
    pub(crate) folios: Folios,
    pub(crate) high: MemoryHigh<u32>,
    /// A limit is being lowered: that there is nothing to reclaim is no verdict.
    pub(crate) lowering: bool,
}

impl<O> Deref for Memory<O> {
    type Target = DriverPages;

    fn deref(&self) -> &DriverPages {
        &self.pages
    }
}

impl<O> DerefMut for Memory<O> {
    fn deref_mut(&mut self) -> &mut DriverPages {
        &mut self.pages
    }
}

impl<O: Operations> Memory<O> {
    pub(crate) fn new(ops: Arc<O>, area: Arc<SwapArea>, pages: usize, places: Places) -> Memory<O> {
        Memory {
            pages: DriverPages::new(area, pages, places, ()),
            ops,
            tells_writes: false,
            written_cache: WrittenCache::default(),
            placed: None,
            folios: Folios::default(),
            high: MemoryHigh::default(),
            lowering: false,
        }
    }

    /// Bytes of its tables.
    pub(super) fn table_bytes(&self) -> usize {
        self.pages.table_bytes() + self.folios.bytes()
    }

    /// Pages that were written since the last time are young. Writes that cannot be had are not
    /// known, as before.
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

    /// Stores the answers: whether each page was written.
    pub(super) fn fill_written_cache(&mut self, answers: Vec<(u32, bool)>, now_ns: u64) {
        self.written_cache.set(answers, now_ns);
    }

    /// Nobody needs this memory any more.
    fn release(&mut self, page: u32) {
        if self.pages.release(page) {
            return;
        }
        // The engine frees a page that is mapped only if its content is of no use.
        match self.ops.discard(page, 1) {
            Ok(()) => self.set_state(page, State::Empty),
            Err(_) => self.counts.inconsistent += 1,
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
        self.collect_writes(0..self.len() as u32);
    }

    /// Asked about pages that may leave, so the answer should be current. Under a policy that never
    /// walks page tables, pages are never protected, and all look written.
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
