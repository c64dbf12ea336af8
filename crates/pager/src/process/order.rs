//! In which order changes of mappings happened.
//!
//! The kernel tells of an unmapping or a move after it was done, without the lock of the mappings,
//! so another thread may have taken the addresses, and may be heard first. Changes that are heard
//! between two moments at which nothing was under way are a *batch*: a set without an order. Here
//! the order is found, or orders that come to the same: all orders of those changes that may have
//! to do with each other are tried, and those are ruled out that contradict what is known for
//! certain:
//!
//! - memory that was moved was there, and where it went, nothing was watched;
//! - in the end, pages are marked where the order has content that is not in place, and nowhere
//!   else ([`super::evict`] marks the pages that it takes away, and the kernel moves and drops
//!   marks with the mappings); memory that was moved is watched;
//! - a forked process has marks where the order has them at the time of the fork;
//! - who changes what a move brought knows of it, so that the move was over, and was read of,
//!   before;
//! - `madvise` and `fork` tell before they are over: `madvise` before it discards anything.
//!
//! If orders remain that differ in where content is, there is no answer.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::components::components;
use crate::uffd::PAGE;

/// A change, as it is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// Not mapped any more.
    Unmap(Range<usize>),
    /// The last thing in a range is moved; what was left there is not mapped any more (unless no
    /// [`Change::Unmap`] says so).
    Remap { from: usize, to: usize, len: usize },
    /// To be discarded.
    Remove(Range<usize>),
    /// A process was forked: the number that the caller gave it.
    Fork(usize),
}

impl Change {
    /// The addresses that it is about.
    pub(super) fn ranges(&self) -> Vec<Range<usize>> {
        match self {
            Change::Unmap(r) | Change::Remove(r) => vec![r.clone()],
            &Change::Remap { from, to, len } => vec![from..from + len, to..to + len],
            Change::Fork(_) => Vec::new(),
        }
    }
}

/// Memory as it was, in pieces to which the same happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Where it is now, or was when the process was forked.
    pub(super) at: Range<usize>,
    /// Address of its content before the batch; `None`: nothing that was in memory before is here.
    pub(super) origin: Option<usize>,
    /// Whether it is watched, as far as that follows.
    pub(super) watched: Option<bool>,
}

/// Memory after a batch at the addresses that it changes, in address order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Outcome {
    /// Pieces of the process.
    pub(super) now: Vec<Piece>,
    /// Pieces of the processes that were forked from it, by their numbers; with all addresses of
    /// `now`.
    pub(super) forks: Vec<(usize, Vec<Piece>)>,
}

/// Reason why an outcome cannot be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OutcomeDoubt {
    /// Something is under way after all: there is more to be read.
    Unsettled,
    /// More than one order fits, or none does.
    Unknown,
}

/// Answer to a question about an address, such as whether userfaultfd watches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Watched {
    Yes,
    No,
    /// It cannot be told.
    Unknown,
    /// Something is under way.
    Changing,
}

/// Why there may be a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// Content is not in place.
    Sure,
    /// Content is not in place, but it could not be marked.
    Unsure,
    /// Content is being discarded.
    Discarding,
}

/// Facts that are known beside the changes.
pub(super) trait Evidence {
    /// Addresses in a range that are or may be marked, in order.
    fn held(&self, range: &Range<usize>) -> Vec<(usize, Mark)>;
    /// Addresses in a range that are marked now, in order; `None`: it cannot be told.
    fn marks(&mut self, range: &Range<usize>) -> Option<Vec<usize>>;
    /// Whether a forked process has content, in place or stored, at an address that is watched
    /// there.
    fn has_content(&mut self, fork: usize, address: usize) -> Watched;
    /// Whether an address is watched now: by the process, or by one that was forked from it, which
    /// has not run yet.
    fn is_watched(&mut self, fork: Option<usize>, address: usize) -> Watched;
    /// Whether an address was first watched while something may have been under way.
    fn is_doubtful(&self, range: &Range<usize>) -> bool;
}

/// Pieces of a component at most, and pieces looked at in all states together.
const MOST_PIECES: usize = 2000;
const MOST_CONTENTS: usize = 4_000_000;
/// Most changes in a component: they are bits of a mask.
const MOST_CHANGES: usize = 64;

