//! What the engine's orders mean for the memory of processes: page states, and what is to be put in
//! place.

use std::collections::VecDeque;
use std::sync::Arc;

use refault_mm::{Ack, Effect, PageId, SwapSlot, ThrottleReason, World};

use super::memory_high::Place;
use super::record::Recorder;
use super::written::Written;
use crate::core::Counts;
use crate::core::MemoryHigh;
use crate::core::answer;
use crate::staging::Staging;
use crate::store::{CowSwap, PageBuf, SwapArea};

/// Where the content of a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Nowhere, or in place without the engine's knowledge.
    Empty,
    /// In place.
    Mapped,
    /// In place, but about to be moved to a staging place of the manager.
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
    /// In the swap area, where it is that of the process that this one was forked from, too.
    CowSwap,
    /// It cannot be had any more; the thread that touches it gets a signal.
    Poisoned,
}

/// Buffers that are kept.
const SPARE: usize = 32;

/// A page is to be put in its place.
pub(super) struct Fill {
    pub(super) page: u32,
    pub(super) source: Source,
}

/// What is to be put there.
pub(super) enum Source {
    /// Nothing: the kernel's page of zeros.
    Zero,
    /// A page of zeros of its own.
    Zeros,
    /// What is in a staging place.
    Place(usize),
    /// What was read.
    Content(Box<PageBuf>),
}

impl Source {
    /// A page with what is to be put there; `None`: zeros.
    pub(super) fn content(&self) -> Option<*const u8> {
        match self {
            Source::Zero | Source::Zeros => None,
            Source::Place(at) => Some(*at as *const u8),
            Source::Content(content) => Some(content.0.as_ptr()),
        }
    }
}

/// The pages of all processes. Everything here is changed under one lock.
pub(super) struct Memory {
    pub(super) area: Arc<SwapArea>,
    state: Vec<State>,
    pub(super) young: Vec<bool>,
    pub(super) written: Written,
    /// `madvise` is about to drop what is in place, or did: it must not be moved out as long as it
    /// may be there.
    pub(super) doomed: Vec<bool>,
    /// What is being read or written is of no use any more.
    pub(super) dropped: Vec<bool>,
    /// It was taken away, but could not be marked.
    pub(super) unmarked: Vec<bool>,
    /// What was there is to be discarded, with its mark, and that may be done or not.
    pub(super) is_discarding: Vec<bool>,
    /// Pages that could not be marked.
    pub(super) to_mark: Vec<u32>,
    /// The swap slot that the engine gave the page.
    pub(super) slot: Vec<u32>,
    /// The staging place of the page.
    pub(super) place: Vec<u32>,
    pub(super) address: Vec<usize>,
    /// The process, by its number.
    pub(super) owner: Vec<u32>,
    /// Pages in place that the engine knows of, by process.
    pub(super) resident: Vec<u64>,
    pub(super) staging: Staging,
    /// Pages to be moved out. Those that stay after all are still named; their state tells.
    pub(super) leaving: VecDeque<u32>,
    /// Pages in staging places, the first to be written in front, likewise.
    pub(super) staged: VecDeque<(u32, u32)>,
    pub(super) staged_pages: u64,
    /// Pages that are being written or read.
    busy_pages: u64,
    /// Staging places whose content is of no use any more.
    pub(super) discards: Vec<u32>,
    /// Slots that the engine freed: kept until what was in them is in memory.
    pub(super) freed: Vec<u32>,
    /// Pages to be read, with their slots.
    pub(super) reads: Vec<(u32, u32)>,
    /// The content that was read for the page whose access goes on.
    pub(super) arrived: Option<Box<PageBuf>>,
    /// Buffers to read into.
    spare: Vec<Box<PageBuf>>,
    /// Content that belongs to another process, too.
    pub(super) cow_swaps: std::collections::HashMap<u32, CowSwap>,
    /// Pages that are to be put in place as soon as the engine returns.
    pub(super) fills: VecDeque<Fill>,
    /// The one that is being put there.
    pub(super) filling: Option<Fill>,
    /// The access is a write: a page of zeros of its own is better than the shared one.
    pub(super) write: bool,
    /// What the engine learns of is in place already, or will be with its neighbours.
    pub(super) in_place: bool,
    /// The engine is told that pages are gone.
    pub(super) dropping: bool,
    pub(super) kswapd_awake: bool,
    /// Reclaim waits when so many pages are on their way: they take memory until they are written.
    pub(super) most_under_way: u64,
    pub(super) high: MemoryHigh<Place>,
    pub(super) recorder: Option<Recorder>,
    pub(super) counts: Counts,
}

