//! Pages in memory when a file was first seen.
//!
//! A look at the page cache comes after the events that are taken: between the moment at which a
//! file becomes known and the look, pages come and go. The first event of a page since then says
//! whether it was in memory, and the look does so for pages without an event. So a place is kept in
//! the queue of records until the events up to the look are taken.

use super::{Assembler, Files};
use crate::event::Inode;
use crate::residency::Residency;
use refault_trace::{MAX_PAGES_PER_RECORD, Op, Record, RecordKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;

/// Changes of pages that are kept for looks that are to come.
const MOST_CHANGES: usize = 1 << 20;

/// Rows of pages that were in memory, of a whole recording.
const MOST_ROWS: usize = 1 << 22;

/// Most pages of a file that is looked at: 4 TiB.
const MOST_PAGES: u64 = 1 << 30;

/// A file whose pages in memory are not known yet.
#[derive(Debug)]
struct Waiting {
    /// Number of its record among all that were queued.
    at: u64,
    object: u32,
    /// The pages that came (false: they were not in memory before) and went (true), in their order.
    changes: Vec<(Range<u64>, bool)>,
    /// Pages that were in memory, and when that was known.
    seen: Option<(Vec<Range<u64>>, u64)>,
}

/// Files whose pages in memory are not known yet.
#[derive(Debug, Default)]
pub(super) struct ResidencyQueue {
    waiting: FxHashMap<Inode, Waiting>,
    /// Places in the queue: what belongs there; none: not known yet.
    places: FxHashMap<u64, Option<Vec<Range<u64>>>>,
    /// Objects that were looked at as a whole.
    known: FxHashSet<u32>,
    /// Files that somebody else looks at.
    later: Vec<(Inode, u32)>,
    /// Sums over all files that wait: changes, and ranges of pages in memory.
    changes: usize,
    rows: usize,
    /// Files whose pages in memory will not be known.
    failed: u32,
}

impl ResidencyQueue {
    /// A page of a file came, or went.
    #[inline]
    pub(super) fn changed(&mut self, inode: Inode, pages: Range<u64>, was_there: bool) {
        if self.waiting.is_empty() {
            return;
        }
        let Some(waiting) = self.waiting.get_mut(&inode) else { return };
        match waiting.changes.last_mut() {
            Some((last, was)) if last.end == pages.start && *was == was_there => last.end = pages.end,
            _ if self.changes >= MOST_CHANGES => self.give_up(inode),
            _ => {
                waiting.changes.push((pages, was_there));
                self.changes += 1;
            }
        }
    }

    fn take(&mut self, inode: Inode) -> Option<Waiting> {
        let waiting = self.waiting.remove(&inode)?;
        self.changes -= waiting.changes.len();
        Some(waiting)
    }

    fn give_up(&mut self, inode: Inode) {
        if let Some(waiting) = self.take(inode) {
            self.places.remove(&waiting.at);
            self.failed += 1;
        }
    }

    /// The file is deleted: there is no more to come.
    pub(super) fn freed(&mut self, inode: Inode) {
        match self.waiting.get(&inode).map(|waiting| waiting.seen.is_some()) {
            Some(true) => self.resolve(inode),
            // Nobody can look any more, and nobody wants to know.
            Some(false) => {
                let waiting = self.take(inode);
                self.places.remove(&waiting.map_or(u64::MAX, |w| w.at));
            }
            None => {}
        }
    }

    fn resolve(&mut self, inode: Inode) {
        let Some(Waiting { at, object, changes, seen: Some((seen, _)), .. }) = self.take(inode) else { return };
        let end = changes.iter().map(|(pages, _)| pages.end).max().unwrap_or(0);
        let pages = if end > MOST_PAGES { Vec::new() } else { before(seen, &changes) };
        let Some(place) = self.places.get_mut(&at) else { return };
        self.rows += pages.len();
        if self.rows > MOST_ROWS || end > MOST_PAGES {
            self.places.remove(&at);
            self.failed += 1;
            return;
        }
        *place = Some(pages);
        self.known.insert(object);
    }

    /// Whether the record at this place has to wait.
    pub(super) fn waits(&self, at: u64) -> bool {
        matches!(self.places.get(&at), Some(None))
    }

    /// Appends what belongs in the place of a record.
    pub(super) fn emit(&mut self, at: u64, record: &Record, out: &mut Vec<Record>) {
        let place = self.places.remove(&at);
        // It could not wait any longer.
        self.failed += u32::from(place == Some(None));
        for mut run in place.flatten().unwrap_or_default() {
            while !run.is_empty() {
                let pages = (run.end - run.start).min(u64::from(MAX_PAGES_PER_RECORD));
                out.push(Record { page: run.start, pages: pages as u32, ..*record });
                run.start += pages;
            }
        }
    }
}

impl Assembler {
    /// A file that programs have open or mapped, or that lies beside one, from this moment on: of
    /// what it had in memory there will be rows. True: it was not known before.
    pub fn register(&mut self, inode: Inode, pid: u32, files: &mut impl Files) -> bool {
        let is_new = !self.files.contains_key(&inode);
        if is_new {
            self.known_file(inode, pid, false, files);
        }
        is_new
    }

    /// A file was just numbered: this came of the look at it.
    pub(super) fn first_look(&mut self, inode: Inode, object: u32, pid: u32, look: Residency) {
        let seen = match look {
            Residency::Seen(pages, at_ns) => Some((self.all_kept(inode, pages), at_ns)),
            Residency::Later => {
                self.residents.later.push((inode, pid));
                None
            }
            Residency::Failed => {
                self.residents.failed += 1;
                return;
            }
            Residency::Never => return,
        };
        let time_ns = self.last_ns.max(self.start_ns) - self.start_ns;
        let record =
            Record { time_ns, page: 0, task: 0, memcg: 0, object, pages: 1, op: Op::READ, kind: RecordKind::Resident };
        self.queue.push_back(record);
        let at = self.gone + self.queue.len() as u64 - 1;
        self.residents.places.insert(at, None);
        self.residents.waiting.insert(inode, Waiting { at, object, changes: Vec::new(), seen });
    }

    /// Files that are to be looked at, with a process that uses each: [`looked`](Self::looked)
    /// tells.
    pub fn to_look(&mut self) -> Vec<(Inode, u32)> {
        std::mem::take(&mut self.residents.later)
    }

    /// Somebody looked: these pages of a file were in memory, ascending and apart, by this time;
    /// none: it could not be done.
    pub fn looked(&mut self, inode: Inode, pages: Option<Vec<Range<u64>>>, at_ns: u64) {
        let pages = pages.map(|pages| self.all_kept(inode, pages));
        match (self.residents.waiting.get_mut(&inode), pages) {
            (Some(waiting), Some(pages)) => waiting.seen = Some((pages, at_ns)),
            _ => self.residents.give_up(inode),
        }
    }

    /// Takes note that all events up to this time are taken.
    pub fn passed(&mut self, time_ns: u64) {
        let is_ready = |w: &Waiting| w.seen.as_ref().is_some_and(|(_, at_ns)| *at_ns <= time_ns);
        let ready = self.residents.waiting.iter().filter(|(_, waiting)| is_ready(waiting));
        for inode in ready.map(|(&inode, _)| inode).collect::<Vec<_>>() {
            self.residents.resolve(inode);
        }
    }

    /// Whether the object with this number was looked at as a whole.
    pub fn is_residency_known(&self, object: usize) -> bool {
        self.residents.known.contains(&(object as u32))
    }

    /// Files whose pages in memory were to be known, and are not.
    pub fn unlooked(&self) -> u32 {
        self.residents.failed
    }
}

/// Pages that were in memory before these changes; the first change of a page decides.
fn before(seen: Vec<Range<u64>>, changes: &[(Range<u64>, bool)]) -> Vec<Range<u64>> {
    if changes.is_empty() {
        return seen;
    }
    // By their first pages; a bit a page would be as large as a sparse file.
    let mut runs = BTreeMap::new();
    seen.iter().for_each(|run| set(&mut runs, run, true));
    changes.iter().rev().for_each(|(pages, was_there)| set(&mut runs, pages, *was_there));
    let mut joined: Vec<Range<u64>> = Vec::new();
    for (start, end) in runs {
        match joined.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => joined.push(start..end),
        }
    }
    joined
}

