//! Reads of one call: the kernel takes a call's pages in batches, and a recording has a row of
//! each.
//!
//! A batch ends where the recorded kernel lacked the next page. In less memory it lacks the first
//! page as well, and then both are read together: the call waits once. So a replay has to know how
//! far a call goes on, and rows do not say. Rows of a thread that follow one another page by page
//! are taken for one call if together they are no longer than rows of the file that stand alone:
//! these are whole calls. A program that reads a file through in small calls has no rows that stand
//! alone, or short ones.

use refault_trace::{Record, RecordKind, Via};
use std::collections::HashMap;

/// Share of rows that stand alone, one in this many, that are ignored as too long.
const RARE: usize = 100;

/// The place of a row in its call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallPart {
    /// The call began with a row before.
    pub(super) goes_on: bool,
    /// Pages of the call that come in later rows.
    pub(super) rest: u32,
}

/// Rows of a thread that follow one another in a file: their places.
#[derive(Debug, Default)]
struct Chain {
    rows: Vec<usize>,
    end: (u32, u64),
}

/// The place of each row in its call.
pub(super) fn parts(records: &[Record]) -> Vec<CallPart> {
    let mut parts = vec![CallPart::default(); records.len()];
    let chains = chains(records);
    let longest = longest_calls(records, &chains);
    for rows in chains.iter().filter(|rows| rows.len() > 1) {
        let pages: u64 = rows.iter().map(|&at| u64::from(records[at].pages)).sum();
        if pages > longest.get(&records[rows[0]].object).copied().unwrap_or(0) {
            continue;
        }
        let mut rest = pages as u32;
        for (n, &at) in rows.iter().enumerate() {
            rest -= records[at].pages;
            parts[at] = CallPart { goes_on: n > 0, rest };
        }
    }
    parts
}

fn chains(records: &[Record]) -> Vec<Vec<usize>> {
    let mut open: HashMap<u32, Chain> = HashMap::new();
    let mut all = Vec::new();
    for (at, record) in records.iter().enumerate().filter(|(_, record)| is_read(record)) {
        let chain = open.entry(record.task).or_default();
        if chain.end != (record.object, record.page) || chain.rows.is_empty() {
            all.push(std::mem::take(&mut chain.rows));
        }
        chain.rows.push(at);
        chain.end = (record.object, record.page + u64::from(record.pages));
    }
    all.extend(open.into_values().map(|chain| chain.rows));
    all
}

/// Longest row that stands alone, in pages, by object; the longest 1 in [`RARE`] are ignored.
fn longest_calls(records: &[Record], chains: &[Vec<usize>]) -> HashMap<u32, u64> {
    let mut alone: HashMap<u32, Vec<u64>> = HashMap::new();
    for rows in chains.iter().filter(|rows| rows.len() == 1) {
        let record = &records[rows[0]];
        alone.entry(record.object).or_default().push(u64::from(record.pages));
    }
    let longest = alone.into_iter().map(|(object, mut pages)| {
        pages.sort_unstable();
        (object, pages[pages.len() - 1 - pages.len() / RARE])
    });
    longest.collect()
}

fn is_read(record: &Record) -> bool {
    record.kind.is_touch() && record.kind != RecordKind::Sampled && record.op.via != Some(Via::Map) && !record.op.write
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::Op;

    fn read(task: u32, page: u64, pages: u32) -> Record {
        let op = Op { write: false, via: Some(Via::Fd) };
        Record { task, pages, kind: RecordKind::Hit, ..Record::touch(page, op) }
    }

    fn rests(records: &[Record]) -> Vec<(bool, u32)> {
        parts(records).iter().map(|part| (part.goes_on, part.rest)).collect()
    }

    #[test]
    fn regression_pages_of_one_call_are_one_wait() {
        // Blocks of two pages: where only the first was in memory, another thread came between.
        let records = [read(1, 0, 2), read(1, 10, 1), read(2, 4, 2), read(1, 11, 1), read(1, 6, 2)];
        assert_eq!(rests(&records), [(false, 0), (false, 1), (false, 0), (true, 0), (false, 0)]);
    }

    #[test]
    fn a_file_that_is_read_page_by_page_is_many_calls() {
        let mut records: Vec<_> = (0..10).map(|page| read(1, page, 1)).collect();
        records.push(read(1, 50, 1));
        assert!(rests(&records).iter().all(|&part| part == (false, 0)));
        assert_eq!(rests(&[]), []);
    }
}
