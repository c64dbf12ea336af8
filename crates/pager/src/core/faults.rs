//! Faults that wait: for a page that is between two states, or for a frame.

/// A fault that was not served yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) page: u32,
    pub(crate) write: bool,
    pub(crate) since_ns: u64,
}

/// Pages between two states that were touched, and whether to write. There are seldom more than the
/// threads that fault, and a page is looked up whenever one arrives or leaves, so it is a list.
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

    /// The pages.
    #[cfg(test)]
    pub(crate) fn pages(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().map(|&(page, _)| page)
    }
}

/// Faults that found no frame, in the order in which they are tried again.
#[derive(Default)]
pub(crate) struct WaitingForFrame(Vec<Fault>);

impl WaitingForFrame {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, page: u32) -> bool {
        self.0.iter().any(|f| f.page == page)
    }

    /// Takes all faults, to be tried again; with each, whether it has waited longer than the limit.
    pub(crate) fn take(&mut self, now_ns: u64, limit_ns: u64) -> Vec<(Fault, bool)> {
        let is_late = |f: Fault| (f, now_ns.saturating_sub(f.since_ns) > limit_ns);
        std::mem::take(&mut self.0).into_iter().map(is_late).collect()
    }
}

/// Messages about lost pages, at most.
pub(crate) const MAX_MESSAGES: u64 = 16;
