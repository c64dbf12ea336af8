//! The pages of anonymous memory, of a region or of whole programs: where the content of each is,
//! and what is on its way out.

use std::collections::VecDeque;
use std::sync::Arc;

use refault_mm::Ack;

use super::places::Places;
use super::state::State;
use super::stats::Counts;
use super::swap_out::Claim;
use crate::store::{PageBuf, SwapArea};

/// Counts pages as their states change, beside the number of pages in each state.
pub(crate) trait PageCounts {
    /// A page is in another state from now on.
    fn note(&mut self, page: u32, from: State, to: State);
}

/// Nothing else is counted.
impl PageCounts for () {
    fn note(&mut self, _page: u32, _from: State, _to: State) {}
}

/// The pages of a driver.
pub(crate) struct DriverPages<C = ()> {
    pub(crate) area: Arc<SwapArea>,
    state: Vec<State>,
    /// Pages in each state.
    in_state: [u64; State::ALL.len()],
    pub(crate) page_counts: C,
    pub(crate) young: Vec<bool>,
    /// The swap slot that the engine gave the page.
    pub(crate) slot: Vec<u32>,
    /// The staging place of the page.
    pub(crate) place: Vec<u32>,
    pub(crate) places: Places,
    /// Pages to be moved out. Where pages are given up on their way they are still named; their
    /// state tells.
    pub(crate) leaving: VecDeque<u32>,
    /// A page of each folio in staging places, the first to be written in front. Pages that came
    /// back or went on are still named; their state or place tells.
    pub(crate) staged: VecDeque<(u32, u32)>,
    /// Staging places whose content is of no use any more.
    pub(crate) discards: Vec<u32>,
    /// Slots that the engine freed: kept until what was in them is in memory.
    pub(crate) freed: Vec<u32>,
    /// Pages to be read, with their slots.
    pub(crate) reads: Vec<(u32, u32)>,
    /// The content that was read for the page whose access goes on.
    pub(crate) arrived: Option<Box<PageBuf>>,
    /// Buffers to read into.
    pub(crate) spare: Vec<Box<PageBuf>>,
    /// The access is a write: a page of zeros of its own is better than the shared one.
    pub(crate) write: bool,
    /// Pages are given up: the engine is told that they are gone.
    pub(crate) dropping: bool,
    pub(crate) kswapd_awake: bool,
    pub(crate) counts: Counts,
}

/// Bytes of tables for each page.
pub(crate) const BYTES_PER_PAGE: usize = 2 + 2 * size_of::<u32>();

/// Makes a table longer, with an eighth to spare: all of it counts as memory, and doubled it would
/// take too much.
pub(crate) fn extend<T: Clone>(table: &mut Vec<T>, len: usize, with: T) {
    const SPARE_PART: usize = 8;
    if len > table.capacity() {
        table.reserve_exact(len + len / SPARE_PART - table.len());
    }
    table.resize(len, with);
}

impl<C: PageCounts> DriverPages<C> {
    pub(crate) fn new(area: Arc<SwapArea>, pages: usize, places: Places, page_counts: C) -> DriverPages<C> {
        let mut in_state = [0; State::ALL.len()];
        in_state[State::Empty as usize] = pages as u64;
        DriverPages {
            area,
            state: vec![State::Empty; pages],
            in_state,
            page_counts,
            young: vec![false; pages],
            slot: vec![0; pages],
            place: vec![0; pages],
            places,
            leaving: VecDeque::new(),
            staged: VecDeque::new(),
            discards: Vec::new(),
            freed: Vec::new(),
            reads: Vec::new(),
            arrived: None,
            spare: Vec::new(),
            write: false,
            dropping: false,
            kswapd_awake: false,
            counts: Counts::default(),
        }
    }

    /// Makes room for `pages` pages.
    pub(crate) fn grow(&mut self, pages: usize) {
        self.in_state[State::Empty as usize] += (pages - self.state.len()) as u64;
        extend(&mut self.state, pages, State::Empty);
        extend(&mut self.young, pages, false);
        extend(&mut self.slot, pages, 0);
        extend(&mut self.place, pages, 0);
    }

    /// Pages that there are.
    pub(crate) fn len(&self) -> usize {
        self.state.len()
    }

    /// Pages that its tables have room for.
    pub(crate) fn capacity(&self) -> usize {
        self.state.capacity()
    }

    pub(crate) fn state(&self, page: u32) -> State {
        self.state[page as usize]
    }

    pub(crate) fn states(&self) -> &[State] {
        &self.state
    }

    /// Pages in a state.
    pub(crate) fn count(&self, state: State) -> u64 {
        self.in_state[state as usize]
    }

    /// A page is in another state from now on.
    pub(crate) fn set_state(&mut self, page: u32, to: State) {
        let from = std::mem::replace(&mut self.state[page as usize], to);
        debug_assert!(from.may_become(to), "page {page} was {from:?} and is {to:?}");
        self.in_state[from as usize] -= 1;
        self.in_state[to as usize] += 1;
        self.page_counts.note(page, from, to);
    }

