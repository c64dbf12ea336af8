//! Folios: pages that come, go and are known to the engine as one. Each page has a state of its
//! own; those of a folio change together. Pages that the engine maps in one call are put in place
//! by one, too.

use std::ops::Range;

use refault_mm::{Ack, Advice, PageId};

use super::faults::Fault;
use super::folio_reads::FolioRead;
use super::memory::Memory;
use super::operations::{FillMode, Operations, Source};
use super::places::WINDOW;
use super::state::State;
use super::swap_core::Core;
use crate::store::{PageBuf, StoreError};

/// Where the content of pages that follow one another comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    ZeroPage,
    /// Zero-filled frames of their own, from this page of the window on.
    Zeros(usize),
    /// Staging places, from this one on.
    Places(u32),
    /// Content of a page that was read.
    Page,
    /// Content of a folio that was read, from this page of it on.
    Folio(usize),
}

impl Origin {
    fn nth(self, n: usize) -> Origin {
        match self {
            Origin::ZeroPage => Origin::ZeroPage,
            Origin::Zeros(at) => Origin::Zeros(at + n),
            Origin::Places(place) => Origin::Places(place + n as u32),
            Origin::Page if n == 0 => Origin::Page,
            // There is no more of it.
            Origin::Page => Origin::Folio(usize::MAX),
            Origin::Folio(at) => Origin::Folio(at + n),
        }
    }
}

impl<O: Operations> Memory<O> {
    /// The engine orders a folio in.
    pub(crate) fn swap_in(&mut self, first: u32, order: u8, slot: u32) -> Ack {
        if order == 0 && self.read_in(first, slot) {
            return Ack::Pending;
        }
        let pages = first..first + (1 << order);
        // A page that is lost may be part of a folio that is not. By itself it would be read ahead;
        // the engine does not know of it.
        let is = |state: State| pages.clone().filter(|&p| self.state(p) == state).count();
        let (stored, lost) = (is(State::Stored), is(State::Poisoned));
        if stored == 0 || stored + lost < pages.len() {
            self.counts.inconsistent += u64::from(stored + lost < pages.len());
            return Ack::Failed;
        }
        for page in pages.clone().filter(|&p| self.state(p) == State::Stored).collect::<Vec<_>>() {
            self.set_state(page, State::Reading);
        }
        match order {
            0 => self.reads.push((first, slot)),
            _ => self.folios.reads.push(FolioRead { first, pages: 1 << order, slot }),
        }
        Ack::Pending
    }

    /// Pages that are to be read and not read yet.
    pub(crate) fn pages_to_read(&self) -> u64 {
        self.reads.len() as u64 + self.folios.reads.iter().map(|r| u64::from(r.pages)).sum::<u64>()
    }

    /// Puts what the engine mapped in place, and lets waiting threads go on.
    fn map_all(&mut self) {
        let mut pages = std::mem::take(&mut self.folios.to_map);
        let mut at = 0;
        while at < pages.len() {
            if self.placed == Some(pages[at]) {
                self.placed = None;
                self.set_state(pages[at], State::Mapped);
                self.ops.wake(pages[at]);
            }
            let Some(from) = self.source(pages[at]) else {
                at += 1;
                continue;
            };
            let goes_on = |n: &usize| {
                let next = pages.get(at + n).filter(|&&p| p == pages[at] + *n as u32);
                next.is_some_and(|&p| self.source(p) == Some(from.nth(*n)))
            };
            let n = 1 + (1..).take_while(goes_on).count();
            self.fill_all(pages[at], n, from);
            at += n;
        }
        pages.clear();
        self.folios.to_map = pages;
    }

    /// Where the content of a page is; `None`: in place, or nowhere.
    fn source(&self, page: u32) -> Option<Origin> {
        match self.state(page) {
            State::Mapped | State::Leaving | State::Poisoned => None,
            State::Empty if self.write => Some(Origin::Zeros(page as usize % WINDOW)),
            State::Empty => Some(Origin::ZeroPage),
            State::Staged | State::Written => Some(Origin::Places(self.place[page as usize])),
            State::Reading => match (&self.folios.arrived, &self.arrived) {
                (Some((read, _)), _) => {
                    // The buffer may be larger than the folio.
                    let nth = page.checked_sub(read.first).filter(|&n| n < read.pages);
                    nth.map(|n| Origin::Folio(n as usize))
                }
                (None, Some(_)) => Some(Origin::Page),
                (None, None) => None,
            },
            State::Writing | State::Stored | State::CowSwap => None,
        }
    }

