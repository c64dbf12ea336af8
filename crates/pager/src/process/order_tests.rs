//! Against a model of a kernel: threads that change what is theirs, and are heard in any order.

use std::collections::VecDeque;

use refault_testing::Rng;

use super::*;
use crate::process::known_order::outcome_of_one;

/// A page of the model.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Slot {
    is_mapped: bool,
    is_watched: bool,
    /// Content that is there, and not in place: where it was before the batch.
    content: Option<usize>,
    may_be_gone: bool,
}

fn removed(change: &Change) -> Option<Range<usize>> {
    match change {
        Change::Remove(range) => Some(range.start / PAGE..range.end / PAGE),
        _ => None,
    }
}

const SLOTS: usize = 24;

#[derive(Default)]
struct Thread {
    /// Ranges that it mapped and nobody else touches.
    owns: Vec<(usize, usize)>,
    /// Changes that it has made, and that have not been read.
    told: VecDeque<Change>,
}

struct Kernel {
    slots: [Slot; SLOTS],
    threads: Vec<Thread>,
    forks: Vec<[Slot; SLOTS]>,
    rng: Rng,
}

fn bytes(first: usize, n: usize) -> Range<usize> {
    first * PAGE..(first + n) * PAGE
}

impl Kernel {
    fn new(seed: u64) -> Kernel {
        let mut k = Kernel { slots: Default::default(), threads: Vec::new(), forks: Vec::new(), rng: Rng(seed) };
        let mut at = 0;
        for _ in 0..3 {
            k.threads.push(Thread::default());
        }
        while at < SLOTS {
            let n = (1 + k.rng.below(4)).min(SLOTS - at);
            if k.rng.below(3) > 0 {
                let owner = k.rng.below(3);
                k.threads[owner].owns.push((at, n));
                let watched = k.rng.below(4) > 0;
                for i in at..at + n {
                    let content = (watched && k.rng.below(3) > 0).then_some(i * PAGE);
                    k.slots[i] = Slot { is_mapped: true, is_watched: watched, content, may_be_gone: false };
                }
            }
            at += n;
        }
        k
    }

    /// Addresses that are free, as many as wanted.
    fn gap(&mut self, n: usize) -> Option<usize> {
        let fits = |&at: &usize| at + n <= SLOTS && self.slots[at..at + n].iter().all(|s| !s.is_mapped);
        let gaps: Vec<usize> = (0..SLOTS).filter(fits).collect();
        (!gaps.is_empty()).then(|| gaps[self.rng.below(gaps.len())])
    }

    fn is_watched(&self, at: usize, n: usize) -> bool {
        self.slots[at..at + n].iter().any(|s| s.is_watched)
    }

    fn unmap(&mut self, thread: usize, at: usize, n: usize) {
        if self.is_watched(at, n) {
            self.threads[thread].told.push_back(Change::Unmap(bytes(at, n)));
        }
        self.slots[at..at + n].fill(Slot::default());
    }

    /// Reads the change that a thread told first. `madvise` discards after that.
    fn read(&mut self, t: usize, all: &mut Vec<Change>) {
        let Some(change) = self.threads[t].told.pop_front() else { return };
        if let Some(range) = removed(&change) {
            self.slots[range.clone()].iter_mut().for_each(|s| s.content = None);
            // Forks that are under way may have it or not.
            for told in self.threads.iter().flat_map(|t| &t.told) {
                if let Change::Fork(n) = told {
                    self.forks[*n][range.clone()].iter_mut().for_each(|s| s.may_be_gone = true);
                }
            }
        }
        all.push(change);
    }

