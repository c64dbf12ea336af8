//! Facts about the memory of a process that are certain when a batch of changes is complete.

use std::ops::Range;
use std::sync::Arc;

use super::address_space::AddressSpace;
use super::core::Core;
use super::order::{Evidence, Mark, Watched};
use crate::core::State;
use crate::pagemap::Pagemap;
use crate::uffd::{PAGE, Probe};

/// Facts that a process and the processes forked from it in the batch tell of their memory.
pub(super) struct BatchEvidence<'a> {
    pub(super) core: &'a Core,
    pub(super) space: &'a AddressSpace,
}

impl Evidence for BatchEvidence<'_> {
    fn held(&self, range: &Range<usize>) -> Vec<(usize, Mark)> {
        let m = &self.core.memory;
        let mark = |page: u32| match m.is_held(page) {
            true if m.unmarked[page as usize] || m.state(page) == State::Poisoned => Some(Mark::Unsure),
            true => Some(Mark::Sure),
            false => (m.is_discarding[page as usize] || m.dropped[page as usize]).then_some(Mark::Discarding),
        };
        let pages = self.space.table.pages(range).into_iter();
        pages.filter_map(|(address, page)| Some((address, mark(page)?))).collect()
    }

    fn marks(&mut self, range: &Range<usize>) -> Option<Vec<usize>> {
        // If it could not be opened, it may be now: without it nothing can be decided.
        let opened = || Pagemap::of(self.space.pid).ok().map(Arc::new);
        self.space.pagemap.clone().or_else(opened)?.marked(range).ok()
    }

    fn has_content(&mut self, fork: usize, address: usize) -> Watched {
        // SAFETY: the memory is of a process that was forked from one that is served. If nothing is
        // there, nobody ever touched it.
        match unsafe { self.space.batch_forks[fork].zero(address, PAGE) }.errno {
            libc::EEXIST => Watched::Yes,
            0 | libc::ENOENT => Watched::No,
            _ => Watched::Unknown,
        }
    }

    fn is_watched(&mut self, fork: Option<usize>, address: usize) -> Watched {
        let uffd = fork.map_or(&self.space.uffd, |n| &self.space.batch_forks[n]);
        match uffd.probe(address) {
            Probe::Watched => Watched::Yes,
            Probe::NotWatched => Watched::No,
            Probe::Changing => Watched::Changing,
            Probe::Gone => Watched::Unknown,
        }
    }

    fn is_doubtful(&self, range: &Range<usize>) -> bool {
        !self.space.doubtful.parts(range).is_empty()
    }
}
