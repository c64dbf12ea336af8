//! Access sampling: old pages wait in staging places for a while before they are written. Pages
//! that are touched meanwhile are in use, which the engine learns as by an accessed bit. How many
//! wait is the engine's to say, by what they cost ([`SampleBudget`]).

use std::time::{Duration, Instant};

use crate::control::{SampleBudget, SampleStats};

use super::core::Core;

/// Percent of the memory that may be away as samples: the most for which the prototype gained.
const MAX_PERCENT: u64 = 12;

pub(super) struct Sampling {
    budget: SampleBudget,
    /// Moving a page out, lately.
    move_ns: u64,
    started: Instant,
}

impl Sampling {
    pub(super) fn new(cpu_percent: u32) -> Sampling {
        Sampling { budget: SampleBudget::new(cpu_percent, 0), move_ns: 0, started: Instant::now() }
    }

    /// Pages were moved out, in the time since `since`.
    pub(super) fn moved(&mut self, since: Instant, pages: usize) {
        if let Some(each) = (since.elapsed().as_nanos() as u64).checked_div(pages as u64) {
            self.move_ns = (self.move_ns * 7 + each) / 8;
        }
    }

    pub(super) fn stats(&self) -> SampleStats {
        self.budget.stats()
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        self.budget.validate()
    }
}

impl Core {
    /// So much memory there is.
    pub(super) fn set_memory(&mut self, pages: u64) {
        self.sampling.budget.set_max_pages(pages * MAX_PERCENT / 100);
        self.keep_samples();
    }

    /// More may be away by now.
    pub(super) fn take_samples(&mut self) {
        let now = self.sampling.started.elapsed().as_nanos() as u64;
        self.sampling.budget.take(now);
        self.keep_samples();
    }

    /// Pages that waited were touched, and were brought back in that time, if there are any. Pages
    /// that stay take their place as samples, or others do.
    pub(super) fn note_rescued(&mut self, took: impl FnOnce() -> Duration) {
        let pages = std::mem::take(&mut self.rescued);
        if pages > 0 {
            let ns = took().as_nanos() as u64 + self.sampling.move_ns * pages;
            self.sampling.budget.sample_done(ns, pages, pages);
            self.keep_samples();
        }
    }

    /// Faults that found no frame try again.
    pub(super) fn retry(&mut self) {
        if self.is_waiting_for_frame() {
            let begun = Instant::now();
            self.retry_waiting();
            self.note_rescued(|| begun.elapsed());
        }
    }

    /// Pages stay in staging places unwritten that always do, and samples.
    pub(super) fn keep_samples(&mut self) {
        self.pages_to_keep = self.standby_pages + self.sampling.budget.away_pages();
    }
}
