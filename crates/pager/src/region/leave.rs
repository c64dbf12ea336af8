//! Pages on their way out: moved to staging places, and written. A folio goes as one.

use std::time::Instant;

use super::core::{Core, Moved};
use super::world::State;
use crate::store::StoreError;

use refault_mm::PageId;

impl Core {
    /// Pages to be moved out now, in order, with a place for each. Folios are not cut; one at least is taken.
    pub(super) fn take_leaving(&mut self, most: usize) -> Vec<(u32, u32)> {
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
        let mut places = self.memory.staging.take(pages.len());
        while places.len() < pages.len() {
            // There are no more of them: the last folio waits.
            let unit = self.unit(pages[pages.len() - 1]);
            let first = pages.iter().position(|p| unit.contains(p)).unwrap_or(0);
            pages.drain(first..).rev().for_each(|p| self.memory.leaving.push_front(p));
        }
        places.drain(pages.len()..).for_each(|p| self.memory.staging.give_back(p));
        pages.sort_unstable();
        pages.into_iter().zip(places).collect()
    }

    /// What became of them.
    pub(super) fn settle_moves(&mut self, moves: &[(u32, u32)], outcomes: &[Moved]) {
        let mut at = 0;
        while at < moves.len() {
            let unit = self.unit(moves[at].0);
            let n = moves[at..].iter().take_while(|(page, _)| unit.contains(page)).count();
            self.settle_unit(&moves[at..at + n], &outcomes[at..at + n]);
            at += n;
        }
    }

    /// Those of a folio. If one of its pages could not be moved, all of it stays.
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
        // What a device holds may stay so for long, and the rest of its folio need not stay for it.
        let busy = moves.iter().zip(outcomes).find(|(_, o)| **o == Moved::Busy);
        if let (Some(((page, _), _)), true) = (busy, self.unit(first).len() > 1) {
            self.split_off(*page);
        }
        moves.iter().for_each(|&(page, _)| self.serve_waiting(page));
    }

    fn settle_move(&mut self, page: u32, place: u32, outcome: Moved) {
        match outcome {
            Moved::Out => {
                self.memory.counts.moved_out += 1;
                self.memory.set_staged(page, place);
            }
            Moved::Busy | Moved::PlaceTaken => {
                self.memory.counts.busy += 1;
                if outcome == Moved::Busy {
                    self.memory.staging.give_back(place);
                }
                self.memory.state[page as usize] = State::Mapped;
            }
            Moved::Lost => {
                self.memory.staging.give_back(place);
                self.poison(page, "it vanished while it was moved");
            }
        }
    }

    /// A folio that was to go stays in place. The engine learns of it as of a touch.
    fn stay(&mut self, page: u32) {
        let alive = self.unit(page).find(|&p| self.memory.state[p as usize] != State::Poisoned);
        match alive {
            Some(p) => self.call_off(p, false, Instant::now()),
            None => self.engine.write_cancelled(&mut self.memory, PageId(page)),
        }
    }

    /// Pages to be written now: (page, slot, address). They cannot be touched until [`Core::settle_writes`]. Folios are not cut; one at
    /// least is taken.
    pub(super) fn claim_writes(&mut self, most: usize, all: bool) -> Vec<(u32, u32, usize)> {
        let keep = if all || self.is_starved() || self.memory.lowering { 0 } else { self.pages_to_keep() };
        let mut claimed = Vec::new();
        while self.memory.staged_pages > keep {
            let Some(&(page, place)) = self.memory.staged.front() else { break };
            let i = page as usize;
            if self.memory.state[i] == State::Staged && self.memory.place[i] == place {
                let unit = self.unit(page);
                if !claimed.is_empty() && claimed.len() + unit.len() > most {
                    break;
                }
                self.claim_unit(unit, &mut claimed);
            }
            self.memory.staged.pop_front();
        }
        claimed
    }

    fn claim_unit(&mut self, unit: std::ops::Range<u32>, claimed: &mut Vec<(u32, u32, usize)>) {
        for page in unit {
            let i = page as usize;
            if self.memory.state[i] == State::Staged {
                self.memory.state[i] = State::Writing;
                self.memory.staged_pages -= 1;
                claimed.push((page, self.memory.slot[i], self.memory.staging.address(self.memory.place[i])));
            }
        }
    }

    /// What became of them.
    pub(super) fn settle_writes(&mut self, claimed: &[(u32, u32, usize)], results: &[Result<(), StoreError>]) {
        let mut at = 0;
        while at < claimed.len() {
            let unit = self.unit(claimed[at].0);
            let n = claimed[at..].iter().take_while(|(page, ..)| unit.contains(page)).count();
            self.settle_write(&claimed[at..at + n], &results[at..at + n]);
            at += n;
        }
    }

    /// That of a folio: if one of its pages could not be written, none was.
    fn settle_write(&mut self, claimed: &[(u32, u32, usize)], results: &[Result<(), StoreError>]) {
        let id = PageId(claimed[0].0);
        let failed = results.iter().filter(|r| r.is_err()).count() as u64;
        let pages = claimed.iter().map(|&(page, ..)| page);
        if failed == 0 {
            self.memory.counts.swapped_out += claimed.len() as u64;
            pages.clone().for_each(|p| self.memory.state[p as usize] = State::Written);
            self.engine.write_done(&mut self.memory, id, true);
        } else {
            // Back to where it was: its frames are still there.
            self.memory.counts.write_errors += failed;
            pages.clone().for_each(|p| self.memory.state[p as usize] = State::Staged);
            self.memory.staged_pages += claimed.len() as u64;
            self.engine.write_done(&mut self.memory, id, false);
            self.call_off(id.0, false, Instant::now());
        }
        pages.for_each(|p| self.serve_waiting(p));
    }
}
