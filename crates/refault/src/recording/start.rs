//! State of memory when a recording begins: pages that were there, and how many of them the
//! recording cannot tell.
//!
//! A program that is started by the recorder begins with nothing. A service that was attached to
//! has been running: its group holds pages, of which a recording knows those that the recorder
//! looked at (rows `Resident`) and those whose first touch was a hit. The rest is known by its
//! number alone (`file` of `memory.stat`): stand-ins take its room, so that reclaim begins as it
//! did there.

use super::load::shmem;
use refault_trace::{Record, RecordKind, Recording, Via};
use std::collections::{HashMap, HashSet};

/// Pages in memory before a recording.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Known pages. The page most likely used last, and so needed first, comes last.
    pub pages: Vec<Resident>,
    /// Pages that a warm service had lost before, the one most likely lost last at the end.
    pub evicted: Vec<(u32, u64)>,
    /// Whether the recorded group is charged for them: what it had in files then says so. A page
    /// belongs to the group that brought it in.
    pub is_own: bool,
    /// Number of further pages of the group, of which nothing else is known.
    pub stand_ins: u64,
    /// Pages on its list of active files; none: not known.
    pub active: Option<u64>,
    /// The programs had been running in this group: a page that was not in memory may have been
    /// there with a larger limit.
    pub is_warm: bool,
}

/// A page in memory before the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    pub object: u32,
    pub page: u64,
    /// Touches of it in the recording; 0 where it was evicted before the first.
    pub touches: u32,
    /// Evicted before its first touch.
    pub is_evicted: bool,
    /// Not touched in the recording, and not evicted from a file that was touched.
    is_idle: bool,
}

impl Start {
    /// State at the start of a recording with these records of files.
    pub(super) fn of(recording: &Recording, records: &[Record]) -> Start {
        let (mut pages, mut evicted) = seen(records);
        let one_in = recording.sample.map_or(1, |sample| sample.one_in);
        let files = files_at_start(recording).map(|pages| pages / one_in);
        // Unused pages may be charged to another group, as libraries are. If more pages are known
        // than the group had, unused ones are left out, and the group's number of pages alone tells
        // how many there are besides.
        if files.is_some_and(|files| pages.len() as u64 > files) {
            pages.retain(|page| !page.is_idle);
        }
        let used = pages.iter().filter(|page| !page.is_idle).count() as u64;
        let is_own = files.is_none_or(|files| files >= used / 2);
        let started = recording.attached.map(|attached| !attached);
        // Without that word: a group that has next to nothing has just been made.
        let is_warm = match started {
            Some(started) => !started,
            None => files.is_some_and(|files| files >= LEAST_WARM && is_own),
        };
        let known = pages.len() as u64;
        // Pages that nobody looked at are there, too: files that no program touched while it was
        // recorded.
        let stand_ins = files.filter(|_| is_warm && is_own).map_or(0, |files| files.saturating_sub(known));
        let active = snapshot_pages(recording, "active_file").map(|pages| pages / one_in).filter(|_| is_warm && is_own);
        if !is_warm {
            evicted.clear();
        }
        Start { pages, evicted, is_own, stand_ins, active, is_warm }
    }
}

/// Least pages in files of a group in which programs are taken to have been running.
const LEAST_WARM: u64 = 4096;

/// Pages of files that the group had at the start; none: there is no group.
fn files_at_start(recording: &Recording) -> Option<u64> {
    recording.group.as_ref()?;
    let (first, series) = (recording.series.snapshots.first()?, &recording.series);
    let file = *first.values.get(series.column("file")?)?;
    // The kernel counts shared memory and tmpfs among files, but no file here has these pages.
    Some(file.saturating_sub(shmem(series, &first.values).unwrap_or(0)) / 4096)
}

fn snapshot_pages(recording: &Recording, name: &str) -> Option<u64> {
    recording.group.as_ref()?;
    Some(recording.series.ends(name)?.0 / 4096)
}

/// A page in memory before the recording.
#[derive(Clone, Copy, Debug)]
struct Seen {
    in_place: bool,
    /// Index of the record with which the page left memory, if no touch came before.
    evicted: Option<usize>,
    /// Index of the record of the first touch, and the number of touches.
    touched: Option<usize>,
    touches: u32,
    /// The place of its first record.
    first: usize,
}