    fn step(&mut self, t: usize) {
        let choice = self.rng.below(10);
        let n = 1 + self.rng.below(4);
        let owned = self.threads[t].owns.len();
        if choice < 2 || owned == 0 {
            if let Some(at) = self.gap(n) {
                self.slots[at..at + n].fill(Slot { is_mapped: true, ..Slot::default() });
                self.threads[t].owns.push((at, n));
            }
            return;
        }
        let which = self.rng.below(owned);
        let (at, n) = self.threads[t].owns[which];
        match choice {
            2..5 => {
                self.threads[t].owns.swap_remove(which);
                self.unmap(t, at, n);
            }
            6..8 => {
                let Some(to) = self.gap(n) else { return };
                let was_watched = self.is_watched(at, n);
                for i in 0..n {
                    self.slots[to + i] = std::mem::take(&mut self.slots[at + i]);
                }
                self.threads[t].owns[which] = (to, n);
                if was_watched {
                    let told = &mut self.threads[t].told;
                    told.push_back(Change::Remap { from: at * PAGE, to: to * PAGE, len: n * PAGE });
                    told.push_back(Change::Unmap(bytes(at, n)));
                }
            }
            // A mapping grows where it is, and nothing tells of it.
            5 if at + n < SLOTS && !self.slots[at + n].is_mapped => {
                let is_watched = self.slots[at].is_watched;
                self.slots[at + n] = Slot { is_mapped: true, is_watched, ..Slot::default() };
                self.threads[t].owns[which].1 += 1;
            }
            8 if self.is_watched(at, n) => {
                self.threads[t].told.push_back(Change::Remove(bytes(at, n)));
            }
            9 => {
                self.threads[t].told.push_back(Change::Fork(self.forks.len()));
                self.forks.push(self.slots);
            }
            _ => {}
        }
    }
}

struct BatchEvidence<'a> {
    before: &'a [Slot; SLOTS],
    kernel: &'a Kernel,
}

impl Evidence for BatchEvidence<'_> {
    fn held(&self, range: &Range<usize>) -> Vec<(usize, Mark)> {
        let is_held = |a: &usize| self.before[a / PAGE].content.is_some();
        range.clone().step_by(PAGE).filter(is_held).map(|a| (a, Mark::Sure)).collect()
    }

    fn marks(&mut self, range: &Range<usize>) -> Option<Vec<usize>> {
        let is_marked = |a: &usize| self.kernel.slots[a / PAGE].content.is_some();
        Some(range.clone().step_by(PAGE).filter(is_marked).collect())
    }

    fn has_content(&mut self, fork: usize, address: usize) -> Watched {
        if self.kernel.forks[fork][address / PAGE].content.is_some() { Watched::Yes } else { Watched::No }
    }

    fn is_watched(&mut self, fork: Option<usize>, address: usize) -> Watched {
        let slots = fork.map_or(&self.kernel.slots, |n| &self.kernel.forks[n]);
        if slots[address / PAGE].is_watched { Watched::Yes } else { Watched::No }
    }

    fn is_doubtful(&self, _: &Range<usize>) -> bool {
        false
    }
}

/// Content by the pieces, on top of what was there before.
fn by_pieces(before: &[Slot; SLOTS], pieces: &[Piece]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = before.iter().map(|s| s.content).collect();
    for piece in pieces {
        for (i, a) in piece.at.clone().step_by(PAGE).enumerate() {
            found[a / PAGE] = piece.origin.and_then(|o| before[o / PAGE + i].content);
        }
    }
    found
}

fn content(slots: &[Slot; SLOTS]) -> Vec<Option<usize>> {
    slots.iter().map(|s| s.content).collect()
}

#[test]
fn what_came_of_changes_is_found_or_it_is_said_that_it_is_not() {
    let (mut known, mut unknown, mut moves) = (0, 0, 0);
    for seed in 0..60_000 {
        let mut k = Kernel::new(seed);
        let before = k.slots;
        let mut read: Vec<Change> = Vec::new();
        let most = 2 + k.rng.below(6);
        let mut steps = 0;
        loop {
            // Either a thread that waits for nobody does something, or one is heard.
            let t = k.rng.below(3);
            if k.threads[t].told.is_empty() {
                if steps < most {
                    k.step(t);
                    steps += 1;
                }
            } else if k.rng.below(3) == 0 || steps >= most {
                k.read(t, &mut read);
            }
            if steps >= most && k.threads.iter().all(|t| t.told.is_empty()) {
                break;
            }
        }
        moves += read.iter().filter(|c| matches!(c, Change::Remap { .. })).count();
        let found = outcome(&read, &mut BatchEvidence { before: &before, kernel: &k });
        let found = match found {
            Ok(found) => found,
            Err(OutcomeDoubt::Unsettled) => panic!("seed {seed}: nothing was under way"),
            Err(OutcomeDoubt::Unknown) => {
                unknown += 1;
                continue;
            }
        };
        known += 1;
        assert_eq!(by_pieces(&before, &found.now), content(&k.slots), "seed {seed}: {read:?}");
        for (n, pieces) in &found.forks {
            let mut found = by_pieces(&before, pieces).into_iter().zip(&k.forks[*n]);
            let is_right = |(found, s): (Option<usize>, &Slot)| found == s.content || s.may_be_gone && found.is_none();
            assert!(found.all(is_right), "seed {seed} fork {n}: {read:?}");
        }
    }
    assert!(moves > 20_000, "{moves} moves");
    assert!(unknown * 200 < known, "{unknown} unknown, {known} known");
    eprintln!("{known} known, {unknown} unknown, {moves} moves");
}