fn is_resident(state: State) -> bool {
    matches!(state, State::Mapped | State::Leaving)
}

/// Makes a table longer, with an eighth to spare: all of it counts as memory, and doubled it would
/// take too much.
pub(super) fn extend<T: Clone>(table: &mut Vec<T>, len: usize, with: T) {
    const SPARE_PART: usize = 8;
    if len > table.capacity() {
        table.reserve_exact(len + len / SPARE_PART - table.len());
    }
    table.resize(len, with);
}

impl Memory {
    pub(super) fn new(area: Arc<SwapArea>, staging: Staging) -> Memory {
        Memory {
            area,
            state: Vec::new(),
            young: Vec::new(),
            written: Written::default(),
            doomed: Vec::new(),
            dropped: Vec::new(),
            unmarked: Vec::new(),
            is_discarding: Vec::new(),
            to_mark: Vec::new(),
            slot: Vec::new(),
            place: Vec::new(),
            address: Vec::new(),
            owner: Vec::new(),
            resident: Vec::new(),
            staging,
            leaving: VecDeque::new(),
            staged: VecDeque::new(),
            staged_pages: 0,
            busy_pages: 0,
            discards: Vec::new(),
            freed: Vec::new(),
            reads: Vec::new(),
            arrived: None,
            spare: Vec::new(),
            cow_swaps: std::collections::HashMap::new(),
            fills: VecDeque::new(),
            filling: None,
            write: false,
            in_place: false,
            dropping: false,
            kswapd_awake: false,
            most_under_way: u64::MAX,
            high: MemoryHigh::default(),
            recorder: None,
            counts: Counts::default(),
        }
    }

    /// A buffer to read into.
    pub(super) fn buffer(&mut self) -> Box<PageBuf> {
        self.spare.pop().unwrap_or_default()
    }