/// Puts pages among runs, or takes them out.
fn set(runs: &mut BTreeMap<u64, u64>, pages: &Range<u64>, is_there: bool) {
    let last = |runs: &BTreeMap<u64, u64>| runs.range(..pages.end).next_back().map(|(&start, &end)| (start, end));
    while let Some((start, end)) = last(runs).filter(|&(_, end)| end > pages.start) {
        runs.remove(&start);
        if end > pages.end {
            runs.insert(pages.end, end);
        }
        if start < pages.start {
            runs.insert(start, pages.start);
        }
    }
    if is_there && !pages.is_empty() {
        runs.insert(pages.start, pages.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "one run")]
    fn the_first_change_of_a_page_decides() {
        let seen = || vec![0..4, 70..80];
        assert_eq!(before(seen(), &[]), seen());
        // Page 2 came and went and came; page 5 went and came; 90 went; 71 was added.
        let changes = [(2..3, false), (2..3, true), (5..6, true), (5..6, false), (90..91, true), (71..72, false)];
        assert_eq!(before(seen(), &changes), [0..2, 3..4, 5..6, 70..71, 72..80, 90..91]);
        assert_eq!(before(Vec::new(), &[(0..9, false)]), []);
        assert_eq!(before(vec![0..9], &[(2..4, false), (3..6, true), (9..12, true)]), [0..2, 4..12]);
    }

    #[test]
    fn regression_a_page_far_into_a_sparse_file_costs_no_more_than_one_at_its_beginning() {
        let far = MOST_PAGES - 1;
        for _ in 0..10_000 {
            let changes = [(far..far + 1, true), (3..4, true), (far - 9..far - 8, false)];
            assert_eq!(before(Vec::new(), &changes), [3..4, far..far + 1]);
        }
    }
}
