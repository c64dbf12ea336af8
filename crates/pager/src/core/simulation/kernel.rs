//! The kernel: pages and staging places of a process, who waits in a fault, and what it refuses.

use std::cell::RefCell;
use std::ops::Range;

use super::profile::Rates;
use super::random::Random;
use super::threads::Threads;
use crate::core::{FillMode, Operations, Progress, Source, Stopped};
use crate::store::PageBuf;

/// A frame with what is in it.
pub(crate) type Frame = Box<PageBuf>;

/// A fault that the pager was not told of yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub(crate) page: u32,
    pub(crate) write: bool,
}

/// Faults that were injected so far, as they were told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Injected {
    pub(crate) fills_refused: u64,
    pub(crate) fills_short: u64,
    pub(crate) moves_again: u64,
    pub(crate) moves_busy: u64,
    pub(crate) moves_short: u64,
    pub(crate) moves_misreported: u64,
    pub(crate) moves_failed: u64,
    pub(crate) moves_lost: u64,
    pub(crate) places_taken: u64,
    pub(crate) stray_wakes: u64,
    pub(crate) written_unknown: u64,
    pub(crate) protects_refused: u64,
}

impl Injected {
    fn all(&mut self) -> [&mut u64; 12] {
        [
            &mut self.fills_refused,
            &mut self.fills_short,
            &mut self.moves_again,
            &mut self.moves_busy,
            &mut self.moves_short,
            &mut self.moves_misreported,
            &mut self.moves_failed,
            &mut self.moves_lost,
            &mut self.places_taken,
            &mut self.stray_wakes,
            &mut self.written_unknown,
            &mut self.protects_refused,
        ]
    }

    pub(crate) fn add(&mut self, other: &Injected) {
        let mut other = *other;
        self.all().into_iter().zip(other.all()).for_each(|(n, more)| *n += *more);
    }

    pub(crate) fn total(mut self) -> u64 {
        self.all().into_iter().map(|n| *n).sum()
    }
}

/// All of it.
pub(crate) struct State {
    pub(crate) pages: Vec<Option<Frame>>,
    pub(crate) places: Vec<Option<Frame>>,
    pub(crate) poisoned: Vec<bool>,
    /// The first write is a fault.
    protected: Vec<bool>,
    /// Written since the pager asked last.
    written: Vec<bool>,
    pub(crate) threads: Threads,
    pub(crate) messages: Vec<Message>,
    pub(crate) injected: Injected,
    /// Places with content that nobody put there: they are never given back.
    pub(crate) garbage: u64,
    /// Pages that were reported written.
    pub(crate) told_written: u64,
    rates: Rates,
    random: Random,
    /// Nothing goes wrong any more.
    pub(crate) is_calm: bool,
}

/// The kernel, as the core sees it, and the code that makes its calls.
pub(crate) struct Kernel(pub(crate) RefCell<State>);

/// Outcome of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Done,
    /// The thread waits.
    Faulted,
    /// `SIGBUS`.
    Signal,
}

impl State {
    fn goes_wrong(&mut self, one_in: u64) -> bool {
        !self.is_calm && self.random.one_in(one_in)
    }

    /// Threads that wait for a page try again.
    fn wake(&mut self, page: u32) {
        self.threads.wake(page);
        if self.goes_wrong(self.rates.stray_wake) {
            self.injected.stray_wakes += 1;
            self.threads.wake_one(&mut self.random);
        }
    }

    /// A thread touches a page.
    pub(crate) fn access(&mut self, thread: usize, page: u32, write: bool) -> Access {
        let i = page as usize;
        if self.poisoned[i] {
            return Access::Signal;
        }
        if self.pages[i].is_none() || write && self.protected[i] {
            self.threads.block(thread, page, write);
            self.messages.push(Message { page, write });
            return Access::Faulted;
        }
        self.written[i] |= write;
        Access::Done
    }

    /// Pages in place.
    pub(crate) fn present(&self) -> u64 {
        self.pages.iter().flatten().count() as u64
    }

    /// Staging places that are filled.
    pub(crate) fn filled(&self) -> u64 {
        self.places.iter().flatten().count() as u64
    }
}

impl Kernel {
    pub(crate) fn new(pages: u32, places: usize, threads: usize, rates: Rates, seed: u64) -> Kernel {
        let n = pages as usize;
        Kernel(RefCell::new(State {
            pages: (0..n).map(|_| None).collect(),
            places: (0..places).map(|_| None).collect(),
            poisoned: vec![false; n],
            protected: vec![false; n],
            written: vec![false; n],
            threads: Threads::new(threads),
            messages: Vec::new(),
            injected: Injected::default(),
            garbage: 0,
            told_written: 0,
            rates,
            random: Random::new(seed ^ 0x6E72_656C),
            is_calm: false,
        }))
    }

    /// Empties places that are of no use.
    pub(crate) fn empty(&self, places: &[u32]) {
        let k = &mut *self.0.borrow_mut();
        for &place in places {
            assert!(k.places[place as usize].take().is_some(), "place {place} is discarded and was empty");
        }
    }

    /// The content of a place that is being written.
    pub(crate) fn staged(&self, place: u32) -> Frame {
        self.0.borrow().places[place as usize].clone().expect("a place that is written is filled")
    }
}