/// Finds the memory that a batch of changes led to, from all orders that agree with `evidence`.
pub(super) fn outcome(changes: &[Change], evidence: &mut dyn Evidence) -> Result<Outcome, OutcomeDoubt> {
    let fork = |(i, c): (usize, &Change)| if let Change::Fork(n) = c { Some((i, *n)) } else { None };
    let (at_forks, forks): (Vec<usize>, Vec<usize>) = changes.iter().enumerate().filter_map(fork).unzip();
    let mut all = Outcome { now: Vec::new(), forks: forks.iter().map(|&n| (n, Vec::new())).collect() };
    for component in components(changes) {
        let held = |&i: &usize| changes[i].ranges().iter().any(|r| has_content(&evidence.held(r)));
        let matters = component.iter().any(held);
        let found = match Component::new(changes, &component, &at_forks, &forks) {
            Ok(found) => found.solve(evidence)?,
            // Too many changes: all that was known of what is in place there is forgotten. It will
            // be found again.
            Err(_) if !matters => forgotten(changes, &component, &forks),
            Err(doubt) => return Err(doubt),
        };
        all.now.extend(found.now);
        for ((_, to), (_, from)) in all.forks.iter_mut().zip(found.forks) {
            to.extend(from);
        }
    }
    all.now.sort_unstable_by_key(|p| p.at.start);
    all.forks.iter_mut().for_each(|(_, pieces)| pieces.sort_unstable_by_key(|p| p.at.start));
    Ok(all)
}

/// Nothing is known any more of what changes are about.
fn forgotten(changes: &[Change], component: &[usize], forks: &[usize]) -> Outcome {
    let mut ranges: Vec<Range<usize>> = component.iter().flat_map(|&i| changes[i].ranges()).collect();
    ranges.sort_unstable_by_key(|r| r.start);
    let mut now: Vec<Piece> = Vec::new();
    for range in ranges {
        match now.last_mut().filter(|last| last.at.end >= range.start) {
            Some(last) => last.at.end = last.at.end.max(range.end),
            None => now.push(Piece { at: range, origin: None, watched: Some(false) }),
        }
    }
    Outcome { forks: forks.iter().map(|&n| (n, now.clone())).collect(), now }
}

/// Content of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Content {
    /// Piece that the content was in before.
    origin: Option<u16>,
    /// Whether it is watched, as far as that follows.
    watched: Option<bool>,
    /// Change that moved the content here.
    by: Option<u16>,
    /// Whether the content is to be discarded, which may be done or not.
    is_discarding: bool,
}

/// A state of the search.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    left: u64,
    content: Vec<Content>,
    /// Content that forked processes got.
    snapshots: Vec<Option<Vec<Content>>>,
}

/// Facts of the pieces that are known beside the changes.
struct KnownMarks {
    /// Offsets into each piece of what may be marked.
    held: Vec<Vec<(usize, Mark)>>,
    /// Offsets of marks that are there now.
    marks: Vec<Option<Vec<usize>>>,
}

struct Component {
    /// Changes in the order in which they were read, with their numbers. A change that is read
    /// twice is listed once.
    changes: Vec<(usize, Change)>,
    pieces: Vec<Range<usize>>,
    forks: Vec<usize>,
    /// Pieces of each change; of a move, the pieces of its source and of its destination.
    of: Vec<(Vec<u16>, Vec<u16>)>,
    /// For each move: whether its source is mapped afterwards.
    keeps: Vec<bool>,
}

