//! A child of `fork`: what it has of its parent's memory.

use std::sync::Arc;

use super::address_space::AddressSpace;
use super::core::Core;
use super::order::Piece;
use crate::core::State;
use crate::store::{CowSwap, PageBuf};
use crate::threads::fatal;
use crate::uffd::{PAGE, Uffd};

impl Core {
    /// Adds a child. It shares pages in place with its parent until one of them writes; pages that
    /// are not in place are lent to it. `pieces`: memory that is elsewhere than in the parent.
    /// Returns the number of the child.
    pub(super) fn fork(&mut self, parent: usize, uffd: Arc<Uffd>, pieces: &[Piece]) -> usize {
        self.forks += 1;
        self.limit_under_way(true);
        let Some(s) = self.space(parent) else { fatal("a process was forked that is not known") };
        let mut child = AddressSpace::new(0, uffd, s.bell, self.now_ns);
        (child.forked, child.shares) = (true, true);
        child.active = s.active;
        s.watched.iter().for_each(|r| child.watched.insert(r));
        for piece in pieces {
            match piece.watched {
                Some(true) => child.watched.insert(piece.at.clone()),
                Some(false) => child.watched.remove(&piece.at),
                None => {}
            }
        }
        // The parent's agent and its memory are not there.
        child.watched.remove(&s.arena);
        let is_elsewhere = |address: usize| {
            let at = pieces.partition_point(|p| p.at.end <= address);
            pieces.get(at).is_some_and(|p| p.at.contains(&address))
        };
        let mut pages = s.table.pages(&(0..usize::MAX));
        pages.retain(|&(address, _)| !is_elsewhere(address));
        for (from, to) in pieces.iter().filter_map(|p| p.origin.map(|o| (o, &p.at))) {
            let there = s.table.pages(&(from..from + to.len()));
            pages.extend(there.into_iter().map(|(address, page)| (address - from + to.start, page)));
        }
        let index = self.insert_space(child);
        self.note_fork(parent);
        for (address, page) in pages {
            let cow_swap = match self.memory.state(page) {
                _ if self.memory.dropped[page as usize] => continue,
                State::Empty | State::Leaving => continue,
                State::Mapped => match self.memory.in_flight(page) {
                    None => continue,
                    Some(content) => self.keep(page, content),
                },
                State::Stored | State::Reading => self.memory.area.share(self.memory.slot[page as usize]),
                State::CowSwap => {
                    self.memory.cow_swaps.get(&page).copied().inspect(|&l| self.memory.area.share_again(l))
                }
                State::Staged | State::Writing | State::Written => {
                    self.keep(page, self.memory.staging_address(self.memory.place[page as usize]) as *const u8)
                }
                State::Poisoned => None,
            };
            let is_there = self.space(index).is_some_and(|s| s.table.get(address).is_some());
            if !is_there && !self.has_room_for_tables() {
                self.out_of_tables(index);
            }
            let is_undecided = self.space(index).is_none_or(|s| s.is_undecided);
            let Some(copy) = self.page_at(index, address).filter(|_| !is_undecided) else {
                // The child is to die: there is no room for what is lent to it.
                cow_swap.into_iter().for_each(|lent| self.memory.area.end_cow_swap(lent));
                break;
            };
            match cow_swap {
                Some(cow_swap) => {
                    // The kernel copied the mark, if there was one.
                    self.memory.unmarked[copy as usize] = self.memory.unmarked[page as usize];
                    self.memory.cow_swaps.insert(copy, cow_swap);
                    self.memory.set_state(copy, State::CowSwap);
                }
                // A page that cannot be had is an error, never zeros.
                None => {
                    if self.memory.state(page) != State::Poisoned {
                        self.say_lost(copy, "it could not be written when the process was forked");
                    }
                    self.memory.set_state(copy, State::Poisoned);
                }
            }
        }
        index
    }

    /// Content that is on its way to the swap area or from there, for a child.
    fn keep(&self, page: u32, at: *const u8) -> Option<CowSwap> {
        let mut content = Box::<PageBuf>::default();
        // SAFETY: a staging place that is filled, for the page is in a state that says so, or a
        // page that is being put in its place; the lock is held, and the thread that writes it to
        // the swap area only reads it, too.
        unsafe { std::ptr::copy_nonoverlapping(at, content.0.as_mut_ptr(), PAGE) };
        // A write that fails may go well the next time.
        self.memory.area.keep(page, &content.0).or_else(|_| self.memory.area.keep(page, &content.0)).ok()
    }
}
