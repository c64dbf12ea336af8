//! Orders that are not answered soon: the process is stopped, by a signal or a debugger, or it gets
//! no processor.
//!
//! The manager gives orders under its lock, because no change of a mapping may be read between the
//! choice of an address and the move. Waiting there for ever would stop all processes, perhaps also
//! the debugger that is to let this process go on. So the order stays open: its pages keep their
//! state and their places, and until it is answered nothing of this process is read, served or put
//! in place. Work for other processes goes on. The kernel keeps the events of this process
//! meanwhile, in order.

use super::Shared;
use super::core::{Core, Pending};
use crate::core::State;
use crate::store::{PageBuf, StoreError};

/// Nanoseconds within which a late agent must answer to be waited for again.
const SOON_NS: u64 = 1_000_000;

/// An order that was not answered, and what waits for that.
pub(super) struct UnansweredOrder {
    /// Since when it is open, in nanoseconds.
    since_ns: u64,
    /// The pages, with their places, in the order of the window.
    moves: Vec<(u32, u32)>,
    /// Bits by move: another process had the page, too.
    shared: u64,
    /// Faults that were read before, and pages of calls that were touched before.
    faults: Vec<Pending>,
    asked: Vec<usize>,
    /// Pages that could not be marked.
    to_mark: Vec<u32>,
    /// Results of pages that were being read, or could not be written: they would have to be put in
    /// place.
    read: Vec<(u32, Result<Box<PageBuf>, StoreError>)>,
    unwritten: Vec<u32>,
}

impl Shared {
    /// Answers that are late are waited for, and others are not.
    pub(super) fn watch_answers(&self, core: &mut Core) {
        for index in std::mem::take(&mut core.changed_answers) {
            let Some(s) = core.space(index) else { continue };
            if let Some(agent) = &s.agent {
                // If it fails, the scanner looks.
                _ = self.lanes.watch_answer(agent.link.raw(), index, s.serial, s.unanswered.is_some());
            }
        }
    }
}

impl Core {
    /// Whether a process has not answered an order.
    pub(super) fn is_unanswered(&self, space: usize) -> bool {
        self.space(space).is_some_and(|s| s.unanswered.is_some())
    }

    fn open_order(&mut self, space: usize) -> Option<&mut UnansweredOrder> {
        self.space_mut(space)?.unanswered.as_deref_mut()
    }

    /// No answer came in time, which was waited for since time last went on.
    pub(super) fn leave_open(&mut self, owner: usize, moves: Vec<(u32, u32)>, shared: u64, waited_ns: u64) {
        self.unanswered += 1;
        self.changed_answers.push(owner);
        let since_ns = self.now_ns + waited_ns;
        if let Some(s) = self.space_mut(owner) {
            let (faults, asked, to_mark, read, unwritten) = Default::default();
            let open = UnansweredOrder { since_ns, moves, shared, faults, asked, to_mark, read, unwritten };
            s.unanswered = Some(Box::new(open));
        }
    }

    /// If the process has not answered, a fault of it waits for that.
    pub(super) fn holds_fault(&mut self, p: Pending) -> bool {
        self.open_order(p.space).map(|u| u.faults.push(p)).is_some()
    }

    /// Likewise a page that was touched to ask something.
    pub(super) fn holds_asked(&mut self, (space, at): (usize, usize)) -> bool {
        self.open_order(space).map(|u| u.asked.push(at)).is_some()
    }

    /// Likewise a page that is to be marked.
    pub(super) fn holds_mark(&mut self, space: usize, page: u32) -> bool {
        self.open_order(space).map(|u| u.to_mark.push(page)).is_some()
    }

    /// Likewise a page that was read, or could not be. A result that is not held is given back.
    pub(super) fn holds_read(
        &mut self,
        page: u32,
        content: Result<Box<PageBuf>, StoreError>,
    ) -> Option<Result<Box<PageBuf>, StoreError>> {
        match self.open_order(self.memory.owner(page)) {
            Some(u) => {
                u.read.push((page, content));
                None
            }
            None => Some(content),
        }
    }

    /// Likewise a page that could not be written.
    pub(super) fn holds_unwritten(&mut self, page: u32) -> bool {
        let owner = self.memory.owner(page);
        self.open_order(owner).map(|u| u.unwritten.push(page)).is_some()
    }

    /// Keeps pages in memory that are to leave a process, except pages of an open order.
    pub(super) fn keep_all(&mut self, owner: usize) {
        let ordered: Vec<u32> = self.open_order(owner).map_or(Vec::new(), |u| u.moves.iter().map(|m| m.0).collect());
        let memory = &self.memory;
        let (keep, rest): (Vec<u32>, Vec<u32>) = self.memory.leaving.iter().partition(|&&p| memory.owner(p) == owner);
        self.memory.leaving = rest.into();
        for page in keep {
            // A page that was given up and ordered out again is named twice.
            if self.memory.state(page) == State::Leaving && !ordered.contains(&page) {
                self.stay(page);
                self.serve_waiting(page);
            }
        }
    }

    /// Looks for the answer. If it is there, or never comes, all goes on that waited for it.
    pub(super) fn note_answer(&mut self, space: usize) {
        let now_ns = self.now_ns;
        let Some(s) = self.space_mut(space) else { return };
        let Some(u) = &s.unanswered else { return };
        if let Some(agent) = &mut s.agent {
            agent.is_late = now_ns.saturating_sub(u.since_ns) > SOON_NS;
        }
        match s.agent.as_ref().map(|agent| agent.late_answer(u.moves.len())) {
            Some(Ok(None)) => {}
            Some(Ok(Some(outcomes))) => self.close_order(space, Some(outcomes)),
            Some(Err(_)) | None => self.give_up_order(space),
        }
    }

    /// The process is gone, and with it the answer.
    pub(super) fn give_up_order(&mut self, space: usize) {
        if let Some(s) = self.space_mut(space).filter(|s| s.unanswered.is_some()) {
            s.agent = None;
            self.close_order(space, None);
        }
    }

    fn close_order(&mut self, space: usize, outcomes: Option<Vec<u32>>) {
        let Some(u) = self.space_mut(space).and_then(|s| s.unanswered.take()) else { return };
        self.changed_answers.push(space);
        self.settle_moves(space, &u.moves, outcomes, u.shared);
        for (page, content) in u.read {
            self.arrive(page, content);
        }
        u.unwritten.into_iter().for_each(|page| self.bring_back(page));
        self.memory.to_mark.extend(u.to_mark);
        self.unsettled.extend(u.faults);
        self.asked.extend(u.asked.into_iter().map(|at| (space, at)));
    }
}