impl Component {
    /// Component of the changes `members`, with forks: the changes `at_forks`, and processes
    /// `forks`.
    fn new(all: &[Change], members: &[usize], at_forks: &[usize], forks: &[usize]) -> Result<Component, OutcomeDoubt> {
        // After a move, what it left is told of as unmapped: that is part of it.
        let mut part_of_a_move = HashSet::new();
        let mut keeps = HashSet::new();
        for (at, &i) in members.iter().enumerate() {
            if let Change::Remap { from, len, .. } = all[i] {
                let left = Change::Unmap(from..from + len);
                let found = members[at + 1..].iter().find(|&&j| all[j] == left && !part_of_a_move.contains(&j));
                match found {
                    Some(&j) => _ = part_of_a_move.insert(j),
                    None => _ = keeps.insert(i),
                }
            }
        }
        let mut numbers: Vec<usize> = members.iter().copied().filter(|i| !part_of_a_move.contains(i)).collect();
        numbers.extend(at_forks);
        numbers.sort_unstable();
        let pieces = pieces(members.iter().map(|&i| &all[i]))?;
        if numbers.len() > MOST_CHANGES {
            return Err(OutcomeDoubt::Unknown);
        }
        let changes: Vec<(usize, Change)> = numbers.into_iter().map(|i| (i, all[i].clone())).collect();
        let inside = |range: &Range<usize>| -> Vec<u16> {
            let is_inside = |&i: &u16| range.start <= pieces[i as usize].start && pieces[i as usize].end <= range.end;
            (0..pieces.len() as u16).filter(is_inside).collect()
        };
        let of = |change: &Change| {
            let mut parts = change.ranges().into_iter().map(|r| inside(&r));
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
        };
        Ok(Component {
            of: changes.iter().map(|(_, c)| of(c)).collect(),
            keeps: changes.iter().map(|(i, _)| keeps.contains(i)).collect(),
            forks: forks.to_vec(),
            changes,
            pieces,
        })
    }

    fn solve(&self, evidence: &mut dyn Evidence) -> Result<Outcome, OutcomeDoubt> {
        let offsets = |piece: &Range<usize>| -> Vec<(usize, Mark)> {
            evidence.held(piece).into_iter().map(|(address, mark)| (address - piece.start, mark)).collect()
        };
        let held: Vec<Vec<(usize, Mark)>> = self.pieces.iter().map(offsets).collect();
        let start = State {
            left: u64::MAX >> (64 - self.changes.len()),
            content: (0..self.pieces.len())
                .map(|i| Content {
                    origin: Some(i as u16),
                    watched: has_content(&held[i]).then_some(true),
                    by: None,
                    is_discarding: false,
                })
                .collect(),
            snapshots: vec![None; self.forks.len()],
        };
        let is_told_apart = |c: &(usize, Change)| matches!(c.1, Change::Remap { .. } | Change::Fork(_));
        if !held.iter().any(|h| has_content(h)) || !self.changes.iter().any(is_told_apart) {
            // Nothing can be lost or mixed up, or all that is there is gone: the order in which
            // they were read will do.
            let mut state = start;
            for i in 0..self.changes.len() {
                state = self.apply(&state, i);
            }
            return Ok(self.described(&state));
        }
        let marks = self.pieces.iter().map(|piece| {
            let found = evidence.marks(piece);
            found.map(|all| all.into_iter().map(|address| address - piece.start).collect())
        });
        let known = KnownMarks { marks: marks.collect(), held };
        let mut fitting: Vec<State> = Vec::new();
        // Memory that was to be discarded before a fork was read of is not in the forked process,
        // unless that does not fit: then both were under way. And a forked process may have less
        // than its parent (MADV_DONTFORK): then what it has need not fit.
        for (by_reading, strict) in [(true, true), (false, true), (true, false), (false, false)] {
            for end in self.search(start.clone(), by_reading)? {
                if self.fits(&end, &known, evidence, strict)? {
                    fitting.push(end);
                }
            }
            if !fitting.is_empty() || self.forks.is_empty() {
                break;
            }
        }
        let held = &known.held;
        let where_held = |state: &State| -> Vec<Vec<Option<u16>>> {
            let of = |content: &Vec<Content>| -> Vec<Option<u16>> {
                content.iter().map(|c| c.origin.filter(|&o| has_content(&held[o as usize]))).collect()
            };
            std::iter::once(of(&state.content)).chain(state.snapshots.iter().flatten().map(of)).collect()
        };
        let first = fitting.first().ok_or(OutcomeDoubt::Unknown)?;
        let expected = where_held(first);
        if fitting[1..].iter().any(|other| where_held(other) != expected) {
            return Err(OutcomeDoubt::Unknown);
        }
        Ok(self.described(first))
    }