    /// A buffer to read into.
    pub(crate) fn buffer(&mut self) -> Box<PageBuf> {
        self.spare.pop().unwrap_or_default()
    }

    /// Bytes of its tables.
    pub(crate) fn table_bytes(&self) -> usize {
        self.capacity() * BYTES_PER_PAGE
            + self.staged.capacity() * size_of::<(u32, u32)>()
            + self.leaving.capacity() * size_of::<u32>()
    }

    /// The engine orders a page in, which is by itself. Whether it is to be read.
    pub(crate) fn read_in(&mut self, page: u32, slot: u32) -> bool {
        let is_stored = self.state(page) == State::Stored;
        if is_stored {
            self.set_state(page, State::Reading);
            self.reads.push((page, slot));
        }
        is_stored
    }

    /// The engine orders a folio out.
    pub(crate) fn swap_out(&mut self, first: u32, order: u8, slot: u32) -> Ack {
        let (mut moves, mut staged) = (false, None);
        for (page, slot) in (first..first + (1 << order)).zip(slot..) {
            let i = page as usize;
            self.slot[i] = slot;
            match self.state[i] {
                State::Mapped => {
                    self.set_state(page, State::Leaving);
                    self.leaving.push_back(page);
                    moves = true;
                }
                // It is out of reach already: a write of it failed, or it is written once more.
                State::Written => {
                    self.set_staged(page, self.place[i]);
                    staged = Some(page);
                }
                State::Staged => staged = Some(page),
                // Its content is lost; its frame is free.
                State::Poisoned => {}
                _ => {
                    self.counts.inconsistent += 1;
                    return Ack::Failed;
                }
            }
        }
        match staged {
            // With those that are to be moved.
            _ if moves => {}
            Some(page) => self.queue_staged(page),
            None => return Ack::Done,
        }
        Ack::Pending
    }

    pub(crate) fn set_staged(&mut self, page: u32, place: u32) {
        self.place[page as usize] = place;
        self.set_state(page, State::Staged);
    }

    /// The folio of this page is in staging places: it is to be written.
    pub(crate) fn queue_staged(&mut self, page: u32) {
        self.staged.push_back((page, self.place[page as usize]));
    }

    /// A page of the folio that is to be written next, which is in front of the list.
    pub(crate) fn next_staged(&mut self) -> Option<u32> {
        loop {
            let &(page, place) = self.staged.front()?;
            if self.state(page) == State::Staged && self.place[page as usize] == place {
                return Some(page);
            }
            self.staged.pop_front();
        }
    }

    /// A page in a staging place is written from now on.
    pub(crate) fn claim(&mut self, page: u32) -> Claim {
        self.set_state(page, State::Writing);
        Claim { page, slot: self.slot[page as usize], place: self.place[page as usize] }
    }

    /// The page is in a staging place no more.
    pub(crate) fn leave_place(&mut self, page: u32, to: State) {
        debug_assert!(self.state(page).is_in_place() && !to.is_in_place());
        self.set_state(page, to);
        self.discards.push(self.place[page as usize]);
    }

    /// Nobody needs this memory any more. False: that it is still there is the driver's affair.
    pub(crate) fn release(&mut self, page: u32) -> bool {
        match self.state(page) {
            State::Written => self.leave_place(page, State::Stored),
            State::Staged => self.leave_place(page, State::Empty),
            // Its owner gave it up, and what is in place is dropped with its neighbours.
            State::Mapped if self.dropping => self.set_state(page, State::Empty),
            State::Empty | State::Stored | State::CowSwap | State::Poisoned => {}
            State::Mapped => return false,
            State::Leaving | State::Writing | State::Reading => self.counts.inconsistent += 1,
        }
        true
    }

    /// Takes the places whose content is of no use, except `kept` of them, for the discarder.
    pub(crate) fn take_discards(&mut self, kept: usize) -> Vec<u32> {
        let kept = kept.min(self.discards.len());
        self.discards.drain(kept..).collect()
    }

    /// Books discarded places as empty.
    pub(crate) fn settle_discards(&mut self, places: &[u32]) {
        places.iter().for_each(|&p| self.places.give_back(p));
    }

    /// Slots that the engine freed are free now: what was in them is in memory.
    pub(crate) fn free_slots(&mut self) {
        self.freed.drain(..).for_each(|slot| self.area.free(slot));
    }

    /// The invariants: that states, places and counts agree.
    pub(crate) fn validate(&self) -> Result<(), String> {
        for state in State::ALL {
            let (n, counted) = (self.state.iter().filter(|&&s| s == state).count() as u64, self.count(state));
            if n != counted {
                return Err(format!("{n} pages are {state:?}, {counted} counted"));
            }
        }
        let held = [State::Staged, State::Writing, State::Written].map(|s| self.count(s)).iter().sum::<u64>();
        if self.places.in_use() < held + self.discards.len() as u64 {
            return Err(format!("{held} pages have a place, but {} are in use", self.places.in_use()));
        }
        match self.counts.inconsistent {
            0 => Ok(()),
            n => Err(format!("{n} orders did not fit the state of their page")),
        }
    }
}