impl Operations for Kernel {
    fn fill(&self, first: u32, pages: usize, source: Source<'_>, mode: FillMode) -> usize {
        let k = &mut *self.0.borrow_mut();
        if k.goes_wrong(k.rates.fill_refused) {
            k.injected.fills_refused += 1;
            return 0;
        }
        let mut n = pages;
        if pages > 1 && k.goes_wrong(k.rates.fill_short) {
            k.injected.fills_short += 1;
            n = 1 + k.random.below(pages as u64 - 1) as usize;
        }
        for i in 0..n {
            let (page, at) = (first + i as u32, first as usize + i);
            let frame = match source {
                Source::ZeroPage | Source::Zeros => Frame::default(),
                Source::Places(place) => {
                    k.places[place as usize + i].clone().expect("a page comes back from a place that is filled")
                }
                Source::Content(content) => Box::new(content[i].clone()),
            };
            assert!(!k.poisoned[at], "page {page} is filled and was lost");
            assert!(k.pages[at].replace(frame).is_none(), "page {page} is filled and was in place");
            // As if written: what comes in is not protected.
            k.written[at] = true;
            k.protected[at] = mode.protected;
            if !mode.quiet {
                k.wake(page);
            }
        }
        n
    }

    fn move_out(&self, first: u32, place: u32, pages: usize) -> Progress {
        let k = &mut *self.0.borrow_mut();
        let refused = |stopped| Progress { pages: 0, stopped: Some(stopped) };
        if k.goes_wrong(k.rates.move_again) {
            k.injected.moves_again += 1;
            return refused(Stopped::Again);
        }
        if k.goes_wrong(k.rates.move_busy) {
            k.injected.moves_busy += 1;
            return refused(Stopped::Busy);
        }
        if k.goes_wrong(k.rates.move_error) {
            k.injected.moves_failed += 1;
            return refused(Stopped::Error);
        }
        if k.goes_wrong(k.rates.place_taken) && k.places[place as usize].is_none() {
            k.injected.places_taken += 1;
            k.garbage += 1;
            k.places[place as usize] = Some(Frame::default());
            return refused(Stopped::Error);
        }
        if k.goes_wrong(k.rates.move_lost) {
            k.injected.moves_lost += 1;
            k.pages[first as usize] = None;
            return refused(Stopped::Error);
        }
        let is_misreported = k.goes_wrong(k.rates.move_misreported);
        let mut n = if is_misreported { 1 } else { pages };
        if n > 1 && k.goes_wrong(k.rates.move_short) {
            k.injected.moves_short += 1;
            n = 1 + k.random.below(n as u64 - 1) as usize;
        }
        for i in 0..n {
            let Some(frame) = k.pages[first as usize + i].take() else {
                return Progress { pages: i, stopped: Some(Stopped::Error) };
            };
            let to = &mut k.places[place as usize + i];
            assert!(to.replace(frame).is_none(), "a page is moved to a place that is filled");
        }
        if is_misreported {
            k.injected.moves_misreported += 1;
            return refused(Stopped::Error);
        }
        Progress { pages: n, stopped: None }
    }

    fn protect(&self, page: u32, protect: bool) -> bool {
        let k = &mut *self.0.borrow_mut();
        // A protection that cannot be lifted ends the process, so it always can be.
        if protect && k.goes_wrong(k.rates.protect_refused) {
            k.injected.protects_refused += 1;
            return false;
        }
        assert!(k.pages[page as usize].is_some(), "page {page} is protected and not in place");
        k.protected[page as usize] = protect;
        if !protect {
            k.wake(page);
        }
        true
    }

    fn take_written(&self, pages: Range<u32>, found: &mut Vec<Range<u32>>) {
        let k = &mut *self.0.borrow_mut();
        for page in pages {
            let i = page as usize;
            if k.pages[i].is_some() && std::mem::take(&mut k.written[i]) {
                k.told_written += 1;
                found.push(page..page + 1);
            }
        }
    }

    fn was_written(&self, page: u32) -> Option<bool> {
        let k = &mut *self.0.borrow_mut();
        if k.goes_wrong(k.rates.written_unknown) {
            k.injected.written_unknown += 1;
            return None;
        }
        Some(k.written[page as usize])
    }

    fn wake(&self, page: u32) {
        self.0.borrow_mut().wake(page);
    }

    fn poison(&self, page: u32, _why: Option<&str>) {
        let k = &mut *self.0.borrow_mut();
        k.poisoned[page as usize] = true;
        k.pages[page as usize] = None;
    }

    fn discard(&self, first: u32, pages: usize) -> std::io::Result<()> {
        let k = &mut *self.0.borrow_mut();
        for i in first as usize..first as usize + pages {
            (k.pages[i], k.poisoned[i], k.protected[i]) = (None, false, false);
        }
        Ok(())
    }

    fn is_present(&self, page: u32) -> bool {
        self.0.borrow().pages[page as usize].is_some()
    }

    fn is_filled(&self, place: u32) -> bool {
        self.0.borrow().places[place as usize].is_some()
    }

    fn fatal(&self, what: &str) -> ! {
        panic!("fatal: {what}")
    }
}