    /// Everything that may have come of it. `by_reading`: forks follow what was to be discarded and
    /// read before.
    fn search(&self, start: State, by_reading: bool) -> Result<Vec<State>, OutcomeDoubt> {
        let mut seen = HashSet::new();
        let mut ends = Vec::new();
        let mut stack = vec![start];
        while let Some(state) = stack.pop() {
            if state.left == 0 {
                ends.push(state);
                continue;
            }
            for i in (0..self.changes.len()).filter(|i| state.left >> i & 1 == 1) {
                if !self.may_be_next(&state, i, by_reading) {
                    continue;
                }
                let next = self.apply(&state, i);
                if seen.insert(next.clone()) {
                    stack.push(next);
                }
            }
            if seen.len() * self.pieces.len() > MOST_CONTENTS {
                return Err(OutcomeDoubt::Unknown);
            }
        }
        Ok(ends)
    }

    fn may_be_next(&self, state: &State, i: usize, by_reading: bool) -> bool {
        let content = |p: &u16| state.content[*p as usize];
        let (number, change) = &self.changes[i];
        // Content that a move brought is changed by those who know of it: not before it was read.
        let is_known = |p: &u16| content(p).by.is_none_or(|by| usize::from(by) < *number);
        let is_left = |j: usize| state.left >> j & 1 == 1;
        let (first, second) = &self.of[i];
        // Discarding comes after it was read of, so after all that was read before.
        let follows = match change {
            Change::Remove(range) => (0..i).all(|j| {
                let other = &self.changes[j].1;
                let meets = other.ranges().iter().any(|r| r.start < range.end && range.start < r.end);
                !is_left(j) || !(meets || matches!(other, Change::Fork(_)))
            }),
            Change::Fork(_) if by_reading => {
                (0..i).all(|j| !is_left(j) || !matches!(self.changes[j].1, Change::Remove(_)))
            }
            _ => true,
        };
        let fits = match change {
            Change::Unmap(_) => first.iter().any(|p| content(p).watched != Some(false)),
            Change::Remap { .. } => {
                // Memory that follows the first page may have grown there: nothing tells of that.
                first.first().is_some_and(|p| content(p).watched != Some(false))
                    && second.iter().all(|p| content(p).watched != Some(true))
            }
            Change::Remove(_) | Change::Fork(_) => true,
        };
        follows && fits && first.iter().all(is_known)
    }

    fn apply(&self, state: &State, i: usize) -> State {
        let mut next = state.clone();
        next.left &= !(1 << i);
        let (number, change) = &self.changes[i];
        let (first, second) = &self.of[i];
        let nothing = |watched| Content { origin: None, watched, by: None, is_discarding: false };
        match change {
            Change::Unmap(_) => first.iter().for_each(|&p| next.content[p as usize] = nothing(Some(false))),
            Change::Remove(_) => first.iter().for_each(|&p| {
                let content = &mut next.content[p as usize];
                (content.origin, content.is_discarding) = (None, true);
            }),
            Change::Remap { .. } => {
                for (&from, &to) in first.iter().zip(second) {
                    let moved = state.content[from as usize];
                    next.content[to as usize] =
                        Content { watched: Some(true), by: Some(*number as u16), is_discarding: false, ..moved };
                }
                first.iter().filter(|p| !second.contains(p)).for_each(|&p| {
                    next.content[p as usize] = nothing(Some(self.keeps[i]));
                });
            }
            Change::Fork(n) => {
                let at = self.forks.iter().position(|f| f == n);
                at.into_iter().for_each(|at| next.snapshots[at] = Some(state.content.clone()));
            }
        }
        next
    }

