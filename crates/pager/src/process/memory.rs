//! Effects of the engine's orders on the memory of processes: page states, and what is to be put in
//! place.

use std::collections::{HashMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use refault_mm::{Ack, Effect, PageId, SwapSlot, ThrottleReason, World};

use super::memory_high::Place;
use super::record::Recorder;
use super::written::Written;
use crate::core::{DISCARD_BATCH, DriverPages, MemoryHigh, PageCounts, Places, State, WINDOW, answer, extend};
use crate::mem::AnonymousMapping;
use crate::store::{CowSwap, PageBuf, SwapArea};
use crate::uffd::PAGE;

/// Staging places kept to be filled again, of a memory of `max_pages` pages: filling an empty place
/// takes a page fault, and emptying one takes a call. As many as an order moves, and up to four
/// times as many in large memory.
pub(super) fn kept_places(max_pages: usize) -> usize {
    const PART: usize = 128;
    (max_pages / PART).clamp(WINDOW, 4 * WINDOW)
}

/// Bytes of the table of lent pages for each.
const LENT_BYTES: usize = 24;

/// Buffers that are kept.
const SPARE: usize = 32;

/// A page is to be put in its place.
pub(super) struct Fill {
    pub(super) page: u32,
    pub(super) source: Source,
}

/// Content that is to be put there.
pub(super) enum Source {
    /// Nothing: the kernel's page of zeros.
    Zero,
    /// A page of zeros of its own.
    Zeros,
    /// Content of a staging place.
    Place(usize),
    /// Content that was read.
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

/// Pages in place that the engine knows of, by process.
#[derive(Default)]
pub(super) struct Residents {
    /// The process of each page, by its number.
    pub(super) owner: Vec<u32>,
    pub(super) of: Vec<u64>,
}

impl PageCounts for Residents {
    fn note(&mut self, page: u32, from: State, to: State) {
        let of = &mut self.of[self.owner[page as usize] as usize];
        match (is_resident(from), is_resident(to)) {
            (false, true) => *of += 1,
            (true, false) => *of -= 1,
            _ => {}
        }
    }
}

fn is_resident(state: State) -> bool {
    matches!(state, State::Mapped | State::Leaving)
}

/// The pages of all processes. Everything here is changed under one lock.
pub(super) struct Memory {
    pages: DriverPages<Residents>,
    /// Where staging places are.
    pub(super) staging: AnonymousMapping,
    /// [`kept_places`].
    pub(super) kept_places: usize,
    pub(super) written: Written,
    /// `madvise` is about to drop what is in place, or did: it must not be moved out as long as it
    /// may be there.
    pub(super) may_be_discarded: Vec<bool>,
    /// Marks pages whose content is being read or written and is of no use any more.
    pub(super) dropped: Vec<bool>,
    /// Pages that were taken away, but could not be marked.
    pub(super) unmarked: Vec<bool>,
    /// Marks pages whose old content is to be discarded together with its mark, which may be done
    /// or not.
    pub(super) is_discarding: Vec<bool>,
    /// Pages that could not be marked.
    pub(super) to_mark: Vec<u32>,
    pub(super) address: Vec<usize>,
    /// Content that belongs to another process, too.
    pub(super) cow_swaps: HashMap<u32, CowSwap>,
    /// Pages that are to be put in place as soon as the engine returns.
    pub(super) fills: VecDeque<Fill>,
    /// The one that is being put there.
    pub(super) filling: Option<Fill>,
    /// Pages that the engine learns of are in place already, or will be with their neighbours.
    pub(super) in_place: bool,
    /// Number of pages on their way at which reclaim waits: they take memory until they are
    /// written.
    pub(super) most_under_way: u64,
    pub(super) high: MemoryHigh<Place>,
    pub(super) recorder: Option<Recorder>,
}

impl Deref for Memory {
    type Target = DriverPages<Residents>;

    fn deref(&self) -> &DriverPages<Residents> {
        &self.pages
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut DriverPages<Residents> {
        &mut self.pages
    }
}

impl Memory {
    /// With `windows` windows of staging places, of which `kept_places` places are kept.
    pub(super) fn new(area: Arc<SwapArea>, windows: usize, kept_places: usize) -> std::io::Result<Memory> {
        Ok(Memory {
            kept_places,
            pages: DriverPages::new(area, 0, Places::new(windows), Residents::default()),
            staging: AnonymousMapping::new(windows * WINDOW * PAGE)?,
            written: Written::default(),
            may_be_discarded: Vec::new(),
            dropped: Vec::new(),
            unmarked: Vec::new(),
            is_discarding: Vec::new(),
            to_mark: Vec::new(),
            address: Vec::new(),
            cow_swaps: HashMap::new(),
            fills: VecDeque::new(),
            filling: None,
            in_place: false,
            most_under_way: u64::MAX,
            high: MemoryHigh::default(),
            recorder: None,
        })
    }

    /// A buffer that is not needed any more.
    pub(super) fn take_back(&mut self, buffer: Box<PageBuf>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    /// Makes room for `pages` pages.
    pub(super) fn grow(&mut self, pages: usize) {
        self.pages.grow(pages);
        for flags in [&mut self.may_be_discarded, &mut self.dropped, &mut self.unmarked, &mut self.is_discarding] {
            extend(flags, pages, false);
        }
        extend(&mut self.pages.page_counts.owner, pages, 0);
        extend(&mut self.address, pages, 0);
        self.written.grow(pages);
    }

    /// The process of a page, by its number.
    pub(super) fn owner(&self, page: u32) -> usize {
        self.page_counts.owner[page as usize] as usize
    }

    /// Where a page is: the process and the address.
    pub(super) fn place_of(&self, page: u32) -> Place {
        (self.owner(page), self.address[page as usize])
    }

    /// Pages in place of a process that the engine knows of.
    pub(super) fn resident(&self, space: usize) -> u64 {
        self.page_counts.of.get(space).copied().unwrap_or(0)
    }

    /// Pages in memory of all processes.
    pub(super) fn all_resident(&self) -> u64 {
        self.count(State::Mapped) + self.count(State::Leaving)
    }

    /// Takes `n` places, places of no use first: a copy overwrites their content, so nobody has to
    /// empty them before.
    pub(super) fn take_places(&mut self, n: usize) -> Vec<u32> {
        // A page may be about to be put in its place from one.
        let is_needed = self.filling.is_some() || !self.fills.is_empty();
        let reused = if is_needed { 0 } else { n.min(self.discards.len()) };
        let mut places = self.pages.discards.split_off(self.discards.len() - reused);
        places.extend(self.places.take(n - reused));
        places
    }

    /// Whether enough more places are of no use than are kept, to be worth a call.
    pub(super) fn has_discards(&self) -> bool {
        self.discards.len() >= self.kept_places + DISCARD_BATCH
    }

    /// The address of a staging place.
    pub(super) fn staging_address(&self, place: u32) -> usize {
        self.staging.start() + place as usize * PAGE
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

    /// Pages that are being written or read.
    fn busy_pages(&self) -> u64 {
        self.count(State::Writing) + self.count(State::Reading)
    }

    /// Whether anything is on its way out of memory or back.
    pub(super) fn is_under_way(&self) -> bool {
        self.busy_pages() > 0
    }

    /// Bytes of its tables.
    pub(super) fn table_bytes(&self) -> usize {
        const MORE_PER_PAGE: usize = 5 + size_of::<u32>() + size_of::<usize>();
        self.pages.table_bytes() + self.capacity() * MORE_PER_PAGE + self.cow_swaps.capacity() * LENT_BYTES
    }

    /// Bytes that `pages` more lent pages take: a table that is full doubles, and is there twice
    /// for a moment.
    pub(super) fn lent_to_come(&self, pages: usize) -> usize {
        match self.cow_swaps.len() + pages > self.cow_swaps.capacity() {
            true => 2 * self.cow_swaps.capacity() * LENT_BYTES,
            false => 0,
        }
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
            State::Staged | State::Written => Source::Place(self.staging_address(self.place[page as usize])),
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
}

impl World for Memory {
    fn effect(&mut self, effect: Effect) -> Ack {
        match effect {
            // No folios of more than a page are asked for.
            Effect::SwapIn { order, .. } | Effect::SwapOut { order, .. } if order > 0 => return Ack::Failed,
            Effect::SwapIn { page, slot, .. } => {
                let is_read = self.read_in(page.0, slot.0);
                self.counts.inconsistent += u64::from(!is_read);
                return if is_read { Ack::Pending } else { Ack::Failed };
            }
            Effect::SwapOut { page, order, slot } => {
                if self.state(page.0) == State::Written {
                    self.is_discarding[page.index()] = false;
                }
                return self.swap_out(page.0, order, slot.0);
            }
            Effect::Map { page, young, .. } => {
                self.map(page.0);
                self.young[page.index()] |= young;
            }
            Effect::Free { page, order } => {
                let kept = (page.0..page.0 + (1 << order)).filter(|&p| !self.release(p)).count();
                self.counts.inconsistent += kept as u64;
            }
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
        let under_way = self.leaving.len() as u64 + self.count(State::Staged) + self.busy_pages();
        under_way >= self.most_under_way || self.leaving.len() >= self.high.most_leaving
    }

    /// The page tables know, but asking them costs more than writing the page once more.
    fn test_and_clear_dirty(&mut self, _: PageId) -> bool {
        true
    }
}
