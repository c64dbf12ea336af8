//! Accessed bits: which pages were written, as the kernel tells.
//!
//! Before the engine walks page tables, one call for each process finds the pages that were written
//! since the last walk and protects them again (`PAGEMAP_SCAN`). The first write lifts the
//! protection without anyone being asked (`UFFD_FEATURE_WP_ASYNC`). The same bit of a page that is
//! *not* there is the mark of one that is away; the call passes over these.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::memory::Memory;
use crate::core::{State, extend};
use crate::pagemap::Pagemap;
use crate::uffd::PAGE;

/// Means to know what was written.
#[derive(Default)]
pub(super) struct Written {
    /// Page maps of the processes, by their numbers.
    pagemaps: Vec<Option<Arc<Pagemap>>>,
    /// There was a walk.
    has_walked: bool,
    /// Pages that came in unprotected since then: the walk takes them for written, whatever was
    /// done to them.
    came: Vec<bool>,
    /// Answers about pages that may leave, since time went on last.
    asked: Asked,
}

/// Neighbours of pages that were asked about: a call for a page takes as long as one for all of
/// them, and pages that may leave have neighbours that may.
#[derive(Default)]
struct Asked {
    blocks: [Option<Block>; 8],
    next: usize,
}

/// Pages of a process from an address on, and a bit for each that was written.
#[derive(Clone, Copy)]
struct Block {
    process: usize,
    start: usize,
    written: u16,
}

impl Block {
    const BYTES: usize = Pagemap::NEIGHBOURS * PAGE;

    fn has(&self, address: usize) -> bool {
        self.written >> ((address - self.start) / PAGE) & 1 == 1
    }
}

impl Asked {
    /// Whether a page was written; `ask` says it of the block that begins at an address.
    fn is_written(&mut self, process: usize, address: usize, ask: impl FnOnce(usize) -> u16) -> bool {
        let start = address / Block::BYTES * Block::BYTES;
        let known = self.blocks.iter().flatten().find(|b| b.process == process && b.start == start);
        if let Some(block) = known {
            return block.has(address);
        }
        let block = Block { process, start, written: ask(start) };
        self.blocks[self.next] = Some(block);
        self.next = (self.next + 1) % self.blocks.len();
        block.has(address)
    }
}

impl Written {
    /// Time goes on: what was asked may have changed.
    pub(super) fn forget_asked(&mut self) {
        self.asked = Asked::default();
    }

    /// A process is there, or is gone.
    pub(super) fn set_pagemap(&mut self, process: usize, pagemap: Option<Arc<Pagemap>>) {
        if self.pagemaps.len() <= process {
            self.pagemaps.resize(process + 1, None);
        }
        self.pagemaps[process] = pagemap;
    }

    pub(super) fn grow(&mut self, pages: usize) {
        extend(&mut self.came, pages, false);
    }

    /// A page came in.
    pub(super) fn came(&mut self, page: u32, protected: bool) {
        self.came[page as usize] = !protected;
    }

    /// Pages of all processes that were written since the last walk, as ranges of addresses that go
    /// up, and how long it took to find them. Writes that cannot be had are not known.
    fn take(&self) -> (Vec<Vec<Range<usize>>>, Duration) {
        let began = Instant::now();
        let take = |map: &Option<Arc<Pagemap>>| {
            let mut found = Vec::new();
            // An error: the process is gone, or will be looked at again before the next walk.
            _ = map.as_ref().map(|map| map.take_all_written(&mut found));
            found
        };
        (self.pagemaps.iter().map(take).collect(), began.elapsed())
    }
}

/// Lookup of addresses in ascending ranges; consecutive lookups are mostly of neighbours.
struct Finder<'a> {
    ranges: &'a [Range<usize>],
    at: usize,
}

impl Finder<'_> {
    fn contains(&mut self, address: usize) -> bool {
        let is_here = |at: usize| self.ranges.get(at).is_none_or(|r| address < r.end);
        let is_after = |at: usize| at == 0 || self.ranges[at - 1].end <= address;
        if !(is_here(self.at) && is_after(self.at)) {
            self.at = self.ranges.partition_point(|r| r.end <= address);
        }
        self.ranges.get(self.at).is_some_and(|r| r.contains(&address))
    }
}

impl Memory {
    /// Pages that were written since the last time are young.
    pub(super) fn collect_writes(&mut self) {
        let (found, took) = self.written.take();
        // They are protected now.
        self.written.forget_asked();
        let mut finders: Vec<Finder> = found.iter().map(|ranges| Finder { ranges, at: 0 }).collect();
        let mut seen = Vec::new();
        for i in 0..self.states().len() {
            if !matches!(self.state(i as u32), State::Mapped | State::Leaving) {
                continue;
            }
            let (process, address) = self.place_of(i as u32);
            if !finders.get_mut(process).is_some_and(|f| f.contains(address)) {
                continue;
            }
            self.young[i] = true;
            self.counts.seen_written += 1;
            if !std::mem::take(&mut self.written.came[i]) && self.recorder.is_some() {
                seen.push((process, address));
            }
        }
        self.written.has_walked = true;
        if let Some(r) = &mut self.recorder {
            r.found_written(took, &seen);
        }
    }

    /// For a record: as before a walk, from time to time.
    pub(super) fn look_for_record(&mut self, now_ns: u64) {
        let Some(r) = &mut self.recorder else { return };
        if r.is_look_due(now_ns) {
            self.collect_writes();
        }
    }

    /// Whether a page that is in place was written since the last walk. Where there was none,
    /// nothing is protected, and all pages are as if written.
    pub(super) fn is_written(&mut self, page: u32) -> bool {
        let (process, address) = self.place_of(page);
        let Written { pagemaps, has_walked, asked, .. } = &mut self.written;
        let Some(map) = pagemaps.get(process).and_then(Option::as_ref).filter(|_| *has_walked) else { return false };
        asked.is_written(process, address, |start| map.are_written(start).unwrap_or(0))
    }

    /// Whether pages that come in because they were read are protected: so that it is known whether
    /// they are written later.
    pub(super) fn protects(&self) -> bool {
        self.written.has_walked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_asked_about_once() {
        let (mut asked, mut calls) = (Asked::default(), 0);
        let mut is_written = |asked: &mut Asked, process, page: usize| {
            asked.is_written(process, page * PAGE, |start| {
                assert_eq!(start % Block::BYTES, 0);
                calls += 1;
                0b10
            })
        };
        let found: Vec<bool> = (0..32).map(|page| is_written(&mut asked, 0, page)).collect();
        assert!((0..32).all(|page| found[page] == (page % 16 == 1)));
        // Another process, and the first one again when time went on.
        assert!(is_written(&mut asked, 1, 1) && is_written(&mut asked, 0, 1));
        asked = Asked::default();
        assert!(is_written(&mut asked, 0, 1));
        assert_eq!(calls, 4);
    }

    #[test]
    fn ranges_are_found_in_any_order_of_addresses() {
        let ranges = [2..4, 7..8, 8..9, 20..30];
        let mut finder = Finder { ranges: &ranges, at: 0 };
        let asked: Vec<usize> = (0..35).chain((0..35).rev()).chain((0..35).map(|i| i * 11 % 35)).collect();
        for address in asked {
            assert_eq!(finder.contains(address), ranges.iter().any(|r| r.contains(&address)), "{address}");
        }
        assert!(!Finder { ranges: &[], at: 0 }.contains(1));
    }
}
