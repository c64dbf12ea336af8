//! What the engine's orders mean for memory: page states, and the calls that change what is mapped.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use refault_mm::{Ack, Effect, Engine, MemcgId, PageId, SwapSlot, ThrottleReason, World};

use super::folio::Folios;
use super::looked_up::LookedUp;
use super::staging::Staging;
use super::stats::Counts;
use super::waiters::Waiters;
use crate::calls;
use crate::effects;
use crate::high::High;
use crate::pagemap::Pagemap;
use crate::store::{Page, PageBuf, SwapArea};
use crate::uffd::{PAGE, Uffd};

/// Where the content of a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Nowhere: it was never touched.
    Empty,
    /// In place.
    Mapped,
    /// In place, but about to be moved to a staging place; in the moment before the move is acknowledged, there.
    Leaving,
    /// In a staging place; nothing was written yet.
    Staged,
    /// In a staging place, and being written.
    Writing,
    /// In a staging place, and in the swap area.
    Written,
    /// In the swap area.
    Stored,
    /// In the swap area, and on its way from there.
    Reading,
    /// It cannot be had any more; whoever touches it gets a signal.
    Poisoned,
}

/// The memory of a region. Everything here is changed under one lock.
pub(super) struct Memory {
    pub(super) uffd: Arc<Uffd>,
    pub(super) area: Arc<SwapArea>,
    pub(super) start: usize,
    pub(super) state: Vec<State>,
    young: Vec<bool>,
    /// Tells which pages were written since the last walk; `None`: this kernel does not tell.
    pub(super) writes: Option<Pagemap>,
    looked_up: LookedUp,
    /// Those who serve their own faults, and wait; `None`: threads of the region serve faults, and the kernel wakes who waits.
    pub(super) waiters: Option<Arc<Waiters>>,
    /// The swap slot that the engine gave the page.
    pub(super) slot: Vec<u32>,
    /// The staging place of the page.
    pub(super) place: Vec<u32>,
    pub(super) staging: Staging,
    /// Pages to be moved out.
    pub(super) leaving: VecDeque<u32>,
    /// A page of each folio in staging places, the first to be written in front. Those that came back or went on are still named; their state
    /// or place tells.
    pub(super) staged: VecDeque<(u32, u32)>,
    pub(super) staged_pages: u64,
    /// Staging places whose content is of no use any more.
    pub(super) discards: Vec<u32>,
    /// Slots that the engine freed: kept until what was in them is in memory.
    pub(super) freed: Vec<u32>,
    /// Pages to be read, with their slots.
    pub(super) reads: Vec<(u32, u32)>,
    /// The content that was read for the page whose access goes on.
    pub(super) arrived: Option<Box<PageBuf>>,
    /// That page, if it was put in place before the engine was told.
    pub(super) placed: Option<u32>,
    /// Buffers to read into.
    pub(super) spare: Vec<Box<PageBuf>>,
    pub(super) folios: Folios,
    /// The access is a write: a page of zeros of its own is better than the shared one.
    pub(super) write: bool,
    pub(super) kswapd_awake: bool,
    pub(super) high: High<u32>,
    /// A limit is being lowered: that there is nothing to reclaim is no verdict.
    pub(super) lowering: bool,
    /// The owner gives pages up.
    pub(super) dropping: bool,
    pub(super) counts: Counts,
}

impl Memory {
    pub(super) fn new(uffd: Arc<Uffd>, area: Arc<SwapArea>, start: usize, pages: usize, staging: Staging) -> Memory {
        Memory {
            uffd,
            area,
            start,
            state: vec![State::Empty; pages],
            young: vec![false; pages],
            writes: None,
            looked_up: LookedUp::default(),
            waiters: None,
            slot: vec![0; pages],
            place: vec![0; pages],
            staging,
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
            high: High::default(),
            lowering: false,
            dropping: false,
            counts: Counts::default(),
        }
    }

    pub(super) fn address(&self, page: u32) -> usize {
        self.start + page as usize * PAGE
    }

    /// Bytes of tables for each page of the region.
    pub(super) const BYTES_PER_PAGE: usize = 2 + 2 * size_of::<u32>();

