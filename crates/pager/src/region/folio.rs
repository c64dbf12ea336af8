//! Folios: pages that come, go and are known to the engine as one. Each page has a state of its own; those of a folio change
//! together. What the engine maps in one call is put in place by one, too.

use std::ops::Range;
use std::sync::MutexGuard;
use std::time::Instant;

use refault_mm::{Ack, Advice, PageId};

use super::Shared;
use super::core::Core;
use super::world::{Memory, State};
use crate::store::{PageBuf, StoreError};
use crate::threads::fatal;
use crate::uffd::{FillMode, PAGE, Uffd};

/// The largest folios have so many pages: a staging window takes a folio.
pub(super) const MAX_PAGES: usize = super::WINDOW;

static ZEROS: [PageBuf; MAX_PAGES] = [const { PageBuf([0; PAGE]) }; MAX_PAGES];

/// A folio that is to be read: its first page, how many it has, and the slot of the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct FolioRead {
    first: u32,
    pages: u32,
    slot: u32,
}

/// What folios need beside the states of pages.
#[derive(Default)]
pub(super) struct Folios {
    /// Pages that the engine has mapped, to be put in place.
    pub(super) to_map: Vec<u32>,
    /// Those of them for which that failed.
    failed: Vec<u32>,
    /// Folios to be read.
    pub(super) reads: Vec<FolioRead>,
    /// The content that was read for the folio whose access goes on.
    arrived: Option<(FolioRead, Box<[PageBuf]>)>,
    /// Buffers to read into: each takes the largest folio.
    spare: Vec<Box<[PageBuf]>>,
    /// Buffers that there are, in use or not. They are kept: who faults may be any thread, and allocators keep what each of them frees.
    buffers: usize,
    /// Pages of the largest folios that there may be.
    pub(super) most_pages: usize,
}

impl Folios {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        (self.to_map.capacity() + self.failed.capacity()) * size_of::<u32>()
            + self.reads.capacity() * size_of::<FolioRead>()
            + self.buffers * self.most_pages * PAGE
    }

    /// A buffer, if one is to spare; else one has to be made, without the lock, and counts from now on.
    fn take_buffer(&mut self) -> Option<Box<[PageBuf]>> {
        let spare = self.spare.pop();
        self.buffers += usize::from(spare.is_none());
        spare
    }
}

/// Where the content of pages that follow one another comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Zeros,
    /// Copied, from this address on.
    Copy(usize),
}

impl Source {
    fn nth(self, n: usize) -> Source {
        match self {
            Source::Zeros => Source::Zeros,
            Source::Copy(from) => Source::Copy(from + n * PAGE),
        }
    }
}

impl Memory {
    /// The engine orders a folio in.
    pub(super) fn swap_in(&mut self, first: u32, order: u8, slot: u32) -> Ack {
        if order == 0 && self.state[first as usize] == State::Stored {
            self.state[first as usize] = State::Reading;
            self.reads.push((first, slot));
            return Ack::Pending;
        }
        let pages = first..first + (1 << order);
        // A page that is lost may be part of a folio that is not. By itself it would be read ahead; the engine does not know of it.
        let is = |state: State| pages.clone().filter(|&p| self.state[p as usize] == state).count();
        let (stored, lost) = (is(State::Stored), is(State::Poisoned));
        if stored == 0 || stored + lost < pages.len() {
            self.counts.inconsistent += u64::from(stored + lost < pages.len());
            return Ack::Failed;
        }
        for page in pages.clone().filter(|&p| self.state[p as usize] == State::Stored).collect::<Vec<_>>() {
            self.state[page as usize] = State::Reading;
        }
        match order {
            0 => self.reads.push((first, slot)),
            _ => self.folios.reads.push(FolioRead { first, pages: 1 << order, slot }),
        }
        Ack::Pending
    }

