//! The page cache of the recorded kernel, and what follows from it for pages that only the lab has.
//!
//! A kernel that drops or reads a range tells of the pages that this changes. It does not tell of
//! pages in the range that it had evicted before, or already had. The lab may differ in these:
//! pages between two that the kernel took one after the other count as taken, too.

use refault_trace::{Record, RecordKind};
use std::ops::Range;

/// Pages of one pass follow one another at once.
const PASS_NS: u64 = 1_000_000;

/// A task that goes through the pages of a file.
#[derive(Clone, Copy, Debug)]
struct Pass {
    kind: RecordKind,
    object: u32,
    task: u32,
    /// Next page of the pass, and the page before which the pass ends.
    next: u64,
    end: u64,
    time_ns: u64,
}

/// Page cache of the kernel, and its changes.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Whether the kernel has a page in memory, by id of the page in the replay.
    has: Vec<bool>,
    pass: Option<Pass>,
}

impl Cache {
    /// An empty cache with room for `pages` pages.
    pub(super) fn new(pages: usize) -> Cache {
        Cache { has: vec![false; pages], pass: None }
    }

    pub(super) fn has(&self, id: u32) -> bool {
        self.has.get(id as usize).is_some_and(|&has| has)
    }

    pub(super) fn set(&mut self, ids: Range<u32>, has: bool) {
        if let Some(pages) = self.has.get_mut(ids.start as usize..ids.end as usize) {
            pages.fill(has);
        }
    }

    /// A task does something else.
    pub(super) fn end_pass(&mut self, task: u32) {
        self.pass = self.pass.filter(|pass| pass.task != task);
    }

    /// Begins a pass over a range that a program wants: additions of it by the task belong to it.
    pub(super) fn begin_reading(&mut self, record: &Record) {
        let end = record.page.saturating_add(u64::from(record.pages));
        let Record { object, task, page, time_ns, .. } = *record;
        self.pass = Some(Pass { kind: RecordKind::Add, object, task, next: page, end, time_ns });
    }

    /// Pages of a wanted range that were skipped in front of this addition; none: the addition is
    /// in no wanted range.
    pub(super) fn passed_reading(&mut self, record: &Record) -> Option<Range<u64>> {
        let pass = self.pass.as_mut().filter(|pass| pass.is(RecordKind::Add, record))?;
        let passed = (pass.next..pass.end).contains(&record.page).then_some(pass.next..record.page)?;
        pass.next = record.page + u64::from(record.pages);
        Some(passed)
    }

    /// Pages that a pass of drops skipped in front of this drop.
    pub(super) fn passed_dropping(&mut self, record: &Record) -> Range<u64> {
        let Record { kind, object, task, page, time_ns, .. } = *record;
        let goes_on = |pass: &&Pass| {
            pass.is(RecordKind::Drop, record) && pass.next <= page && time_ns.saturating_sub(pass.time_ns) <= PASS_NS
        };
        let from = self.pass.as_ref().filter(goes_on).map_or(page, |pass| pass.next);
        let next = page + u64::from(record.pages);
        self.pass = Some(Pass { kind, object, task, next, end: u64::MAX, time_ns });
        from..page
    }
}

impl Pass {
    fn is(&self, kind: RecordKind, record: &Record) -> bool {
        (self.kind, self.object, self.task) == (kind, record.object, record.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::Op;

    fn record(kind: RecordKind, page: u64, pages: u32, time_ns: u64) -> Record {
        Record { kind, pages, time_ns, ..Record::touch(page, Op::READ) }
    }

    #[test]
    fn what_lies_between_drops_is_passed() {
        let mut cache = Cache::new(0);
        let mut passed = |page, time_ns| cache.passed_dropping(&record(RecordKind::Drop, page, 2, time_ns));
        assert_eq!(passed(10, 0), 10..10);
        assert_eq!(passed(20, 1000), 12..20);
        // Backwards, and a while later, is another pass.
        assert_eq!(passed(5, 2000), 5..5);
        assert_eq!(passed(30, 2001 + PASS_NS), 30..30);
        cache.end_pass(1);
        assert_eq!(cache.passed_dropping(&record(RecordKind::Drop, 40, 1, PASS_NS)), 32..40);
        cache.end_pass(0);
        assert_eq!(cache.passed_dropping(&record(RecordKind::Drop, 50, 1, PASS_NS)), 50..50);
    }

    #[test]
    fn what_is_added_of_a_range_that_is_wanted_is_passed() {
        let mut cache = Cache::new(0);
        assert_eq!(cache.passed_reading(&record(RecordKind::Add, 10, 1, 0)), None);
        cache.begin_reading(&record(RecordKind::Touch, 10, 20, 0));
        assert_eq!(cache.passed_reading(&record(RecordKind::Add, 12, 2, 0)), Some(10..12));
        assert_eq!(cache.passed_reading(&record(RecordKind::Add, 20, 4, 0)), Some(14..20));
        assert_eq!(cache.passed_reading(&record(RecordKind::Add, 30, 1, 0)), None, "behind the range");
        let other = Record { object: 1, ..record(RecordKind::Add, 25, 1, 0) };
        assert_eq!(cache.passed_reading(&other), None);
    }
}
