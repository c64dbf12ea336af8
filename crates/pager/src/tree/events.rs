//! What the kernel tells of a process: faults, and changes of its mappings.
//!
//! While a change has happened and was not read, the kernel refuses to put pages in place or to move them, so what is done under the
//! lock, after everything was read, is done to mappings as they are known here. Who makes a change waits until it was read.

use std::ops::Range;
use std::sync::Arc;

use super::core::Core;
use super::memory::State;
use super::space::Space;
use super::table::BLOCK;
use crate::region::fatal;
use crate::store::PageBuf;
use crate::uffd::{Event, PAGE, Uffd};

impl Core {
    /// Reads what there is of a process. Changes are dealt with at once, faults wait. False: there was nothing.
    pub(super) fn drain(&mut self, space: usize) -> bool {
        let mut any = false;
        let mut events = Vec::new();
        while let Some(uffd) = self.space(space).map(|s| s.uffd.clone()) {
            match uffd.read_events(&mut events) {
                Ok(true) => any = true,
                Ok(false) => break,
                Err(e) => fatal(&format!("reading faults: {e}")),
            }
            let (faults, changes): (Vec<_>, Vec<_>) =
                events.drain(..).partition(|event| matches!(event, Event::Fault(_)));
            changes.into_iter().for_each(|event| self.change(space, event));
            for event in faults {
                if let Event::Fault(fault) = event {
                    self.push(space, fault);
                }
            }
        }
        any
    }

    fn change(&mut self, space: usize, event: Event) {
        match event {
            Event::Fault(_) => {}
            Event::Fork(child) => self.fork(space, child),
            Event::Remove(range) => self.remove(space, &range),
            Event::Unmap(range) => self.unmap(space, &range),
            Event::Remap { from, to, len } => self.remap(space, from, to, len),
        }
    }

    /// The pages of a range will be dropped in a moment. Until that is seen, what is in place must stay there: if it were moved out, it
    /// would come back.
    fn remove(&mut self, space: usize, range: &Range<usize>) {
        let Some(s) = self.space(space) else { return };
        if s.bell == range.start {
            self.rung = Some(space);
            return;
        }
        // What is in place there and not known yet must not become known now.
        let parts: Vec<Range<usize>> = s.unadopted.parts(range);
        for at in
            parts.into_iter().flat_map(|part| (part.start..part.end).step_by(BLOCK * PAGE).chain([part.end - PAGE]))
        {
            self.page_at(space, at);
        }
        let Some(s) = self.space(space) else { return };
        for (_, page) in s.table.pages(range) {
            let may_be_there = matches!(self.memory.state(page), State::Empty | State::Mapped | State::Leaving);
            self.drop_page(page);
            self.memory.doomed[page as usize] = may_be_there;
        }
    }

    fn unmap(&mut self, space: usize, range: &Range<usize>) {
        let Some(s) = self.space_mut(space) else { return };
        s.watched.remove(range);
        let pages = s.table.pages(range);
        let uffd = s.uffd.clone();
        for (_, page) in pages {
            self.drop_page(page);
            self.memory.doomed[page as usize] = false;
        }
        // Whoever waits there finds out that there is nothing.
        _ = uffd.wake(range.start, range.len());
    }

    /// Pages go with their content, wherever that is. Those of the destination come in exchange: nothing is in them.
    fn remap(&mut self, space: usize, from: usize, to: usize, len: usize) {
        let Some(s) = self.space_mut(space) else { return };
        s.watched.remove(&(from..from + len));
        s.watched.insert(to..to + len);
        for part in s.unadopted.parts(&(from..from + len)) {
            s.unadopted.remove(&part);
            s.unadopted.insert(part.start - from + to..part.end - from + to);
        }
        let uffd = s.uffd.clone();
        for (address, page) in s.table.pages(&(from..from + len)) {
            let target = address - from + to;
            if self.memory.state(page) == State::Empty
                && self.space(space).is_none_or(|s| s.table.get(target).is_none())
            {
                continue;
            }
            let Some(other) = self.page_at(space, target) else {
                fatal("there are no more pages for memory that was moved");
            };
            self.drop_page(other);
            self.memory.doomed[other as usize] = false;
            self.memory.address.swap(page as usize, other as usize);
            if let Some(s) = self.space_mut(space) {
                s.table.set(target, page);
                s.table.set(address, other);
            }
        }
        _ = uffd.wake(from, len);
    }

    /// The child has what is in place, shared with its parent until one of them writes. What is not in place is lent to it.
    fn fork(&mut self, parent: usize, uffd: Uffd) {
        self.forks += 1;
        let Some(s) = self.space(parent) else { return };
        let mut child = Space::new(0, Arc::new(uffd), s.bell);
        child.forked = true;
        child.active = s.active;
        s.watched.iter().for_each(|r| child.watched.insert(r));
        // The parent's agent and its memory are not there.
        child.watched.remove(&s.arena);
        let pages = s.table.pages(&(0..usize::MAX));
        let index = self.insert_space(child);
        for (address, page) in pages {
            let loan = match self.memory.state(page) {
                State::Empty | State::Mapped | State::Leaving => continue,
                State::Stored | State::Reading => self.memory.area.lend(self.memory.slot[page as usize]),
                State::Lent => self.memory.loans.get(&page).copied().inspect(|&l| self.memory.area.lend_again(l)),
                State::Staged | State::Writing | State::Written => self.keep_staged(page),
                State::Poisoned => None,
            };
            let Some(copy) = self.page_at(index, address) else {
                fatal("there are no more pages for a forked process");
            };
            match loan {
                Some(loan) => {
                    self.memory.loans.insert(copy, loan);
                    self.memory.set_state(copy, State::Lent);
                }
                // What cannot be had is an error, never zeros.
                None => self.memory.set_state(copy, State::Poisoned),
            }
        }
    }

    /// Content that is on its way to the swap area, for a child.
    fn keep_staged(&self, page: u32) -> Option<crate::store::Loan> {
        let at = self.memory.staging.address(self.memory.place[page as usize]);
        let mut content = Box::<PageBuf>::default();
        // SAFETY: the place is filled, for the page is in a state that says so and the lock is held; whoever writes it to the swap area
        // only reads it, too.
        unsafe { std::ptr::copy_nonoverlapping(at as *const u8, content.0.as_mut_ptr(), PAGE) };
        self.memory.area.keep(page, &content.0).ok()
    }

    /// A process more; its number.
    pub(super) fn insert_space(&mut self, space: Space) -> usize {
        let index = self.spaces.iter().position(Option::is_none).unwrap_or(self.spaces.len());
        if index == self.spaces.len() {
            self.spaces.push(None);
            self.memory.resident.push(0);
        }
        self.spaces[index] = Some(space);
        self.is_new.push(index);
        index
    }

    /// A process is gone, and all its memory.
    pub(super) fn bury(&mut self, index: usize) {
        let Some(space) = self.spaces.get_mut(index).and_then(Option::take) else { return };
        for &first in &space.blocks {
            (first..first + BLOCK as u32).for_each(|page| self.drop_page(page));
        }
        self.draining.extend(&space.blocks);
        self.pending.retain(|p| p.space != index);
        self.starved.retain(|p| p.space != index);
        self.free_drained();
        if let Some(r) = &mut self.recorder {
            r.end(index);
        }
    }

    /// Blocks of processes that are gone may be used again when nothing of them is on its way any more.
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