/// There were too many changes, and too many orders of them, of a program with one thread.
#[test]
fn regression_the_changes_of_one_thread_follow_one_another_however_many() {
    let mut moves = 0;
    for seed in 0..3000 {
        let mut k = Kernel::new(seed);
        let mut now = k.slots;
        let mut read: Vec<Change> = Vec::new();
        for _ in 0..60 {
            k.step(0);
            let first = read.len();
            while !k.threads[0].told.is_empty() {
                k.read(0, &mut read);
            }
            for change in &read[first..] {
                let found = outcome_of_one(change);
                let after = by_pieces(&now, &found.now);
                now.iter_mut().zip(after).for_each(|(slot, content)| slot.content = content);
                for (n, pieces) in &found.forks {
                    assert_eq!(by_pieces(&now, pieces), content(&k.forks[*n]), "seed {seed} fork {n}: {read:?}");
                }
            }
            assert_eq!(content(&now), content(&k.slots), "seed {seed}: {read:?}");
        }
        moves += read.iter().filter(|c| matches!(c, Change::Remap { .. })).count();
    }
    assert!(moves > 1000, "{moves} moves");
}

#[test]
fn the_address_that_a_move_left_was_taken_by_another() {
    // As it was seen: the second move is heard before the first says what it left.
    let (a, b, c) = (0x10 * PAGE, 0x20 * PAGE, 0x30 * PAGE);
    struct E(usize);
    impl Evidence for E {
        fn held(&self, range: &Range<usize>) -> Vec<(usize, Mark)> {
            range.contains(&self.0).then_some((self.0, Mark::Sure)).into_iter().collect()
        }
        fn marks(&mut self, range: &Range<usize>) -> Option<Vec<usize>> {
            let now = self.0 - 0x20 * PAGE;
            Some(range.contains(&now).then_some(now).into_iter().collect())
        }
        fn has_content(&mut self, _: usize, _: usize) -> Watched {
            Watched::Unknown
        }
        fn is_watched(&mut self, _: Option<usize>, address: usize) -> Watched {
            if address < 0x30 * PAGE { Watched::Yes } else { Watched::No }
        }
        fn is_doubtful(&self, _: &Range<usize>) -> bool {
            false
        }
    }
    let len = 4 * PAGE;
    let changes = [
        Change::Remap { from: a, to: b, len },
        Change::Remap { from: c, to: a, len },
        Change::Unmap(a..a + len),
        Change::Unmap(c..c + len),
    ];
    let found = outcome(&changes, &mut E(c + PAGE)).unwrap();
    let at_a: Vec<_> = found.now.iter().filter(|p| p.at.start == a).collect();
    assert_eq!(at_a, [&Piece { at: a..a + len, origin: Some(c), watched: Some(true) }]);
}

#[test]
fn components_are_what_overlaps_directly_or_through_others() {
    let mut rng = Rng(7);
    for _ in 0..3000 {
        let mut range = || {
            let start = rng.below(60) * PAGE;
            start..start + (1 + rng.below(4)) * PAGE
        };
        let changes: Vec<Change> = (0..12)
            .map(|i| match i % 4 {
                0 => Change::Remap { from: range().start, to: range().start, len: 2 * PAGE },
                1 => Change::Remove(range()),
                2 if i > 8 => Change::Fork(i),
                _ => Change::Unmap(range()),
            })
            .collect();
        let meet = |a: &Change, b: &Change| {
            let b = b.ranges();
            a.ranges().iter().any(|a| b.iter().any(|b| a.start < b.end && b.start < a.end))
        };
        let mut expected: Vec<Vec<usize>> = Vec::new();
        for (i, change) in changes.iter().enumerate().filter(|(_, c)| !matches!(c, Change::Fork(_))) {
            let is_near = |group: &Vec<usize>| group.iter().any(|&j| meet(change, &changes[j]));
            let (near, rest): (Vec<_>, Vec<_>) = expected.into_iter().partition(is_near);
            expected = rest;
            expected.push([near.concat(), vec![i]].concat());
        }
        expected.iter_mut().for_each(|group| group.sort_unstable());
        expected.sort_unstable();
        assert_eq!(components(&changes), expected, "{changes:?}");
    }
}