    /// Whether what is there is what should be.
    fn fits(
        &self,
        end: &State,
        known: &KnownMarks,
        evidence: &mut dyn Evidence,
        strict: bool,
    ) -> Result<bool, OutcomeDoubt> {
        for (i, piece) in self.pieces.iter().enumerate() {
            let content = &end.content[i];
            let held = content.origin.map_or(&[][..], |o| &known.held[o as usize]);
            let is_marked = known.marks[i].as_ref().map(|marks| fits_marks(held, marks, !content.is_discarding));
            if is_marked == Some(false) {
                return Ok(false);
            }
            let Some(should) = content.watched else { continue };
            // Whether memory is watched is known for certain where content was or should be.
            // Mappings may grow, and then are watched where nothing said so.
            let first = held.first().or(known.held[i].first()).map_or(0, |h| h.0);
            match evidence.is_watched(None, piece.start + first) {
                Watched::No if should => return Ok(false),
                Watched::Yes if !should && is_marked.is_none() && !evidence.is_doubtful(piece) => {
                    return Ok(false);
                }
                Watched::Changing => return Err(OutcomeDoubt::Unsettled),
                _ => {}
            }
        }
        Ok(!strict
            || end.snapshots.iter().flatten().zip(&self.forks).all(|(c, &n)| self.fits_fork(c, n, known, evidence)))
    }

    /// Whether what a forked process has is what it should have.
    fn fits_fork(&self, content: &[Content], fork: usize, known: &KnownMarks, evidence: &mut dyn Evidence) -> bool {
        self.pieces.iter().zip(content).enumerate().all(|(i, (piece, content))| {
            let held = content.origin.map_or(&[][..], |o| &known.held[o as usize]);
            let at = piece.start + held.first().or(known.held[i].first()).map_or(0, |h| h.0);
            match (content.watched, evidence.is_watched(Some(fork), at)) {
                (Some(true), Watched::No) | (Some(false), Watched::Yes) => return false,
                _ => {}
            }
            let marked = held.iter().find(|h| h.1 == Mark::Sure).map(|h| piece.start + h.0);
            marked.is_none_or(|at| evidence.has_content(fork, at) != Watched::No)
        })
    }

    fn described(&self, state: &State) -> Outcome {
        let describe = |content: &Vec<Content>| -> Vec<Piece> {
            let pieces = self.pieces.iter().zip(content);
            let start = |o: u16| self.pieces[o as usize].start;
            pieces.map(|(at, c)| Piece { at: at.clone(), origin: c.origin.map(start), watched: c.watched }).collect()
        };
        Outcome {
            now: describe(&state.content),
            forks: self.forks.iter().zip(state.snapshots.iter().flatten()).map(|(&n, s)| (n, describe(s))).collect(),
        }
    }
}

/// Whether there is content that is not in place.
fn has_content(held: &[(usize, Mark)]) -> bool {
    held.iter().any(|h| h.1 != Mark::Discarding)
}

/// Whether marks are where content is. `alone`: and nowhere else.
fn fits_marks(held: &[(usize, Mark)], marks: &[usize], alone: bool) -> bool {
    let all_there = held.iter().all(|(at, sure)| *sure != Mark::Sure || marks.binary_search(at).is_ok());
    let is_expected = |at: &usize| held.binary_search_by_key(at, |h| h.0).is_ok();
    all_there && (!alone || marks.iter().all(is_expected))
}

/// The pieces to which the same happens: every end of a range is one of a piece, and moved pieces
/// are pieces.
fn pieces<'a>(changes: impl Iterator<Item = &'a Change> + Clone) -> Result<Vec<Range<usize>>, OutcomeDoubt> {
    let ranges: Vec<Range<usize>> = changes.clone().flat_map(Change::ranges).collect();
    let mut ends: BTreeSet<usize> = ranges.iter().flat_map(|r| [r.start, r.end]).collect();
    loop {
        let before = ends.len();
        for change in changes.clone() {
            if let &Change::Remap { from, to, len } = change {
                let moved: Vec<usize> = ends.range(from..from + len).map(|e| e - from + to).collect();
                let back: Vec<usize> = ends.range(to..to + len).map(|e| e - to + from).collect();
                ends.extend(moved.into_iter().chain(back));
            }
        }
        if ends.len() > MOST_PIECES {
            return Err(OutcomeDoubt::Unknown);
        }
        if ends.len() == before {
            break;
        }
    }
    let ends: Vec<usize> = ends.into_iter().collect();
    debug_assert!(ends.iter().all(|e| e % PAGE == 0));
    let is_meant = |p: &Range<usize>| ranges.iter().any(|r| r.start <= p.start && p.end <= r.end);
    Ok(ends.windows(2).map(|w| w[0]..w[1]).filter(is_meant).collect())
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
