//! Pages on their way out: moved to staging places, and written. A folio goes as one.

use refault_mm::PageId;

use super::moves::{Moved, Moves};
use super::operations::Operations;
use super::state::State;
use super::swap_core::Core;
use crate::store::StoreError;

/// Number of places from which on they are discarded: each call costs a flush of other CPUs.
pub(crate) const DISCARD_BATCH: usize = 32;

/// A page that is to be written now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub(crate) page: u32,
    pub(crate) slot: u32,
    pub(crate) place: u32,
}

impl<O: Operations> Core<O> {
    /// Pages to be moved out now, in order, with a place for each. Folios are not cut; one at least
    /// is taken.
    pub(crate) fn take_leaving(&mut self, most: usize) -> Vec<(u32, u32)> {
        let mut pages: Vec<u32> = Vec::new();
        while let Some(&page) = self.memory.leaving.front() {
            let unit = self.unit(page);
            let n = self.memory.leaving.iter().take_while(|p| unit.contains(p)).count();
            if !pages.is_empty() && pages.len() + n > most {
                break;
            }
            pages.extend(self.memory.leaving.drain(..n));
        }
        if pages.is_empty() {
            return Vec::new();
        }
        let mut places = self.memory.places.take(pages.len());
        while places.len() < pages.len() {
            // There are no more of them: the last folio waits.
            let unit = self.unit(pages[pages.len() - 1]);
            let first = pages.iter().position(|p| unit.contains(p)).unwrap_or(0);
            pages.drain(first..).rev().for_each(|p| self.memory.leaving.push_front(p));
        }
        places.drain(pages.len()..).for_each(|p| self.memory.places.give_back(p));
        pages.sort_unstable();
        pages.into_iter().zip(places).collect()
    }

    /// Books the outcomes of moves.
    pub(crate) fn settle_moves(&mut self, moved: &Moves) {
        debug_assert!(moved.is_done(), "all were tried");
        self.memory.counts.moves += moved.calls;
        self.memory.counts.misreported_moves += moved.misreported;
        let mut at = 0;
        while at < moved.moves.len() {
            let unit = self.unit(moved.moves[at].0);
            let n = moved.moves[at..].iter().take_while(|(page, _)| unit.contains(page)).count();
            self.settle_unit(&moved.moves[at..at + n], &moved.outcomes[at..at + n]);
            at += n;
        }
    }

    /// Books the outcomes of the pages of a folio. If one of its pages could not be moved, all of
    /// it stays.
    fn settle_unit(&mut self, moves: &[(u32, u32)], outcomes: &[Moved]) {
        for (&(page, place), &outcome) in moves.iter().zip(outcomes) {
            self.settle_move(page, place, outcome);
        }
        let first = moves[0].0;
        if outcomes.iter().all(|&o| o == Moved::Out) {
            self.memory.queue_staged(first);
        } else {
            self.stay(first);
        }
        // A page that a device holds may stay so for long, and the rest of its folio need not stay
        // for it.
        let busy = moves.iter().zip(outcomes).find(|(_, o)| **o == Moved::Busy);
        if let (Some(((page, _), _)), true) = (busy, self.unit(first).len() > 1) {
            self.split_off(*page);
        }
        moves.iter().for_each(|&(page, _)| self.serve_waiting(page));
    }

    fn settle_move(&mut self, page: u32, place: u32, outcome: Moved) {
        debug_assert_eq!(self.memory.state(page), State::Leaving, "page {page} was to be moved");
        match outcome {
            Moved::Out => {
                self.memory.counts.moved_out += 1;
                self.memory.set_staged(page, place);
            }
            Moved::Busy | Moved::PlaceTaken => {
                self.memory.counts.busy += 1;
                if outcome == Moved::Busy {
                    self.memory.places.give_back(place);
                }
                self.memory.set_state(page, State::Mapped);
            }
            Moved::Lost => {
                self.memory.places.give_back(place);
                self.poison(page, "it vanished while it was moved");
            }
        }
    }