    /// A buffer that is not needed any more.
    pub(super) fn take_back(&mut self, buffer: Box<PageBuf>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    /// Makes room for so many pages.
    pub(super) fn grow(&mut self, pages: usize) {
        extend(&mut self.state, pages, State::Empty);
        for flags in [&mut self.young, &mut self.doomed, &mut self.dropped, &mut self.unmarked, &mut self.is_discarding]
        {
            extend(flags, pages, false);
        }
        for numbers in [&mut self.slot, &mut self.place, &mut self.owner] {
            extend(numbers, pages, 0);
        }
        extend(&mut self.address, pages, 0);
        self.written.grow(pages);
    }

    pub(super) fn state(&self, page: u32) -> State {
        self.state[page as usize]
    }

    /// Content of a page that is mapped, but was not put in its place yet.
    pub(super) fn in_flight(&self, page: u32) -> Option<*const u8> {
        let fill = self.filling.iter().chain(&self.fills).find(|f| f.page == page)?;
        fill.source.content()
    }

    /// Whether a page has content that is not in place.
    pub(super) fn is_held(&self, page: u32) -> bool {
        match self.state(page) {
            State::Empty | State::Leaving => false,
            State::Mapped => self.in_flight(page).is_some(),
            // It is gone as soon as the thread that reads or writes it is done.
            State::Reading | State::Writing => !self.dropped[page as usize],
            _ => true,
        }
    }

    pub(super) fn states(&self) -> &[State] {
        &self.state
    }

    pub(super) fn set_state(&mut self, page: u32, to: State) {
        let from = std::mem::replace(&mut self.state[page as usize], to);
        let is_busy = |state| matches!(state, State::Writing | State::Reading);
        self.busy_pages = self.busy_pages + u64::from(is_busy(to)) - u64::from(is_busy(from));
        let resident = &mut self.resident[self.owner[page as usize] as usize];
        match (is_resident(from), is_resident(to)) {
            (false, true) => *resident += 1,
            (true, false) => *resident -= 1,
            _ => {}
        }
    }

    /// Whether anything is on its way out of memory or back.
    pub(super) fn is_under_way(&self) -> bool {
        self.busy_pages > 0
    }

    /// Bytes of its tables.
    pub(super) fn table_bytes(&self) -> usize {
        self.state.capacity() * (7 + 3 * size_of::<u32>() + size_of::<usize>())
            + self.staged.capacity() * 8
            + self.leaving.capacity() * size_of::<u32>()
            + self.cow_swaps.capacity() * 24
    }

    pub(super) fn set_staged(&mut self, page: u32, place: u32) {
        self.place[page as usize] = place;
        self.is_discarding[page as usize] = false;
        self.set_state(page, State::Staged);
        self.staged.push_back((page, place));
        self.staged_pages += 1;
    }

    /// The page is in a staging place no more.
    pub(super) fn leave_place(&mut self, page: u32, to: State) {
        self.staged_pages -= u64::from(self.state(page) == State::Staged);
        self.set_state(page, to);
        self.discards.push(self.place[page as usize]);
    }

    /// The page is to be in its place: what goes there is known, and done when the engine returns.
    fn map(&mut self, page: u32) {
        let state = self.state(page);
        let source = match state {
            State::Mapped | State::Leaving | State::Poisoned => return,
            State::Empty if self.in_place => {
                self.written.came(page, false);
                return self.set_state(page, State::Mapped);
            }
            State::Empty if self.write => Source::Zeros,
            State::Empty => Source::Zero,
            State::Staged | State::Written => Source::Place(self.staging.address(self.place[page as usize])),
            State::Reading | State::CowSwap => match self.arrived.take() {
                Some(content) => Source::Content(content),
                None => return self.counts.inconsistent += 1,
            },
            State::Writing | State::Stored => return self.counts.inconsistent += 1,
        };
        match state {
            // The place is emptied when the lock is free at the earliest: after the page is filled.
            State::Staged | State::Written => self.leave_place(page, State::Mapped),
            _ => self.set_state(page, State::Mapped),
        }
        self.fills.push_back(Fill { page, source });
    }

    /// Nobody needs this memory any more.
    fn release(&mut self, page: u32) {
        match self.state(page) {
            State::Written => self.leave_place(page, State::Stored),
            State::Staged => self.leave_place(page, State::Empty),
            State::Mapped if self.dropping => self.set_state(page, State::Empty),
            State::Empty | State::Stored | State::Poisoned | State::CowSwap => {}
            State::Mapped | State::Leaving | State::Writing | State::Reading => self.counts.inconsistent += 1,
        }
    }

    fn swap_out(&mut self, page: u32, slot: u32) -> Ack {
        self.slot[page as usize] = slot;
        match self.state(page) {
            State::Mapped => {
                self.set_state(page, State::Leaving);
                self.leaving.push_back(page);
            }
            // It is out of reach already: a write of it failed, or it is written once more.
            State::Written => self.set_staged(page, self.place[page as usize]),
            State::Staged => self.staged.push_back((page, self.place[page as usize])),
            // Whatever it held is lost; its frame is free.
            State::Poisoned => return Ack::Done,
            _ => {
                self.counts.inconsistent += 1;
                return Ack::Failed;
            }
        }
        Ack::Pending
    }
}

impl World for Memory {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            // No folios of more than a page are asked for.
            Effect::SwapIn { order, .. } | Effect::SwapOut { order, .. } if order > 0 => return Ack::Failed,
            Effect::SwapIn { page, slot, .. } => {
                if self.state(page.0) != State::Stored {
                    self.counts.inconsistent += 1;
                    return Ack::Failed;
                }
                self.set_state(page.0, State::Reading);
                self.reads.push((page.0, slot.0));
                return Ack::Pending;
            }
            Effect::SwapOut { page, slot, .. } => return self.swap_out(page.0, slot.0),
            Effect::Map { page, young, .. } => {
                self.map(page.0);
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
            Effect::Oom { .. } => self.counts.oom += 1,
            other => return answer(&other),
        }
        Ack::Done
    }

    fn test_and_clear_young(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.young[page.index()])
    }

    fn before_walk(&mut self) {
        self.counts.walks += 1;
        self.collect_writes();
    }

    /// Asked of what may leave, so it should be known to the moment.
    fn test_and_clear_young_count(&mut self, page: PageId) -> u32 {
        u32::from(self.test_and_clear_young(page) || self.is_written(page.0))
    }

    fn keeps_swap_copy(&self, slot: SwapSlot) -> bool {
        self.area.keeps_copy(slot.0)
    }

    fn is_write_queue_full(&self) -> bool {
        let under_way = self.leaving.len() as u64 + self.staged_pages + self.busy_pages;
        under_way >= self.most_under_way || self.leaving.len() >= self.high.most_leaving
    }

    /// The page tables know, but asking them costs more than writing the page once more.
    fn test_and_clear_dirty(&mut self, _: PageId) -> bool {
        true
    }
}
