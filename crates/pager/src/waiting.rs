//! Faults that wait: for a page that is between two states, or for room.

use std::time::Instant;

/// Pages between two states that were touched, and whether to write. There are seldom more than the threads that fault, and a page is looked
/// up whenever one arrives or leaves, so it is a list.
#[derive(Default)]
pub(crate) struct Waiting(Vec<(u32, bool)>);

impl Waiting {
    pub(crate) fn add(&mut self, page: u32, write: bool) {
        match self.0.iter_mut().find(|(p, _)| *p == page) {
            Some((_, w)) => *w |= write,
            None => self.0.push((page, write)),
        }
    }

    /// Whether someone waited for it, and to write.
    pub(crate) fn remove(&mut self, page: u32) -> Option<bool> {
        let at = self.0.iter().position(|&(p, _)| p == page)?;
        Some(self.0.swap_remove(at).1)
    }
}

/// A fault that found no room.
pub(crate) struct Starved {
    pub(crate) page: u32,
    pub(crate) write: bool,
    pub(crate) since: Instant,
}
