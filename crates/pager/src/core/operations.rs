//! Operations below the core: calls on memory that a core pages.
//!
//! A region, a mapped file and the simulated kernel of the tests implement them, as
//! implementations of Linux's `struct damon_operations` lie below the core of DAMON. The core calls
//! some of them itself, with everything locked; those that take long (moves) are made by who
//! drives it, between two calls of the core. Processes do not implement them: a call on their
//! memory may change the core that makes it (docs/architecture.md, Whole programs and the core).

use std::ops::Range;

use crate::store::PageBuf;
pub(crate) use crate::uffd::FillMode;

/// Content that is to be put in the place of missing pages.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The kernel's page of zeros, shared until it is written.
    ZeroPage,
    /// Pages of zeros of their own; no more than [`super::places::WINDOW`].
    Zeros,
    /// Content of staging places, from this one on.
    Places(u32),
    /// Content that was read; at least as many pages as are to be filled.
    Content(&'a [PageBuf]),
}

/// How far a call that moves pages came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// Pages that were moved, from the first on.
    pub(crate) pages: usize,
    /// Why no more were; `None`: all were, or it may go on from there.
    pub(crate) stopped: Option<Stopped>,
}

/// Reason why a call stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// The call is to be repeated.
    Again,
    /// A device or another task holds the page.
    Busy,
    /// An error, which need not be true: what is where decides.
    Error,
}

/// Calls on the memory of a driver. Drivers without a use for one keep what stands here, as an
/// operation of DAMON may be a null pointer.
pub(crate) trait Operations {
    /// Fills missing pages, and wakes who waits for them unless the mode is quiet. How many, from
    /// the first on: fewer if the kernel refuses, and then nobody is woken for the rest.
    fn fill(&self, first: u32, pages: usize, source: Source<'_>, mode: FillMode) -> usize;

    /// Moves pages that lie side by side to places that do, by one call.
    fn move_out(&self, _first: u32, _place: u32, _pages: usize) -> Progress {
        Progress { pages: 0, stopped: Some(Stopped::Busy) }
    }

    /// Protects a page from writes, or lifts that and wakes who waits. False: it could not be done.
    fn protect(&self, _page: u32, _protect: bool) -> bool {
        false
    }

    /// Pages of a range that were written since this was asked last. Writes that cannot be had are
    /// not known.
    fn take_written(&self, _pages: Range<u32>, _found: &mut Vec<Range<u32>>) {}

    /// Whether a page was written since [`Operations::take_written`]; `None`: nothing tells.
    fn was_written(&self, _page: u32) -> Option<bool> {
        None
    }

    /// Wakes the threads that wait for a page, to try again.
    fn wake(&self, page: u32);

    /// A thread that touches a page gets a signal from now on. `why`: a line says so.
    fn poison(&self, page: u32, why: Option<&str>);

    /// Drops what is in place; the pages are missing then.
    fn discard(&self, first: u32, pages: usize) -> std::io::Result<()>;

    /// Whether a page is in place.
    fn is_present(&self, page: u32) -> bool;

    /// Whether a staging place is filled.
    fn is_filled(&self, _place: u32) -> bool {
        false
    }

    /// Ends the process after something that may not happen: memory cannot be trusted any more, so
    /// nothing goes on.
    fn fatal(&self, what: &str) -> !;
}
