//! Memory that processes share since a fork.
//!
//! A page that two processes share takes memory once, and the engine knows it as a page of one of
//! them. It is two pages as soon as one of them writes to it, which nobody is told of, or as soon
//! as it leaves one of them: what leaves is a copy. So copies are counted as they are made:
//! exactly, page by page, now and then (`Pss_Anon`), and in between as many as they can be at the
//! most. And a page that leaves one process leaves the others right after.

use std::ops::Range;

use refault_mm::PageId;

use super::core::Core;
use super::maps;
use super::new_memory::Sized;
use crate::core::State;
use crate::uffd::PAGE;

/// Nanoseconds between exact counts of copies; they are counted earlier if copies could be one part
/// in this many of the memory.
const COUNT_EVERY_NS: u64 = 20_000_000;
const WORTH_A_COUNT: u64 = 64;
/// Part of the memory, one in this many, that copies count as at most, as long as a process that
/// shares memory is not known: their owner may be gone.
const MOST_UNKNOWN: u64 = 16;
/// Pages by which processes must grow beyond the counted ones, to be counted again.
const GROWN: u64 = 64;
/// Nanoseconds that a forked process is waited for: until it is there, no page that it shares can
/// leave memory.
const NEWBORN_NS: u64 = 500_000_000;

/// State of memory that is shared.
#[derive(Default, Debug)]
pub(super) struct Sharing {
    /// When copies were counted last, in nanoseconds.
    counted_ns: Option<u64>,
    /// Whether copies are to be counted again.
    pub(super) is_due: bool,
    /// Pages that the engine did not know at the last count, of all processes that share memory,
    /// less the pages that it was told of since.
    unknown: u64,
    /// Copies that are possible at most: pages that more than one of these processes has.
    possible: u64,
    /// Pages beyond the known ones, summed over these processes.
    beyond: u64,
    /// Copies since the count, of pages that left a process.
    moved: u64,
    /// Copies since the count that writes may have made, at most.
    written: u64,
}

impl Sharing {
    /// Copies since they were counted, as far as can be said.
    fn copies(&self) -> u64 {
        (self.moved + self.written).min(self.possible)
    }

    /// Pages of processes beyond the ones that the engine knows.
    pub(super) fn pages(&self) -> u64 {
        self.unknown + self.copies()
    }

    /// Books one of these pages as known to the engine.
    pub(super) fn found(&mut self) {
        let of = [&mut self.moved, &mut self.written, &mut self.unknown];
        if let Some(first) = of.into_iter().find(|n| **n > 0) {
            *first -= 1;
        }
    }

    /// Nothing is taken for certain that was not counted. Whether there was anything, and it cannot
    /// be counted.
    pub(super) fn forget(&mut self, now_ns: u64) -> bool {
        const LATE_NS: u64 = 10 * COUNT_EVERY_NS;
        let had = self.copies() > 0 && self.counted_ns.is_none_or(|at_ns| now_ns - at_ns > LATE_NS);
        (self.moved, self.written, self.possible, self.is_due) = (0, 0, 0, true);
        had
    }
}

impl Core {
    /// A process is being forked: from now on what it writes to may be copied.
    pub(super) fn note_fork(&mut self, parent: usize) {
        let known = self.memory.resident(parent);
        let Some(s) = self.space_mut(parent) else { return };
        if !s.shares {
            s.shares = true;
            (s.minor_faults, s.made_its_own) = (maps::minor_faults(s.pid), 0);
        }
        self.sharing.possible += known + s.beyond;
        self.sharing.is_due = true;
    }

    /// Whether a child of this process, or another process that shares memory, is not there yet but
    /// will be in a moment.
    fn awaits_child(&self) -> bool {
        (0..self.spaces.len()).any(|index| self.is_newborn(index))
    }

    /// Whether a process was just forked, and its agent has not come.
    pub(super) fn is_newborn(&self, index: usize) -> bool {
        self.space(index).is_some_and(|s| s.forked && s.pid == 0 && self.now_ns - s.since_ns < NEWBORN_NS)
    }

    /// Whether pages of a process would be copied if they left now, and the originals could not
    /// follow.
    pub(super) fn must_wait_for_child(&self, index: usize) -> bool {
        self.space(index).is_some_and(|s| s.shares) && self.awaits_child()
    }

    /// Asks about pages of a process: a bit for each that another has, too, as far as is known.
    pub(super) fn shared_of(&self, index: usize, addresses: &[usize]) -> u64 {
        let Some(s) = self.space(index).filter(|s| s.shares) else { return 0 };
        let Some(pagemap) = &s.pagemap else { return u64::MAX };
        let is_shared = |&a: &usize| pagemap.exclusive(&(a..a + PAGE)).is_ok_and(|own| own.is_empty());
        addresses.iter().enumerate().fold(0, |bits, (i, a)| bits | u64::from(is_shared(a)) << i)
    }

    /// Counts pages that were copied to leave a process.
    pub(super) fn note_copies(&mut self, owner: usize, made_own: u64, copies: u64) {
        if let Some(s) = self.space_mut(owner) {
            s.made_its_own += made_own;
        }
        if copies > 0 {
            self.sharing.moved += copies;
            self.charge_overhead();
        }
    }

