//! Lengths of files over time: Linux reads nothing ahead beyond the end that a file has at the
//! moment.

use refault_trace::{ObjectInfo, Record, RecordKind};

/// The files of a recording.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    /// Lengths in pages, by object; none: the recording does not say how long the file was at
    /// first.
    pages: Vec<Option<u64>>,
    /// Task and file of advice that gives up pages: drops by this task do not shorten the file.
    gives_up: Option<(u32, u32)>,
}

impl Lengths {
    pub(super) fn new(objects: &[ObjectInfo]) -> Lengths {
        Lengths { pages: objects.iter().map(|object| object.first_pages).collect(), gives_up: None }
    }

    /// The length of a file at this time, where it is known.
    pub(super) fn of(&self, object: u32) -> Option<u64> {
        self.pages[object as usize]
    }

    /// New length of a file, in pages, if a touch or an addition of pages shows that it has grown.
    pub(super) fn reached(&mut self, record: &Record) -> Option<u64> {
        let is_added = matches!(record.kind, RecordKind::Add | RecordKind::AddOther);
        if !record.kind.is_touch() && !is_added {
            return None;
        }
        if !is_added {
            self.gives_up = self.gives_up.filter(|&(task, _)| task != record.task);
        }
        let pages = self.pages[record.object as usize].as_mut()?;
        let end = record.page.saturating_add(u64::from(record.pages));
        let has_grown = end > *pages;
        *pages = end.max(*pages);
        has_grown.then_some(end)
    }

    pub(super) fn gives_up(&mut self, record: &Record) {
        self.gives_up = Some((record.task, record.object));
    }

    /// New length of a file, in pages, if a drop shows that it was truncated: its pages from `from`
    /// up to the drop are gone, and the last page is among them.
    pub(super) fn dropped(&mut self, record: &Record, from: u64) -> Option<u64> {
        let pages = self.pages[record.object as usize].as_mut()?;
        let is_at_end = record.page.saturating_add(u64::from(record.pages)) >= *pages;
        if !is_at_end || self.gives_up == Some((record.task, record.object)) {
            return None;
        }
        *pages = from.min(*pages);
        Some(*pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::{AdviceKind, ObjectKind, Op};

    #[test]
    fn files_grow_by_what_is_touched_and_end_where_they_are_truncated() {
        let known = ObjectInfo { first_pages: Some(10), ..ObjectInfo::new("/f", ObjectKind::File) };
        let mut lengths = Lengths::new(&[known, ObjectInfo::new("/old", ObjectKind::File)]);
        let record = |kind, page, pages| Record { kind, pages, ..Record::touch(page, Op::WRITE) };
        assert_eq!(lengths.reached(&record(RecordKind::Hit, 3, 6)), None);
        assert_eq!(lengths.reached(&record(RecordKind::Evict, 3, 60)), None);
        assert_eq!(lengths.reached(&record(RecordKind::Miss, 9, 3)), Some(12));
        assert_eq!(lengths.reached(&record(RecordKind::Add, 12, 1)), Some(13));
        assert_eq!(lengths.dropped(&record(RecordKind::Drop, 2, 4), 2), None, "not the last page");
        // A part that is not needed any more stays in the file.
        let all = record(RecordKind::Drop, 0, 13);
        lengths.gives_up(&record(RecordKind::Advise(AdviceKind::DontNeed), 0, 13));
        assert_eq!(lengths.dropped(&all, 0), None);
        assert_eq!(lengths.reached(&record(RecordKind::Hit, 0, 1)), None);
        assert_eq!(lengths.dropped(&record(RecordKind::Drop, 11, 2), 9), Some(9), "truncated");
        assert_eq!(lengths.reached(&record(RecordKind::Hit, 9, 1)), Some(10));
        let old = |record| Record { object: 1, ..record };
        assert_eq!(lengths.reached(&old(record(RecordKind::Miss, 9, 3))), None);
        assert_eq!(lengths.dropped(&old(all), 0), None);
    }
}
