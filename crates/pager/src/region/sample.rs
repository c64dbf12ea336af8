//! Access sampling: old pages wait in staging places for a while before they are written. Those that are touched meanwhile are in use, which the
//! engine learns as by an accessed bit. How many wait is the engine's to say, by what they cost ([`SampleBudget`]).

use std::time::Instant;

use refault_mm::{SampleBudget, SampleStats};

use super::core::Core;

/// No more of the memory is away as samples: the most for which the prototype gained.
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

    pub(super) fn set_memory(&mut self, pages: u64) {
        self.budget.set_max_pages(pages * MAX_PERCENT / 100);
    }

    /// Pages were moved out, which took so long.
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
    /// Pages that stay in staging places unwritten: those that always do, and samples.
    pub(super) fn pages_to_keep(&self) -> u64 {
        self.standby_pages + self.sampling.budget.away_pages()
    }

    /// More may be away by now.
    pub(super) fn take_samples(&mut self) {
        let now = self.sampling.started.elapsed().as_nanos() as u64;
        self.sampling.budget.take(now);
    }

    /// Pages that waited were touched, and were brought back in that time. Those that stay take their place as samples, or others do.
    pub(super) fn sample_seen(&mut self, since: Instant, pages: u64) {
        let moved = self.sampling.move_ns * pages;
        self.sampling.budget.sample_done(since.elapsed().as_nanos() as u64 + moved, pages, pages);
    }
}
