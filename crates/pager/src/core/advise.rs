//! Advice of the owner of memory about it.

use std::ops::Range;

use refault_mm::{Advice, PageId, World};

use super::operations::Operations;
use super::state::State;
use super::swap_core::Core;

impl<O: Operations> Core<O> {
    /// `MADV_COLD`: what they were accessed for before is forgotten, too.
    pub(crate) fn advise_cold(&mut self, pages: Range<u32>) {
        self.memory.collect_writes(pages.clone());
        pages.clone().for_each(|p| _ = self.memory.test_and_clear_young(PageId(p)));
        self.engine.advise_range(PageId(pages.start), pages.len() as u32, Advice::Cold);
    }

    /// `MADV_PAGEOUT`: orders pages out.
    pub(crate) fn page_out(&mut self, pages: Range<u32>) {
        self.engine.page_out(&mut self.memory, PageId(pages.start), pages.len() as u32);
    }

    /// Whether the page is to be brought in; `fresh`: even if it was never touched.
    pub(crate) fn wants(&self, page: u32, fresh: bool) -> bool {
        match self.memory.state(page) {
            State::Empty => fresh,
            State::Mapped | State::Poisoned => false,
            _ => true,
        }
    }

    /// Gives up the content of these pages, except of pages on their way. Returns whether all were
    /// given up.
    pub(crate) fn give_up(&mut self, pages: Range<u32>) -> bool {
        let moving = |p: u32| self.unit(p).any(|p| self.memory.state(p).is_moving());
        let all: Vec<(u32, bool)> = pages.map(|p| (p, moving(p))).collect();
        let mut done = true;
        for run in all.chunk_by(|a, b| a.1 == b.1) {
            match run[0] {
                (_, true) => done = false,
                (first, false) => self.give_up_run(first, run.len()),
            }
        }
        done
    }

    fn give_up_run(&mut self, first: u32, nr: usize) {
        let pages = first..first + nr as u32;
        let held = pages.clone().filter(|&p| self.memory.state(p) != State::Empty).count();
        self.memory.counts.given_up += held as u64;
        let cut = self.cancel_writes(pages.clone());
        self.memory.dropping = true;
        self.engine.zap_range(&mut self.memory, PageId(first), nr as u32);
        self.memory.dropping = false;
        for page in pages {
            match self.memory.state(page) {
                State::Empty => {}
                State::Stored | State::Poisoned => self.memory.set_state(page, State::Empty),
                // The engine keeps what it was told to drop.
                _ => self.memory.counts.inconsistent += 1,
            }
        }
        for page in cut {
            // The folio was cut: the rest of it stays.
            self.touch_now(page, false);
        }
        // A thread that touches what was given up faults, and waits for the lock under which this
        // is done.
        if let Err(e) = self.memory.ops.discard(first, nr) {
            self.memory.ops.fatal(&format!("discarding memory: {e}"));
        }
    }

    /// Cancels waiting writes of pages of the range. Returns waiting pages of the same folios
    /// outside of the range.
    fn cancel_writes(&mut self, pages: Range<u32>) -> Vec<u32> {
        let mut cut = Vec::new();
        let mut at = pages.start;
        while at < pages.end {
            let unit = self.unit(at);
            let is_staged = |p: &u32| self.memory.state(*p) == State::Staged;
            if unit.clone().any(|p| is_staged(&p)) {
                cut.extend(unit.clone().filter(|p| !pages.contains(p)).filter(is_staged));
                self.engine.write_cancelled(&mut self.memory, PageId(at));
            }
            at = unit.end;
        }
        cut
    }
}