/// Pages in memory when the recording began, the one most likely used last at the end: pages that
/// the recorder saw there, pages whose first touch was a hit of the kernel though it had not added
/// them, and pages that it evicted without having added them. Then pages lost before.
fn seen(records: &[Record]) -> (Vec<Resident>, Vec<(u32, u64)>) {
    let mut seen: HashMap<(u32, u64), Seen> = HashMap::new();
    // Advice of programs says nothing of where pages are.
    for (at, record) in records.iter().enumerate().filter(|(_, record)| !matches!(record.kind, RecordKind::Advise(_))) {
        let is_touch = record.kind.is_touch();
        let leaves = matches!(record.kind, RecordKind::Evict | RecordKind::Drop);
        for i in 0..record.pages {
            // Pages of a write come after it began; of reads the pages come before.
            let in_place = match record.kind {
                RecordKind::Hit | RecordKind::Sampled | RecordKind::Resident | RecordKind::Evict | RecordKind::Drop => {
                    true
                }
                RecordKind::Miss => i > 0 && record.op.via == Some(Via::Fd) && !record.op.write,
                _ => false,
            };
            let new = Seen { in_place, evicted: None, touched: None, touches: 0, first: at };
            let page = seen.entry((record.object, record.page + u64::from(i))).or_insert(new);
            if page.touched.is_none() && page.evicted.is_none() && leaves {
                page.evicted = Some(at);
            }
            if is_touch {
                page.touched.get_or_insert(at);
                page.touches = page.touches.saturating_add(1);
            }
        }
    }
    let touched: HashSet<u32> = records.iter().filter(|r| r.kind.is_touch()).map(|r| r.object).collect();
    let (mut all, mut evicted): (Vec<_>, Vec<_>) = seen.into_iter().partition(|(_, page)| page.in_place);
    // Others brought them in: the group never had them.
    evicted.retain(|(_, page)| records[page.first].kind != RecordKind::AddOther);
    evicted.sort_unstable_by_key(|&(key, page)| (std::cmp::Reverse(page.first), key));
    // Reclaim takes the page first that was used longest ago; a program comes back first to the
    // page that it used last. Pages with neither an eviction nor a touch lie between.
    all.sort_unstable_by_key(|&((object, number), page)| {
        let order = match (page.evicted, page.touched) {
            (Some(at), _) => (0, at),
            (None, None) => (1, 0),
            (None, Some(at)) => (2, usize::MAX - at),
        };
        (order, object, number)
    });
    let resident = |((object, page), seen): ((u32, u64), Seen)| {
        let touches = if seen.evicted.is_some() { 0 } else { seen.touches };
        let is_used = seen.touched.is_some() || seen.evicted.is_some() && touched.contains(&object);
        Resident { object, page, touches, is_evicted: seen.evicted.is_some(), is_idle: !is_used }
    };
    (all.into_iter().map(resident).collect(), evicted.into_iter().map(|(key, _)| key).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::{AdviceKind, Op, Series, Snapshot};

    fn record(kind: RecordKind, page: u64, pages: u32) -> Record {
        Record { kind, pages, ..Record::touch(page, Op { write: false, via: Some(Via::Fd) }) }
    }

    fn pages(records: &[Record]) -> Vec<(u64, u32)> {
        seen(records).0.iter().map(|r| (r.page, r.touches)).collect()
    }

    #[test]
    fn regression_advice_on_pages_in_place_does_not_hide_them() {
        let records = [record(RecordKind::Advise(AdviceKind::MapExecutable), 0, 10), record(RecordKind::Hit, 3, 1)];
        assert_eq!(pages(&records), [(3, 1)]);
    }

    #[test]
    fn pages_in_place_are_residents() {
        let records = [
            record(RecordKind::Resident, 20, 2),
            record(RecordKind::Hit, 1, 2),
            record(RecordKind::Add, 5, 2),
            record(RecordKind::Miss, 5, 2),
            record(RecordKind::Hit, 1, 1),
            record(RecordKind::Hit, 6, 2),
            record(RecordKind::Hit, 21, 1),
            record(RecordKind::Evict, 30, 1),
            record(RecordKind::Evict, 5, 1),
            record(RecordKind::Miss, 30, 1),
        ];
        // Page 30 was the first to go; nothing is known of page 20; the others are older the later
        // they are touched.
        assert_eq!(pages(&records), [(30, 0), (20, 0), (21, 1), (7, 1), (1, 2), (2, 1)]);
    }

    #[test]
    fn regression_libraries_that_nobody_touches_do_not_make_pages_those_of_another_group() {
        let series = Series {
            names: vec!["usage".to_owned(), "file".to_owned()],
            snapshots: vec![Snapshot { time_ns: 0, values: vec![4096 * 60, 4096 * 50] }],
        };
        let recording =
            Recording { group: Some("/g".to_owned()), attached: Some(true), series, ..Recording::default() };
        let library = Record { object: 1, ..record(RecordKind::Resident, 0, 200) };
        // A file beside it that another program uses is evicted meanwhile.
        let beside = Record { object: 2, ..record(RecordKind::Evict, 0, 300) };
        let own =
            [record(RecordKind::Resident, 0, 40), record(RecordKind::Hit, 0, 30), record(RecordKind::Evict, 30, 5)];
        let records = [&[library, beside][..], &own].concat();
        let start = Start::of(&recording, &records);
        assert!(start.is_own && start.is_warm);
        // 50 pages: 30 are touched, 5 are evicted, and nothing else is known of 15.
        assert_eq!((start.pages.len(), start.stand_ins), (35, 15));
        // Pages that are used, and are more than twice what the group had, are another's.
        let used = [record(RecordKind::Hit, 0, 150)];
        assert!(!Start::of(&recording, &used).is_own);
    }
}
