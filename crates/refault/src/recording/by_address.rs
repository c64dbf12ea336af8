//! Pages that left memory by their addresses: what DAMON reclaims, in recordings that hold it for
//! drops.
//!
//! Truncation, deletion and `drop_caches` go through a file from its beginning to its end. A
//! walk through memory meets pages of files in any order.

use refault_trace::{AdviceKind, Record, RecordKind};
use std::collections::HashMap;

/// Longest gap between two drops of one burst, in nanoseconds.
const BURST_NS: u64 = 1_000_000;

/// Least drops of a burst whose order of pages is taken as evidence.
const FEW: usize = 8;

/// Consecutive drops by one task.
#[derive(Default)]
struct Burst {
    records: Vec<usize>,
    time_ns: u64,
    /// Page that was dropped last, by object.
    last: HashMap<u32, u64>,
    /// Drops of a page in front of the page of the same file that was dropped before.
    backwards: usize,
}

impl Burst {
    fn add(&mut self, at: usize, record: &Record) {
        self.time_ns = record.time_ns;
        self.records.push(at);
        let last = self.last.insert(record.object, record.page);
        self.backwards += usize::from(last.is_some_and(|last| record.page < last));
    }

    fn is_by_address(&self) -> bool {
        self.records.len() >= FEW && self.backwards * 4 >= self.records.len()
    }
}

/// Turns bursts of drops by memory address into evictions, and adds the advice that causes them in
/// a replay.
pub(super) fn page_out(records: &mut Vec<Record>) {
    let (mut bursts, mut found) = (HashMap::<u32, Burst>::new(), Vec::new());
    let mut end = |burst: Burst| {
        if burst.is_by_address() {
            found.extend(burst.records);
        }
    };
    for (at, record) in records.iter().enumerate() {
        let goes_on = match record.kind {
            RecordKind::Drop => |burst: &Burst, now: &Record| now.time_ns.saturating_sub(burst.time_ns) <= BURST_NS,
            RecordKind::Add | RecordKind::Touch | RecordKind::Hit | RecordKind::Miss => {
                |burst: &Burst, now: &Record| !burst.last.contains_key(&now.object)
            }
            _ => continue,
        };
        if bursts.get(&record.task).is_some_and(|burst| !goes_on(burst, record)) {
            bursts.remove(&record.task).into_iter().for_each(&mut end);
        }
        if record.kind == RecordKind::Drop {
            bursts.entry(record.task).or_default().add(at, record);
        }
    }
    bursts.into_values().for_each(&mut end);
    if found.is_empty() {
        return;
    }
    found.sort_unstable();
    let mut found = found.into_iter().peekable();
    let all = std::mem::take(records);
    records.reserve(all.len());
    for (at, record) in all.into_iter().enumerate() {
        if found.next_if_eq(&at).is_some() {
            records.push(Record { kind: RecordKind::Advise(AdviceKind::PageOut), ..record });
            records.push(Record { kind: RecordKind::Evict, ..record });
        } else {
            records.push(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::Op;

    fn drops(pages: impl IntoIterator<Item = u64>) -> Vec<Record> {
        let record = |(i, page): (usize, u64)| Record {
            kind: RecordKind::Drop,
            object: i as u32 % 2,
            time_ns: i as u64 * 1000,
            ..Record::touch(page, Op::READ)
        };
        pages.into_iter().enumerate().map(record).collect()
    }

    fn acts(mut records: Vec<Record>) -> Vec<RecordKind> {
        page_out(&mut records);
        records.iter().map(|record| record.kind).collect()
    }

    #[test]
    fn regression_what_leaves_in_no_order_is_paged_out() {
        let scattered = drops([90, 7, 13, 55, 42, 3, 77, 21, 5, 60]);
        let want = [RecordKind::Advise(AdviceKind::PageOut), RecordKind::Evict].repeat(10);
        assert_eq!(acts(scattered), want);
    }

    #[test]
    fn a_file_that_is_truncated_is_dropped() {
        assert_eq!(acts(drops(0..40)), [RecordKind::Drop; 40]);
        // Again and again, with what is written between.
        let mut records = Vec::new();
        for i in 0..20 {
            records.extend(drops([3, 4]).into_iter().map(|record| Record { object: 0, ..record }));
            records.push(Record { kind: RecordKind::Add, time_ns: i, ..Record::touch(3, Op::READ) });
        }
        assert!(!acts(records).contains(&RecordKind::Evict));
        assert_eq!(acts(drops([5, 5, 3, 3])), [RecordKind::Drop; 4], "too few to tell");
    }
}