    /// A folio that was to go stays in place. The engine learns of it as of a touch.
    fn stay(&mut self, page: u32) {
        let alive = self.unit(page).find(|&p| self.memory.state(p) != State::Poisoned);
        match alive {
            Some(p) => self.cancel_write_now(p),
            None => self.engine.write_cancelled(&mut self.memory, PageId(page)),
        }
    }

    /// Pages to be written now. They cannot be touched until [`Core::settle_writes`]. Folios are
    /// not cut; one at least is taken.
    pub(crate) fn claim_writes(&mut self, most: usize) -> Vec<Claim> {
        let keep = if self.is_waiting_for_frame() || self.memory.lowering { 0 } else { self.pages_to_keep };
        let mut claimed = Vec::new();
        while self.memory.count(State::Staged) > keep {
            let Some(page) = self.memory.next_staged() else { break };
            let unit = self.unit(page);
            if !claimed.is_empty() && claimed.len() + unit.len() > most {
                break;
            }
            self.memory.staged.pop_front();
            let is_staged = |p: &u32| self.memory.state(*p) == State::Staged;
            let pages: Vec<u32> = unit.filter(is_staged).collect();
            claimed.extend(pages.into_iter().map(|p| self.memory.claim(p)));
        }
        claimed
    }

    /// Books the results of writes.
    pub(crate) fn settle_writes(&mut self, claimed: &[Claim], results: &[Result<(), StoreError>]) {
        debug_assert_eq!(claimed.len(), results.len());
        let mut at = 0;
        while at < claimed.len() {
            let unit = self.unit(claimed[at].page);
            let n = claimed[at..].iter().take_while(|c| unit.contains(&c.page)).count();
            self.settle_write(&claimed[at..at + n], &results[at..at + n]);
            at += n;
        }
    }

    /// Books the result of a folio: if one of its pages could not be written, none was.
    fn settle_write(&mut self, claimed: &[Claim], results: &[Result<(), StoreError>]) {
        let id = PageId(claimed[0].page);
        let failed = results.iter().filter(|r| r.is_err()).count() as u64;
        let pages = claimed.iter().map(|c| c.page);
        if failed == 0 {
            self.memory.counts.swapped_out += claimed.len() as u64;
            pages.clone().for_each(|p| self.memory.set_state(p, State::Written));
            self.engine.write_done(&mut self.memory, id, true);
        } else {
            // Back to where it was: its frames are still there.
            self.memory.counts.write_errors += failed;
            pages.clone().for_each(|p| self.memory.set_state(p, State::Staged));
            self.engine.write_done(&mut self.memory, id, false);
            self.cancel_write_now(id.0);
        }
        pages.for_each(|p| self.serve_waiting(p));
    }

    /// Pages in staging places that are to be written, or are being written.
    pub(crate) fn pages_to_write(&self) -> u64 {
        self.memory.count(State::Staged).saturating_sub(self.pages_to_keep) + self.memory.count(State::Writing)
    }

    /// Pages are to leave, and nobody is about to move them.
    pub(crate) fn is_left_behind(&self) -> bool {
        !self.evictor_core && !self.memory.leaving.is_empty()
    }

    /// Number of places whose frames are not given back now, because they are wanted soon.
    fn discards_to_keep(&self) -> usize {
        if self.memory.lowering { 0 } else { self.frames_to_keep }
    }

    /// There are enough places for a call that discards them.
    pub(crate) fn has_discards(&self) -> bool {
        self.memory.discards.len() >= self.discards_to_keep() + DISCARD_BATCH
    }

    /// Whether there are discards to carry out.
    pub(crate) fn has_any_discards(&self) -> bool {
        self.memory.discards.len() > self.discards_to_keep()
    }

    /// Takes the places whose content is of no use, for the discarder.
    pub(crate) fn take_discards(&mut self) -> Vec<u32> {
        let kept = self.discards_to_keep();
        self.memory.take_discards(kept)
    }
}
