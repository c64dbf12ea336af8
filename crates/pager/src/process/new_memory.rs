//! New memory: who makes some has it watched, or is told that it need not be, before anyone touches
//! it.
//!
//! The functions of the C library that make memory are caught in each process
//! (`crates/preload/src/new_memory.rs`). They count what they make against an allowance, and ask
//! here when it is used up. As long as all that processes could have without another word, with the
//! pager, is less than half of the limit, the answer is a new allowance. Else everything is
//! watched, what was there before first; from then on processes ask about each mapping.

use std::ops::Range;

use super::core::Core;
use super::maps::{self, Size};
use super::{MOST_UNDER_WAY, SHARED_UNDER_WAY, UNDER_WAY};
use crate::staging::WINDOW;
use crate::uffd::{PAGE, Probe};

/// Bytes that a process may make before it asks for the first time.
pub(super) const FREE: u64 = 256 << 10;
/// An allowance of fewer pages is none.
const LEAST: u64 = 64;
/// A process with fewer pages is only counted, until it asks.
pub(super) const WORTH_WATCHING: u64 = 64;

/// A process with its number, and its memory.
pub(super) type Sized = (usize, i32, Size);

impl Core {
    /// Processes and their numbers, where the number is known.
    pub(super) fn pids(&self) -> Vec<(usize, i32)> {
        let spaces = self.spaces.iter().enumerate();
        spaces.filter_map(|(i, s)| Some((i, s.as_ref()?.pid)).filter(|&(_, pid)| pid > 0)).collect()
    }

    /// Answers who asked, as far as it is known what is where.
    pub(super) fn serve_asked(&mut self) {
        for asked in std::mem::take(&mut self.asked) {
            if !self.holds_asked(asked) && !self.serve_one_asked(asked.0, asked.1) {
                self.asked.push(asked);
            }
        }
    }