    /// Bytes of its tables.
    pub(super) fn table_bytes(&self) -> usize {
        self.state.capacity() * Self::BYTES_PER_PAGE
            + self.staged.capacity() * 8
            + self.leaving.capacity() * size_of::<u32>()
            + self.folios.bytes()
    }

    pub(super) fn set_staged(&mut self, page: u32, place: u32) {
        self.place[page as usize] = place;
        self.state[page as usize] = State::Staged;
        self.staged_pages += 1;
    }

    /// The folio of this page is in staging places: it is to be written.
    pub(super) fn queue_staged(&mut self, page: u32) {
        self.staged.push_back((page, self.place[page as usize]));
    }

    /// The page is in a staging place no more.
    pub(super) fn leave_place(&mut self, page: u32, to: State) {
        let state = &mut self.state[page as usize];
        self.staged_pages -= u64::from(*state == State::Staged);
        *state = to;
        self.discards.push(self.place[page as usize]);
    }

    /// Pages that were written since the last time are young. What cannot be had is not known, as before.
    pub(super) fn collect_writes(&mut self, pages: Range<u32>) {
        let Some(map) = &self.writes else { return };
        let (mut at, end) = (self.address(pages.start), self.address(pages.end));
        let mut found = Vec::new();
        while at < end {
            match map.take_written(at..end, &mut found) {
                Ok(to) if to > at => at = to,
                _ => break,
            }
        }
        for range in found {
            let (from, to) = ((range.start - self.start) / PAGE, (range.end - self.start) / PAGE);
            self.young[from..to].fill(true);
            self.counts.seen_written += (to - from) as u64;
        }
    }

    /// Whether a page was written since the last walk.
    fn was_written(&mut self, page: u32) -> bool {
        let known = self.looked_up.answer(page);
        let ask = || self.writes.as_ref().is_some_and(|map| map.is_written(self.address(page)).unwrap_or(false));
        known.unwrap_or_else(ask)
    }

    /// Pages that the next steps of reclaim may ask [`Memory::was_written`] about, in order.
    pub(super) fn pages_to_look_up(&mut self, engine: &Engine, group: MemcgId, now: Instant) -> Vec<u32> {
        let mut next = Vec::new();
        let wanted = self.looked_up.wanted(now);
        if wanted > 0 && self.writes.is_some() && self.counts.walks > 0 {
            engine.peek_reclaim_candidates(group, wanted, &mut next);
        }
        let is_asked = |&p: &u32| self.state[p as usize] == State::Mapped && !self.young[p as usize];
        let mut pages: Vec<u32> = next.iter().map(|p| p.0).filter(is_asked).collect();
        pages.sort_unstable();
        pages
    }

    /// What came of that: whether each was written.
    pub(super) fn set_looked_up(&mut self, answers: Vec<(u32, bool)>, now: Instant) {
        self.looked_up.set(answers, now);
    }

    /// Nobody needs this memory any more.
    fn release(&mut self, page: u32) {
        match self.state[page as usize] {
            State::Written => self.leave_place(page, State::Stored),
            State::Staged => self.leave_place(page, State::Empty),
            // Its owner gave it up, and the whole range is discarded in one go.
            State::Mapped if self.dropping => self.state[page as usize] = State::Empty,
            State::Mapped => {
                // SAFETY: the engine frees a page that is mapped only if its content is of no use.
                match unsafe { calls::discard(self.address(page), PAGE) } {
                    Ok(()) => self.state[page as usize] = State::Empty,
                    Err(_) => self.counts.inconsistent += 1,
                }
            }
            State::Empty | State::Stored | State::Poisoned => {}
            State::Leaving | State::Writing | State::Reading => self.counts.inconsistent += 1,
        }
    }
}

impl World for Memory {
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
        self.looked_up.forget();
        self.collect_writes(0..self.state.len() as u32);
    }

    /// Asked of what may leave, so it should be known to the moment. Under a policy that never walks, pages are never protected, and
    /// all of them are as if written.
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

/// The content of a staging place that is not written to: its page is in state Writing.
///
/// # Safety
/// The place must be filled, and stay so while the reference lives.
pub(super) unsafe fn staged_content<'a>(address: usize) -> &'a Page {
    // SAFETY: a filled place is a page of readable memory that only the pager knows; the rest is the caller's contract.
    unsafe { &*(address as *const Page) }
}
