//! Events that the kernel tells of a process: faults, and changes of its mappings.
//!
//! While a change has happened and was not read, the kernel refuses to put pages in place or to
//! move them. So what was done to pages was done before all changes that are read later. Changes
//! are read into a *batch*, and dealt with when nothing is under way any more: then the batch is
//! complete, and [`super::order`] says what came of it. Until then nothing of that process is
//! served.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::address_space::AddressSpace;
use super::components::components;
use super::core::Core;
use super::evidence::BatchEvidence;
use super::handshake::is_descendant;
use super::known_order;
use super::maps;
use super::order::{self, Change, Outcome, OutcomeDoubt, Piece};
use super::page_table::BLOCK;
use super::wake::wake_at;
use crate::core::State;
use crate::threads::fatal;
use crate::uffd::{PAGE, Probe, Uffd, UffdEvent};

/// Number of looks of a thread that waits, with the lock, for changes under way.
const LOOKS: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_micros(20);

/// For each change of a batch, whether nothing else was done where it was.
fn are_alone(batch: &[Change]) -> Vec<bool> {
    let mut alone = vec![true; batch.len()];
    let together = components(batch).into_iter().filter(|members| members.len() > 1);
    together.flatten().for_each(|i| alone[i] = false);
    alone
}

impl Core {
    /// Reads what there is of a process, and deals with it. False: something is under way, so it is
    /// not known what is where.
    pub(super) fn settle(&mut self, space: usize) -> bool {
        if self.is_unanswered(space) {
            return false;
        }
        for look in 0..LOOKS {
            self.read(space);
            if self.space(space).is_none_or(|s| s.batch.is_empty()) || self.resolve(space) {
                return true;
            }
            if self.apply_in_order(space) {
                // The thread that made the change is about to go on: until then the kernel refuses
                // what is to be done to its memory.
                std::thread::yield_now();
            } else if look + 1 < LOOKS {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
        !self.has_batch(space)
    }

    /// As [`Core::settle`], repeated until something was dealt with, or nothing is under way.
    /// Returns whether there was anything.
    pub(super) fn settle_for_certain(&mut self, space: usize) -> bool {
        let before = self.batches;
        if self.is_unanswered(space) {
            fatal("a page of a process that does not answer is to be put in its place");
        }
        while !self.settle(space) || self.batches == before && !self.is_quiet(space) {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        self.batches != before
    }

    /// Whether no change is under way: neither has one happened that was not read, nor is one read
    /// that is not dealt with.
    pub(super) fn is_quiet(&self, space: usize) -> bool {
        self.space(space).is_none_or(|s| s.batch.is_empty() && s.uffd.probe(s.bell) != Probe::Changing)
    }

    /// Reads what there is. Whether there were changes.
    fn read(&mut self, space: usize) -> bool {
        let mut any = false;
        let mut events = Vec::new();
        let mut more = true;
        while let Some(uffd) = self.space(space).map(|s| s.uffd.clone()).filter(|_| more) {
            more = match uffd.read_events(&mut events) {
                Ok(more) => more,
                Err(e) if e.raw_os_error() == Some(libc::EMFILE) => {
                    let n = self.spaces.iter().flatten().count();
                    let processes = if n == 1 { "process" } else { "processes" };
                    fatal(&format!(
                        "with {n} {processes} there are no files left to open for another: raise the hard limit of ulimit -n"
                    ))
                }
                Err(e) => fatal(&format!("reading faults: {e}")),
            };
            let mut changed = false;
            for event in events.drain(..) {
                match event {
                    UffdEvent::Fault(fault) => self.push(space, fault),
                    change => changed |= self.note(space, change),
                }
            }
            if changed && !self.space(space).is_some_and(AddressSpace::has_one_thread) {
                self.space_mut(space).into_iter().for_each(|s| s.has_no_order = true);
            }
            any |= changed;
        }
        any
    }

    /// Puts a change into the batch. Whether it is one.
    fn note(&mut self, space: usize, event: UffdEvent) -> bool {
        let Some(s) = self.space_mut(space) else { return false };
        let change = match event {
            UffdEvent::Remove(range) if range.start == s.bell => {
                self.last_bell = Some(space);
                return false;
            }
            UffdEvent::Remove(range) if s.calls.contains(&range.start) => return false,
            UffdEvent::Remove(range) => Change::Remove(range),
            UffdEvent::Unmap(range) => Change::Unmap(range),
            UffdEvent::Remap { from, to, len } => Change::Remap { from, to, len },
            UffdEvent::Fork(uffd) => {
                s.batch_forks.push(Arc::new(uffd));
                Change::Fork(s.batch_forks.len() - 1)
            }
            UffdEvent::Fault(_) => return false,
        };
        s.batch.push(change);
        true
    }

    /// Deals with the batch. False: something is under way.
    fn resolve(&mut self, space: usize) -> bool {
        let Some(s) = self.space(space) else { return true };
        if s.uffd.probe(s.bell) == Probe::Changing {
            return false;
        }
        let outcome = order::outcome(&s.batch, &mut BatchEvidence { core: self, space: s });
        if outcome == Err(OutcomeDoubt::Unsettled) || s.uffd.probe(s.bell) == Probe::Changing {
            return false;
        }
        if outcome.is_ok() || !self.apply_in_order(space) {
            self.apply(space, outcome.ok());
        }
        true
    }

    /// Deals with the batch in the order in which it was read, if only one thread makes changes.
    /// The thread waits until each change was read, so the order is known, however many changes
    /// there are, and even if another is under way: a program that moves page after page is always
    /// at it. False: there may be more threads.
    fn apply_in_order(&mut self, space: usize) -> bool {
        let Some(s) = self.space(space) else { return true };
        if s.has_no_order || maps::shares_its_memory(s.pid) {
            return false;
        }
        let Some(s) = self.space_mut(space) else { return true };
        let (batch, forks) = (std::mem::take(&mut s.batch), std::mem::take(&mut s.batch_forks));
        for change in batch {
            let outcome = known_order::outcome_of_one(&change);
            self.apply_changes(space, &[change], &forks, &outcome);
        }
        true
    }

    /// Deals with the batch of a process that is gone, for the sake of processes forked from it.
    fn settle_the_last(&mut self, space: usize) {
        self.read(space);
        let Some(s) = self.space(space).filter(|s| !s.batch.is_empty()) else { return };
        let outcome = order::outcome(&s.batch, &mut BatchEvidence { core: self, space: s });
        self.apply(space, outcome.ok());
    }

    /// Applies the outcome of the batch. `None`: it is not known, so the processes that it is about
    /// must end.
    fn apply(&mut self, space: usize, outcome: Option<Outcome>) {
        let Some(s) = self.space_mut(space) else { return };
        let batch = std::mem::take(&mut s.batch);
        let forks = std::mem::take(&mut s.batch_forks);
        let outcome = outcome.unwrap_or_else(|| {
            self.undecided += 1;
            self.kill_undecided(space, "changed its mappings in several threads in an order that cannot be told");
            Outcome { now: Vec::new(), forks: (0..forks.len()).map(|n| (n, Vec::new())).collect() }
        });
        self.apply_changes(space, &batch, &forks, &outcome);
    }

    /// Does what follows from changes that are over.
    fn apply_changes(&mut self, space: usize, batch: &[Change], forks: &[Arc<Uffd>], outcome: &Outcome) {
        self.batches += 1;
        let Some(s) = self.space_mut(space) else { return };
        (s.doubtful, s.has_no_order) = Default::default();
        let is_undecided = self.space(space).is_some_and(|s| s.is_undecided);
        for (n, pieces) in &outcome.forks {
            let child = self.fork(space, forks[*n].clone(), pieces);
            if let Some(s) = self.space_mut(child) {
                s.is_undecided |= is_undecided;
            }
        }
        let discarded = self.note_discarded(space, batch);
        self.rearrange(space, &outcome.now);
        let in_doubt = self.in_doubt(space, batch, &outcome.now);
        discarded.into_iter().chain(in_doubt).for_each(|page| self.memory.may_be_discarded[page as usize] = true);
        let Some(s) = self.space_mut(space) else { return };
        for piece in &outcome.now {
            match piece.watched {
                Some(true) => s.watched.insert(piece.at.clone()),
                Some(false) => s.watched.remove(&piece.at),
                None => {}
            }
        }
        let unmapped = outcome.now.iter().filter(|p| p.watched == Some(false));
        let unmapped: Vec<u32> = unmapped.flat_map(|p| s.table.pages(&p.at)).map(|(_, page)| page).collect();
        let uffd = s.uffd.clone();
        for change in batch {
            if let &Change::Remap { from, to, len } = change {
                for part in s.unadopted.parts(&(from..from + len)) {
                    s.unadopted.remove(&part);
                    s.unadopted.insert(part.start - from + to..part.end - from + to);
                }
            }
        }
        unmapped.into_iter().for_each(|page| self.memory.is_discarding[page as usize] = false);
        // A thread that waits there tries again, and finds out what there is.
        for range in batch.iter().flat_map(Change::ranges).filter(|r| !r.is_empty()) {
            wake_at(&uffd, range.start, range.len());
        }
    }

    /// Marks pages that could not be marked when they were taken away.
    pub(super) fn mark_the_rest(&mut self) {
        for page in std::mem::take(&mut self.memory.to_mark) {
            let (space, address) = self.memory.place_of(page);
            if !self.memory.unmarked[page as usize]
                || !self.memory.is_held(page)
                || self.memory.in_flight(page).is_some()
            {
                self.memory.unmarked[page as usize] = false;
                continue;
            }
            if self.holds_mark(space, page) {
                continue;
            }
            let is_settled = self.settle(space);
            let Some(uffd) = self.uffd(space) else { continue };
            // SAFETY: the page is of a process that is served, and nothing is in place there: the
            // mark of it is no protection.
            if is_settled && unsafe { uffd.write_protect(address, PAGE, true) }.is_ok() {
                self.memory.unmarked[page as usize] = false;
            } else {
                self.memory.to_mark.push(page);
            }
        }
    }

    /// Ends a process because the place of its memory is not known.
    pub(super) fn kill_undecided(&mut self, space: usize, why: &str) {
        let Some(s) = self.space_mut(space) else { return };
        s.is_undecided = true;
        let pid = self.pid_of(space);
        eprintln!("refault: process {pid} {why}; it is killed");
        self.kill(space);
    }

    /// The number of a process. One that was forked and did not say so yet is known by a thread
    /// that faulted; 0: not at all.
    pub(super) fn pid_of(&self, space: usize) -> i32 {
        match self.space(space) {
            Some(s) if s.pid == 0 && s.toucher > 0 => {
                // It may be somebody else who reads that memory, or a number of another namespace.
                let is_another = self.spaces.iter().flatten().any(|other| other.pid == s.toucher);
                if is_another || !is_descendant(s.toucher) { 0 } else { s.toucher }
            }
            Some(s) => s.pid,
            None => 0,
        }
    }

    /// Kills a process, if its number is known.
    pub(super) fn kill(&self, space: usize) {
        let pid = self.pid_of(space);
        if pid > 0 {
            // SAFETY: the process is one that is served here; a number that was used again would be
            // of this user, too.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }

    /// Pages that will be dropped in a moment and may be in place. Until that is seen, they must
    /// stay there: if they were moved out, they would come back.
    fn note_discarded(&mut self, space: usize, batch: &[Change]) -> Vec<u32> {
        let mut pages = Vec::new();
        for (change, is_alone) in batch.iter().zip(are_alone(batch)) {
            let Change::Remove(range) = change else { continue };
            let Some(s) = self.space(space) else { break };
            // Pages in place there that are not known yet must not become known now.
            let parts: Vec<Range<usize>> = s.unadopted.parts(range);
            let ends = |part: Range<usize>| (part.start..part.end).step_by(BLOCK * PAGE).chain([part.end - PAGE]);
            for at in parts.into_iter().flat_map(ends) {
                self.page_at(space, at);
            }
            let Some(s) = self.space(space) else { break };
            for (_, page) in s.table.pages(range) {
                // Its mark stays until then.
                self.memory.is_discarding[page as usize] |= self.memory.is_held(page);
            }
            let Some(s) = self.space(space) else { break };
            if !is_alone {
                continue;
            }
            let may_be_there =
                |page: u32| matches!(self.memory.state(page), State::Empty | State::Mapped | State::Leaving);
            pages.extend(s.table.pages(range).into_iter().map(|(_, page)| page).filter(|&page| may_be_there(page)));
        }
        pages
    }

    /// As [`Core::note_discarded`], for ranges where more was done than discarding: pages of which
    /// discarding was the last change.
    fn in_doubt(&self, space: usize, batch: &[Change], pieces: &[Piece]) -> Vec<u32> {
        let mut pages = Vec::new();
        let Some(s) = self.space(space) else { return pages };
        for (change, is_alone) in batch.iter().zip(are_alone(batch)) {
            let Change::Remove(range) = change else { continue };
            if is_alone {
                continue;
            }
            let is_last = |p: &&Piece| p.origin.is_none() && p.watched != Some(false);
            for piece in pieces.iter().filter(is_last) {
                let both = piece.at.start.max(range.start)..piece.at.end.min(range.end);
                pages.extend(s.table.pages(&both).into_iter().map(|(_, page)| page));
            }
        }
        pages
    }

    /// Moves pages to where the kernel moved their content, and drops pages that are gone.
    fn rearrange(&mut self, space: usize, pieces: &[Piece]) {
        let Some(s) = self.space(space) else { return };
        let kept: HashSet<usize> = pieces.iter().filter_map(|p| p.origin).collect();
        let gone = pieces.iter().filter(|p| !kept.contains(&p.at.start));
        let gone: Vec<u32> = gone.flat_map(|p| s.table.pages(&p.at)).map(|(_, page)| page).collect();
        let moved = pieces.iter().filter_map(|p| p.origin.filter(|&o| o != p.at.start).map(|o| (o, &p.at)));
        let moved: Vec<(u32, usize)> = moved
            .flat_map(|(from, to)| {
                let pages = s.table.pages(&(from..from + to.len()));
                pages.into_iter().map(move |(address, page)| (page, address - from + to.start))
            })
            .collect();
        for page in gone {
            self.drop_page(page);
            self.memory.may_be_discarded[page as usize] = false;
        }
        for (page, target) in moved {
            let is_empty = self.memory.state(page) == State::Empty && !self.memory.may_be_discarded[page as usize];
            if is_empty && self.space(space).is_none_or(|s| s.table.get(target).is_none()) {
                continue;
            }
            let there = self.space(space).and_then(|s| s.table.get(target));
            let Some(other) = there.or_else(|| self.new_page_at(space, target)) else {
                fatal("there are no more pages for memory that was moved");
            };
            let address = self.memory.address[page as usize];
            self.memory.address.swap(page as usize, other as usize);
            if let Some(s) = self.space_mut(space) {
                s.table.set(target, page);
                s.table.set(address, other);
            }
        }
    }

    /// A process more; its number.
    pub(super) fn insert_space(&mut self, space: AddressSpace) -> usize {
        let index = self.spaces.iter().position(Option::is_none).unwrap_or(self.spaces.len());
        if index == self.spaces.len() {
            self.spaces.push(None);
            self.memory.page_counts.of.push(0);
        }
        self.memory.written.set_pagemap(index, space.pagemap.clone());
        self.spaces[index] = Some(space);
        self.is_new.push(index);
        index
    }

    /// A process is gone, and all its memory.
    pub(super) fn remove_process(&mut self, index: usize) {
        self.note_answer(index);
        self.give_up_order(index);
        self.settle_the_last(index);
        let Some(space) = self.spaces.get_mut(index).and_then(Option::take) else { return };
        self.memory.written.set_pagemap(index, None);
        self.sharing.is_due = true;
        for &first in &space.blocks {
            (first..first + BLOCK as u32).for_each(|page| self.drop_page(page));
        }
        self.draining.extend(&space.blocks);
        self.pending.retain(|p| p.space != index);
        self.waiting_for_frame.retain(|p| p.space != index);
        self.unsettled.retain(|p| p.space != index);
        self.asked.retain(|a| a.0 != index);
        self.unexplained_marks.retain(|at, _| at.0 != index);
        self.free_drained();
        if let Some(r) = &mut self.memory.recorder {
            r.end(index);
        }
    }

    /// Frees blocks of processes that are gone for further use, once nothing in them is on its way.
    pub(super) fn free_drained(&mut self) {
        let states = self.memory.states();
        let is_idle = |&first: &u32| {
            let block = first as usize..first as usize + BLOCK;
            states[block].iter().all(|&state| state == State::Empty)
        };
        let (idle, busy): (Vec<u32>, Vec<u32>) = self.draining.iter().partition(|first| is_idle(first));
        (self.free_blocks, self.draining) = ([std::mem::take(&mut self.free_blocks), idle].concat(), busy);
    }
}