    /// Fills a run; each page that could not be filled is noted.
    fn fill_all(&mut self, first: u32, n: usize, from: Origin) {
        let mut at = 0;
        while at < n {
            let page = first + at as u32;
            let mut done = self.fill(page, n - at, from.nth(at));
            if done == 0 && n - at > 1 {
                done = self.fill(page, 1, from.nth(at));
            }
            (page..page + done as u32).for_each(|p| self.is_in_place(p));
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
        match self.state(page) {
            State::Staged | State::Written => self.leave_place(page, State::Mapped),
            _ => self.set_state(page, State::Mapped),
        }
    }

    /// Copies pages into their places, or zeros; how many. 0: it could not be done, and threads
    /// that wait go on waiting.
    fn fill(&mut self, first: u32, n: usize, from: Origin) -> usize {
        let source = match (from, &self.arrived, &self.folios.arrived) {
            (Origin::ZeroPage, ..) => Source::ZeroPage,
            (Origin::Zeros(_), ..) => Source::Zeros,
            (Origin::Places(place), ..) => Source::Places(place),
            (Origin::Page, Some(content), _) => Source::Content(std::slice::from_ref(content)),
            (Origin::Folio(at), _, Some((_, content))) => Source::Content(&content[at..]),
            (Origin::Page | Origin::Folio(_), ..) => return 0,
        };
        self.ops.fill(first, n, source, FillMode { quiet: self.high.holds, protected: false })
    }
}

impl<O: Operations> Core<O> {
    /// Pages that leave, are written and come back together with this page: its folio.
    pub(crate) fn unit(&self, page: u32) -> Range<u32> {
        let pages = 1 << self.engine.folio_order(PageId(page)).unwrap_or(0);
        let first = page & !(pages - 1);
        first..first + pages
    }

    /// Puts in place what the engine mapped. Pages that cannot be put in place are lost.
    pub(crate) fn map_all(&mut self) {
        self.memory.map_all();
        while let Some(page) = self.memory.folios.failed.pop() {
            self.poison(page, "the kernel could not put it in its place");
        }
    }

    /// A folio that was to be written is not: it comes back to its place, as by a touch of a page
    /// of it.
    pub(super) fn cancel_write(&mut self, fault: Fault) {
        self.engine.write_cancelled(&mut self.memory, PageId(fault.page));
        self.touch(fault);
    }

    /// Likewise, though nobody touched it.
    pub(super) fn cancel_write_now(&mut self, page: u32) {
        self.cancel_write(Fault { page, write: false, since_ns: self.now_ns });
    }

    /// A page is treated apart from its folio from now on, and is in use.
    pub(crate) fn split_off(&mut self, page: u32) {
        self.engine.advise(PageId(page), Advice::InUse);
    }

    /// Takes a folio that was read. If some of its pages could not be read, it does not come in,
    /// and the pages that were touched are read by themselves.
    pub(crate) fn folio_arrived(&mut self, read: FolioRead, buffer: Box<[PageBuf]>, errors: &[(u32, StoreError)]) {
        let (pages, id) = (read.first..read.first + read.pages, PageId(read.first));
        let reading = |c: &Core<O>, p: &u32| c.memory.state(*p) == State::Reading;
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
            self.touch_now(page, write);
        }
        let arrived = self.memory.folios.arrived.take();
        self.memory.folios.spare.extend(arrived.map(|(_, buffer)| buffer));
        // Threads that faulted on others may have been woken, too, and are served like any.
        for (page, write) in waiting.into_iter().filter(|(p, _)| first.is_none_or(|(touched, _)| touched != *p)) {
            self.serve_now(page, write);
        }
    }

    /// Splits a folio that could not be read; its pages stay where they are. A thread that waits
    /// for one of them may have better luck with that page alone.
    fn folio_failed(&mut self, pages: Range<u32>, waiting: &[(u32, bool)]) {
        for page in pages.clone().filter(|&p| self.memory.state(p) == State::Reading).collect::<Vec<_>>() {
            self.memory.set_state(page, State::Stored);
        }
        self.engine.split(PageId(pages.start));
        for &(page, write) in waiting {
            match self.unit(page).len() {
                1 => self.serve_now(page, write),
                // The page would be read with its folio again, and so on for ever.
                _ => self.poison(page, "its folio could not be read"),
            }
        }
    }
}