    /// The engine orders a folio out.
    pub(super) fn swap_out(&mut self, first: u32, order: u8, slot: u32) -> Ack {
        let (mut moves, mut staged) = (false, None);
        for (page, slot) in (first..first + (1 << order)).zip(slot..) {
            let i = page as usize;
            self.slot[i] = slot;
            match self.state[i] {
                State::Mapped => {
                    self.state[i] = State::Leaving;
                    self.leaving.push_back(page);
                    moves = true;
                }
                // It is out of reach already: a write of it failed, or it is written once more.
                State::Written => {
                    self.set_staged(page, self.place[i]);
                    staged = Some(page);
                }
                State::Staged => staged = Some(page),
                // Whatever it held is lost; its frame is free.
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

    /// Pages that are to be read and not read yet.
    pub(super) fn pages_to_read(&self) -> u64 {
        self.reads.len() as u64 + self.folios.reads.iter().map(|r| u64::from(r.pages)).sum::<u64>()
    }

    /// Puts what the engine mapped in place, and lets those who wait for it go on.
    fn map_all(&mut self) {
        let mut pages = std::mem::take(&mut self.folios.to_map);
        let mut at = 0;
        while at < pages.len() {
            if self.placed == Some(pages[at]) {
                self.placed = None;
                self.state[pages[at] as usize] = State::Mapped;
                if let Some(waiters) = &self.waiters {
                    waiters.wake();
                }
            }
            let Some(source) = self.source(pages[at]) else {
                at += 1;
                continue;
            };
            let goes_on = |n: &usize| {
                let next = pages.get(at + n).filter(|&&p| p == pages[at] + *n as u32);
                next.is_some_and(|&p| self.source(p) == Some(source.nth(*n)))
            };
            let n = 1 + (1..).take_while(goes_on).count();
            self.fill_all(pages[at], n, source);
            at += n;
        }
        pages.clear();
        self.folios.to_map = pages;
    }

    /// Where the content of a page is; `None`: in place, or nowhere.
    fn source(&self, page: u32) -> Option<Source> {
        let i = page as usize;
        match self.state[i] {
            State::Mapped | State::Leaving | State::Poisoned => None,
            State::Empty if self.write => Some(Source::Copy(ZEROS.as_ptr().addr() + i % MAX_PAGES * PAGE)),
            State::Empty => Some(Source::Zeros),
            State::Staged | State::Written => Some(Source::Copy(self.staging.address(self.place[i]))),
            State::Reading => match (&self.folios.arrived, &self.arrived) {
                (Some((read, buffer)), _) => {
                    // The buffer may be larger than the folio.
                    let content =
                        page.checked_sub(read.first).and_then(|n| buffer[..read.pages as usize].get(n as usize));
                    content.map(|c| Source::Copy(c.0.as_ptr().addr()))
                }
                (None, Some(content)) => Some(Source::Copy(content.0.as_ptr().addr())),
                (None, None) => None,
            },
            State::Writing | State::Stored => None,
        }
    }

    /// Fills a run; each page that could not be filled is noted.
    fn fill_all(&mut self, first: u32, n: usize, source: Source) {
        let mut at = 0;
        while at < n {
            let page = first + at as u32;
            let mut done = self.fill(page, n - at, source.nth(at));
            if done == 0 && n - at > 1 {
                done = self.fill(page, 1, source.nth(at));
            }
            (page..page + done as u32).for_each(|p| self.is_in_place(p));
            if let Some(waiters) = self.waiters.as_ref().filter(|_| done > 0) {
                waiters.wake();
            }
            if done == 0 {
                self.counts.fill_errors += 1;
                self.folios.failed.push(page);
            }
            at += done.max(1);
        }
    }

    fn is_in_place(&mut self, page: u32) {
        if self.high.holds {
            self.high.hold(page);
        }
        match self.state[page as usize] {
            State::Staged | State::Written => self.leave_place(page, State::Mapped),
            _ => self.state[page as usize] = State::Mapped,
        }
    }

    /// Copies pages into their places, or zeros; how many. 0: it could not be done, and whoever waits goes on waiting.
    fn fill(&mut self, first: u32, n: usize, source: Source) -> usize {
        let mode = FillMode { quiet: self.high.holds || self.waiters.is_some(), protected: false };
        // SAFETY: the source is that many pages: zeros, a buffer, or staging places that are filled (the pages are in state Staged or
        // Written, and this lock is held). The destination is pages of the region, which is watched.
        unsafe { fill(&self.uffd, self.address(first), n * PAGE, source, mode) }
    }
}

/// Fills missing pages; how many.
///
/// # Safety
/// The source can be read and is that long; the destination is watched.
unsafe fn fill(uffd: &Uffd, to: usize, len: usize, source: Source, mode: FillMode) -> usize {
    for attempt in 0..8 {
        let done = match source {
            // SAFETY: the caller's contract.
            Source::Copy(from) => unsafe { uffd.copy_in_mode(to, from as *const u8, len, mode) },
            // SAFETY: as above.
            Source::Zeros if mode.quiet => unsafe { uffd.zero_quietly(to, len) },
            // SAFETY: as above.
            Source::Zeros => unsafe { uffd.zero(to, len) },
        };
        match done.errno {
            0 if done.bytes >= PAGE => return done.bytes / PAGE,
            // Something is there that nobody put there: it may be older than what was to go there.
            libc::EEXIST => fatal("a page that is out of memory is in the page tables"),
            0 | libc::EAGAIN => {}
            libc::ENOMEM => std::thread::sleep(std::time::Duration::from_millis(1 << attempt)),
            _ => break,
        }
    }
    0
}

impl Shared {
    /// Puts a page that was read in its place, without the lock: in state Reading nobody else does anything about it, and it stays in that
    /// state until the engine has mapped it. Nobody is woken before. False: that is left to whoever holds the lock.
    pub(super) fn put_in_place(&self, page: u32, content: &PageBuf) -> bool {
        let mode = FillMode { quiet: true, protected: false };
        let (to, from) = (self.start + page as usize * PAGE, Source::Copy(content.0.as_ptr().addr()));
        // SAFETY: the buffer is a page; the destination is one of the region, which is watched.
        unsafe { fill(&self.uffd, to, PAGE, from, mode) == 1 }
    }
}

impl Core {
    /// The pages that leave, are written and come back with this page: those of its folio.
    pub(super) fn unit(&self, page: u32) -> Range<u32> {
        let pages = 1 << self.engine.folio_order(PageId(page)).unwrap_or(0);
        let first = page & !(pages - 1);
        first..first + pages
    }

    /// Puts in place what the engine mapped. What cannot be is lost.
    pub(super) fn map_all(&mut self) {
        self.memory.map_all();
        while let Some(page) = self.memory.folios.failed.pop() {
            self.poison(page, "the kernel could not put it in its place");
        }
    }

    /// A folio that was to be written is not: it comes back to its place, as by a touch of a page of it.
    pub(super) fn call_off(&mut self, page: u32, write: bool, since: Instant) {
        self.engine.write_cancelled(&mut self.memory, PageId(page));
        self.touch(page, write, since);
    }

    /// A page is treated apart from its folio from now on, and is in use.
    pub(super) fn split_off(&mut self, page: u32) {
        self.engine.advise(PageId(page), Advice::InUse);
    }

    /// A folio was read, or some of its pages could not be: then it does not come in, and those that were touched are read by themselves.
    fn folio_arrived(&mut self, read: FolioRead, buffer: Box<[PageBuf]>, errors: &[(u32, StoreError)]) {
        let (pages, id) = (read.first..read.first + read.pages, PageId(read.first));
        let reading = |c: &Core, p: &u32| c.memory.state[*p as usize] == State::Reading;
        let there = pages.clone().filter(|p| reading(self, p)).count();
        let waiting: Vec<(u32, bool)> = pages.clone().filter_map(|p| Some((p, self.waiting.remove(p)?))).collect();
        self.memory.counts.swapped_in += (there - errors.len()) as u64;
        self.memory.counts.read_errors += errors.len() as u64;
        self.engine.read_done(&mut self.memory, id, errors.is_empty());
        if !errors.is_empty() {
            self.memory.folios.spare.push(buffer);
            return self.folio_failed(pages, &waiting);
        }
        let first = waiting.first().copied().filter(|(p, _)| reading(self, p));
        let first = first.or_else(|| Some((pages.clone().find(|p| reading(self, p))?, false)));
        self.memory.folios.arrived = Some((read, buffer));
        if let Some((page, write)) = first {
            self.touch(page, write, Instant::now());
        }
        let arrived = self.memory.folios.arrived.take();
        self.memory.folios.spare.extend(arrived.map(|(_, buffer)| buffer));
        // Who faulted on others may have been woken, too, and is served like anyone.
        for (page, write) in waiting.into_iter().filter(|(p, _)| first.is_none_or(|(touched, _)| touched != *p)) {
            self.serve(page, write, Instant::now(), false);
        }
    }

    /// Its pages are where they were, and no folio from now on. Who waits for one of them may have better luck with that one alone.
    fn folio_failed(&mut self, pages: Range<u32>, waiting: &[(u32, bool)]) {
        for page in pages.clone().filter(|&p| self.memory.state[p as usize] == State::Reading).collect::<Vec<_>>() {
            self.memory.state[page as usize] = State::Stored;
        }
        self.engine.split(PageId(pages.start));
        for &(page, write) in waiting {
            match self.unit(page).len() {
                1 => self.serve(page, write, Instant::now(), false),
                // It would be read with the others again, and so on for ever.
                _ => self.poison(page, "its folio could not be read"),
            }
        }
    }

    /// The states of pages of a folio belong together.
    pub(super) fn validate_folios(&self) -> Result<(), String> {
        let m = &self.memory;
        if !m.folios.to_map.is_empty() || !m.folios.failed.is_empty() {
            return Err(format!("pages {:?} {:?} were mapped, and are not in place", m.folios.to_map, m.folios.failed));
        }
        let mut at = 0;
        while at < m.state.len() as u32 {
            let unit = self.unit(at);
            at = unit.end;
            if unit.len() > 1 {
                self.validate_folio(unit)?;
            }
        }
        let named: std::collections::HashSet<u32> =
            m.staged.iter().filter(|(p, place)| m.place[*p as usize] == *place).map(|(p, _)| *p).collect();
        for page in (0..m.state.len() as u32).filter(|&p| m.state[p as usize] == State::Staged) {
            let unit = self.unit(page);
            let moving = unit.clone().any(|p| m.state[p as usize] == State::Leaving);
            if !moving && !unit.clone().any(|p| named.contains(&p)) {
                return Err(format!("page {page} is staged, and nobody will write it"));
            }
        }
        match m.leaving.iter().find(|&&p| m.state[p as usize] != State::Leaving) {
            Some(page) => Err(format!("page {page} is to leave and is {:?}", m.state[*page as usize])),
            None => Ok(()),
        }
    }

    fn validate_folio(&self, unit: Range<u32>) -> Result<(), String> {
        let m = &self.memory;
        let states = || unit.clone().map(|p| m.state[p as usize]).filter(|&s| s != State::Poisoned);
        let Some(first) = states().next() else { return Ok(()) };
        let alike = |s: State| s == first || [s, first].iter().all(|s| matches!(s, State::Leaving | State::Staged));
        if !states().all(alike) {
            let all: Vec<_> = unit.clone().map(|p| m.state[p as usize]).collect();
            return Err(format!("the pages {unit:?} of a folio are {all:?}"));
        }
        let in_swap = matches!(first, State::Leaving | State::Staged | State::Writing | State::Written);
        let slot = |p: u32| m.slot[p as usize];
        match unit.clone().find(|&p| in_swap && slot(p) != slot(unit.start) + (p - unit.start)) {
            Some(page) => Err(format!("page {page} of a folio has slot {}", slot(page))),
            None => Ok(()),
        }
    }
}

impl Shared {
    /// Reads a folio, and tells the engine. What failed on the way may be well where it is, so it is tried once more.
    pub(super) fn read_folio<'a>(&'a self, mut core: MutexGuard<'a, Core>, read: FolioRead) -> MutexGuard<'a, Core> {
        let pages: Vec<u32> = (read.first..read.first + read.pages)
            .filter(|&p| core.memory.state[p as usize] == State::Reading)
            .collect();
        let spare = core.memory.folios.take_buffer();
        let most_pages = core.memory.folios.most_pages;
        drop(core);
        let mut buffer = spare.unwrap_or_else(|| vec![PageBuf::default(); most_pages].into());
        let mut errors = Vec::new();
        for run in pages.chunk_by(|a, b| a + 1 == *b) {
            let behind = (run[0] - read.first) as usize;
            let slots: Vec<_> = run.iter().map(|&p| (read.slot + (p - read.first), p)).collect();
            let results = self.area.read_several(&slots, &mut buffer[behind..behind + run.len()]);
            errors.extend(run.iter().zip(results).filter_map(|(&p, result)| Some((p, result.err()?))));
        }
        core = self.lock();
        core.tick();
        core.folio_arrived(read, buffer, &errors);
        core
    }
}
