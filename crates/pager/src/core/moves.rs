//! A batch of pages that are moved out: as far as it came.

use super::operations::{Operations, Stopped};

/// Tries of a move that the kernel asks to repeat, at most.
const ATTEMPTS: u32 = 8;

/// Outcome for a page that was to be moved out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// The page is in its staging place.
    Out,
    /// The page is where it was.
    Busy,
    /// The page is where it was, and its staging place, held to be free, has content: that place is
    /// not used again.
    PlaceTaken,
    /// The page is in neither place.
    Lost,
}

impl Moved {
    /// Outcome of a move, by the content of both places.
    pub(crate) fn look(ops: &impl Operations, page: u32, place: u32) -> Moved {
        match (ops.is_present(page), ops.is_filled(place)) {
            (true, false) => Moved::Busy,
            (false, true) => Moved::Out,
            (true, true) => Moved::PlaceTaken,
            (false, false) => Moved::Lost,
        }
    }
}

/// Moves of pages to their places, and the outcomes so far.
pub(crate) struct Moves {
    pub(crate) moves: Vec<(u32, u32)>,
    /// Outcome of each page that was tried, in order.
    pub(crate) outcomes: Vec<Moved>,
    pub(crate) calls: u64,
    /// Calls that reported an error although the page had moved.
    pub(crate) misreported: u64,
    attempts: u32,
}

impl Moves {
    pub(crate) fn new(moves: Vec<(u32, u32)>) -> Moves {
        Moves { moves, outcomes: Vec::new(), calls: 0, misreported: 0, attempts: 0 }
    }

    /// Whether all were tried.
    pub(crate) fn is_done(&self) -> bool {
        self.outcomes.len() == self.moves.len()
    }

    /// Moves pages to their places, neighbours in one call, from the first that was not tried yet,
    /// until all are or there is no more time.
    pub(crate) fn go_on(&mut self, ops: &impl Operations, has_time: impl Fn() -> bool) {
        while !self.is_done() && has_time() {
            self.call(ops);
        }
    }

    /// One call.
    pub(crate) fn call(&mut self, ops: &impl Operations) {
        let rest = &self.moves[self.outcomes.len()..];
        let follows = |w: &&[(u32, u32)]| w[1].0 == w[0].0 + 1 && w[1].1 == w[0].1 + 1;
        let run = 1 + rest.windows(2).take_while(follows).count();
        let (page, place) = rest[0];
        self.calls += 1;
        let done = ops.move_out(page, place, run);
        self.outcomes.extend(std::iter::repeat_n(Moved::Out, done.pages));
        match done.stopped {
            _ if done.pages > 0 => self.attempts = 0,
            None => self.attempts = 0,
            Some(Stopped::Again) if self.attempts < ATTEMPTS => self.attempts += 1,
            // Held by a device or by another task: another time.
            Some(Stopped::Again | Stopped::Busy) => self.outcomes.push(Moved::Busy),
            Some(Stopped::Error) => {
                // The content of both places decides, not the error.
                let outcome = Moved::look(ops, page, place);
                self.misreported += u64::from(outcome == Moved::Out);
                self.outcomes.push(outcome);
            }
        }
    }
}