    /// Sees to memory that a thread has just made, and lets it go on. `at`: the page of calls that
    /// it touched. False: something is under way.
    fn serve_one_asked(&mut self, index: usize, at: usize) -> bool {
        let Some(s) = self.space(index).filter(|s| !s.is_undecided) else { return true };
        let entry = (at - s.calls.start) / PAGE;
        let range = s.agent.as_ref().and_then(|a| a.asked(entry));
        let is_empty = range.is_none();
        if !s.active && !self.grants_allowance(index) {
            self.watch_everything(index);
        }
        let Some(s) = self.space(index) else { return true };
        if let Some(range) = range.filter(|_| s.active)
            && !self.watch(index, &range, true)
        {
            return false;
        }
        // A thread that moved memory waits for that alone.
        if is_empty && self.has_batch(index) && !self.settle(index) {
            return false;
        }
        let Some(s) = self.space(index) else { return true };
        // SAFETY: the page is of the agent's, and there to be filled.
        match unsafe { s.uffd.zero(at, PAGE) }.errno {
            libc::EAGAIN => return false,
            0 => {}
            // Somebody else asked with the same page, which was not emptied since. Or it could not
            // be filled: the thread that asks touches it once more.
            errno => {
                if errno != libc::EEXIST {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                super::wake::wake_at(&s.uffd, at, PAGE);
            }
        }
        self.asks += 1;
        true
    }

    /// Whether there is room for as much unwatched memory as there could be; if so, the process
    /// gets another allowance.
    fn grants_allowance(&mut self, index: usize) -> bool {
        let sizes = self.count();
        let possible_pages: u64 = sizes.iter().map(|&(i, _, size)| self.possible_pages(i, size)).sum();
        let room = (self.lowest_limit() / 2).saturating_sub(possible_pages + self.overhead_to_count());
        if self.memory.recorder.is_some() || room / 2 < LEAST {
            return false;
        }
        if let Some(agent) = self.space(index).and_then(|s| s.agent.as_ref()) {
            agent.allow(Some(room / 2 * PAGE as u64));
        }
        true
    }

    /// Pages that a process could have without anyone being asked.
    fn possible_pages(&self, index: usize, size: Size) -> u64 {
        match self.space(index) {
            Some(s) if !s.active => {
                let allowed = s.agent.as_ref().map_or(0, |a| a.allowed());
                size.resident.max(size.writable) + allowed / PAGE as u64
            }
            _ => size.resident,
        }
    }

    /// Watches all memory of all processes that are worth it, and of this one.
    fn watch_everything(&mut self, asking: usize) {
        for (index, pid) in self.pids() {
            let size = maps::size(pid);
            if index != asking && size.resident < WORTH_WATCHING || !self.activate(index) {
                continue;
            }
            if self.is_unanswered(index) {
                // Its mappings will be looked at.
                continue;
            }
            for mapping in maps::anonymous(pid).unwrap_or_default() {
                self.settle_for_certain(index);
                let gaps = self.space(index).map_or(Vec::new(), |s| s.watched.gaps(&mapping));
                gaps.iter().for_each(|gap| _ = self.watch(index, gap, false));
            }
        }
        self.count();
    }

    /// From now on all memory that a process makes is watched; what it has already is to be. False:
    /// that was so before.
    pub(super) fn activate(&mut self, index: usize) -> bool {
        let Some(s) = self.space_mut(index).filter(|s| !s.active) else { return false };
        s.active = true;
        (s.is_unwatched, s.is_unfinished) = (true, true);
        // Before its mappings are looked at: what was made until now is among them.
        if let Some(agent) = &s.agent {
            agent.allow(None);
        }
        true
    }

    /// Watches a range of addresses. `is_new`: nothing is in it. False: something is under way, so
    /// it would not be known whether it was watched before or after that.
    pub(super) fn watch(&mut self, index: usize, range: &Range<usize>, is_new: bool) -> bool {
        let is_quiet = self.settle(index) && self.is_quiet(index);
        let Some(s) = self.space_mut(index) else { return true };
        if !is_quiet {
            s.is_unwatched = true;
            return false;
        }
        // SAFETY: the memory is of a program that is served. Memory that was mapped there may be
        // something else by now: then it is either refused or watched as well.
        if unsafe { s.uffd.register_with_marks(range.start, range.len()) }.is_ok() {
            s.watched.insert(range.clone());
            if !is_new {
                s.unadopted.insert(range.clone());
            }
        }
        if s.uffd.probe(s.bell) == Probe::Changing {
            s.doubtful.insert(range.clone());
        }
        true
    }

    /// Counts the memory of all processes, under the lock: what leaves a process meanwhile would
    /// count twice. Memory that is shared since a fork counts once.
    pub(super) fn count(&mut self) -> Vec<Sized> {
        let are_forked = self.spaces.iter().flatten().any(|s| s.forked);
        self.limit_under_way(are_forked);
        let mut sizes = Vec::new();
        let mut total = 0;
        for (i, pid) in self.pids() {
            let known = self.memory.resident(i);
            let Some(s) = self.space_mut(i) else { continue };
            s.shares &= are_forked;
            let size = maps::size(pid);
            s.beyond = size.resident.saturating_sub(known);
            s.unknown = if s.shares { 0 } else { s.beyond };
            total += if s.shares { 0 } else { size.resident };
            sizes.push((i, pid, size));
        }
        total = self.count_shared(&sizes, total);
        self.peak_resident = self.peak_resident.max(total);
        self.peak_taken = self.peak_taken.max(total + self.overhead_to_count());
        self.charge_overhead();
        self.look_at_unlimited(&sizes);
        sizes
    }

    /// Sets how much may be on its way out at a time.
    pub(super) fn limit_under_way(&mut self, are_forked: bool) {
        let part = if are_forked { SHARED_UNDER_WAY } else { UNDER_WAY };
        self.memory.most_under_way = (self.budget.max_pages / part).clamp(WINDOW as u64, MOST_UNDER_WAY);
    }

    /// Pages that are taken beside the memory of processes. Places of no use are part of what
    /// counts as the pager's own.
    fn overhead_to_count(&self) -> u64 {
        self.overhead_pages() + self.memory.places.in_use() - self.memory.discards.len() as u64
    }
}