    /// Pages that have left a process leave the others that shared them. A page there is theirs
    /// alone now; where there are still two, it is known as one of the first from now on, and
    /// leaves the next when it has left that one.
    pub(super) fn follow(&mut self, owner: usize, addresses: &[usize]) {
        let others =
            |i: &usize| *i != owner && self.space(*i).is_some_and(|s| s.shares && s.active && s.agent.is_some());
        let others: Vec<usize> = (0..self.spaces.len()).filter(others).collect();
        let mut addresses = addresses.to_vec();
        for other in others {
            if !self.settle(other) {
                continue;
            }
            let mut known = Vec::new();
            addresses.retain(|&a| match self.become_known(other, a) {
                Some((page, is_shared)) => {
                    known.push(page);
                    !is_shared
                }
                None => true,
            });
            for page in known {
                self.engine.page_out(&mut self.memory, PageId(page), 1);
            }
        }
        self.fill_others();
    }

    /// Has the engine know of a page of a process, if it is in place, not known as that of another,
    /// and watched. The page, and whether others share it.
    fn become_known(&mut self, index: usize, address: usize) -> Option<(u32, bool)> {
        let s = self.space(index).filter(|s| s.is_watched(address))?;
        let range = address..address + PAGE;
        let is_shared = s.pagemap.as_ref()?.exclusive(&range).is_ok_and(|own| own.is_empty());
        if is_shared && (self.is_known_of_another(index, address) || !self.is_present(index, &range)) {
            return None;
        }
        let page = self.page_at(index, address)?;
        let is_new = self.memory.state(page) == State::Empty && !self.memory.may_be_discarded[page as usize];
        (is_new && self.is_surely_watched(index, address) && self.account_resident_page(page))
            .then_some((page, is_shared))
    }

    fn is_present(&self, index: usize, range: &Range<usize>) -> bool {
        let pagemap = self.space(index).and_then(|s| s.pagemap.as_ref());
        pagemap.is_some_and(|p| p.present(range).is_ok_and(|there| !there.is_empty()))
    }

    /// Whether another process that shares memory has a page in place at this address that the
    /// engine knows of: that is likely the one that is shared.
    pub(super) fn is_known_of_another(&self, index: usize, address: usize) -> bool {
        let is_known = |page| matches!(self.memory.state(page), State::Mapped | State::Leaving);
        let others = self.spaces.iter().enumerate().filter(|(i, _)| *i != index).filter_map(|(_, s)| s.as_ref());
        others.filter(|s| s.shares).filter_map(|s| s.table.get(address)).any(is_known)
    }

    /// Counts the memory of processes that share some. Others have been counted: `total` pages. All
    /// of it.
    pub(super) fn count_shared(&mut self, sizes: &[Sized], total: u64) -> u64 {
        // A part of a page that counts for a process whose number is not known would be missing.
        let all_known = self.spaces.iter().flatten().all(|s| s.pid > 0 || !s.shares);
        let sharing: Vec<Sized> =
            sizes.iter().filter(|(i, ..)| self.space(*i).is_some_and(|s| s.shares)).copied().collect();
        if sharing.is_empty() {
            self.sharing = Sharing::default();
            return total;
        }
        let (known, beyond) = (self.known_of(&sharing), self.beyond_of(&sharing));
        self.sharing.written = sharing.iter().map(|&(i, pid, _)| self.written_copies(i, pid)).sum();
        if !all_known {
            // Until all are there, the pages that they share count for the process that they were
            // forked from.
            self.sharing.unknown = beyond;
            self.sharing.possible = self.sharing.possible.min(self.budget.max_pages / MOST_UNKNOWN);
        } else if self.is_worth_a_count(beyond) {
            self.count_exactly(&sharing, known, beyond);
        }
        total + known + self.sharing.pages()
    }

    fn known_of(&self, sharing: &[Sized]) -> u64 {
        sharing.iter().map(|&(i, ..)| self.memory.resident(i)).sum()
    }

    /// Pages that processes which were not forked themselves have beyond what is known.
    fn beyond_of(&self, sharing: &[Sized]) -> u64 {
        sharing.iter().filter_map(|&(i, ..)| self.space(i).filter(|s| !s.forked)).map(|s| s.beyond).sum()
    }

    fn is_worth_a_count(&self, beyond: u64) -> bool {
        let s = &self.sharing;
        s.is_due
            || s.counted_ns.is_none_or(|at_ns| self.now_ns - at_ns > COUNT_EVERY_NS)
            || s.copies() > self.budget.max_pages / WORTH_A_COUNT
            || beyond > s.beyond + GROWN
    }

    /// The most pages that a process can have copied by writing to them since it was counted.
    fn written_copies(&self, index: usize, pid: i32) -> u64 {
        let Some(s) = self.space(index) else { return 0 };
        maps::minor_faults(pid).saturating_sub(s.minor_faults + s.made_its_own)
    }

    fn count_exactly(&mut self, sharing: &[Sized], known: u64, beyond: u64) {
        let (mut counted, mut each) = (0, 0);
        for &(i, pid, size) in sharing {
            // Before it is counted: what is copied meanwhile counts twice rather than not at all.
            let faults = maps::minor_faults(pid);
            counted += maps::proportional(pid).unwrap_or(size.resident);
            each += size.resident;
            if let Some(s) = self.space_mut(i) {
                (s.minor_faults, s.made_its_own) = (faults, 0);
            }
        }
        self.sharing = Sharing {
            counted_ns: Some(self.now_ns),
            is_due: false,
            unknown: counted.saturating_sub(known),
            possible: each.saturating_sub(counted),
            beyond,
            moved: 0,
            written: 0,
        };
    }

    /// Whether copies can be made that are worth looking for.
    pub(super) fn can_copy_much(&self) -> bool {
        self.sharing.possible > self.budget.max_pages / WORTH_A_COUNT
    }
}
