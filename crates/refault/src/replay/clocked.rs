//! A source that shows how far it has been read, and notes how time passes without keeping the time
//! of every access. Long ranges come in parts, so that it shows on the way through them, too.

use crate::Watch;
use crate::watch::Progress;
use crate::words::{counted, grouped, printable};
use refault_trace::{Header, ReadAhead, Record, RecordKind, RecordSource, TraceError};
use std::collections::VecDeque;

/// Notes of the time at most; of a longer trace every second is left out, and so on.
const NOTES: usize = 1 << 16;

/// Accesses between two notes at first; it grows when there are too many notes.
const FIRST_EVERY: u64 = 64;

/// Pages of a chunk above which it is handed on in parts.
const PART: u64 = 1 << 20;

/// Records that are read ahead, so that it is known how many pages they stand for.
const AHEAD: u64 = 1 << 16;

/// Accesses of a trace, and accesses per record, from which on a remark says both.
const MANY: u64 = 1 << 26;
const MANY_A_RECORD: u64 = 64;

/// Reads another source.
pub struct Clocked<'a> {
    source: ReadAhead<Box<dyn RecordSource + 'a>>,
    max_accesses: Option<u64>,
    /// Records left of a chunk, handed on later.
    rest: VecDeque<Record>,
    /// None before the first chunk.
    progress: Option<Progress>,
    /// Accesses in all, if every record was read ahead.
    all: Option<u64>,
    /// Remark on how many pages long ranges stand for. It is made once there was memory for the
    /// first chunk, so that a refusal is one line.
    remark: Option<String>,
    accesses: u64,
    /// The number of an access, and when it happened.
    notes: Vec<(u64, u64)>,
    last_ns: u64,
    /// Accesses between two notes, and the number of the access that the next note is of.
    every: u64,
    next_note: u64,
    has_groups: bool,
    watch: Watch,
}

impl<'a> Clocked<'a> {
    /// Reads a source, at most `max_accesses` accesses.
    pub fn new(source: Box<dyn RecordSource + 'a>, max_accesses: Option<u64>, watch: &Watch) -> Clocked<'a> {
        Clocked {
            source: ReadAhead::new(source),
            max_accesses,
            rest: VecDeque::new(),
            progress: None,
            all: None,
            remark: None,
            accesses: 0,
            notes: Vec::new(),
            last_ns: 0,
            every: FIRST_EVERY,
            next_note: 0,
            has_groups: false,
            watch: watch.clone(),
        }
    }

    /// Reads the front, and begins to show how much there is.
    fn begin(&mut self) -> Progress {
        let most = self.max_accesses.unwrap_or(u64::MAX);
        let (mut records, mut accesses) = (0, 0);
        let is_whole = self.source.look(|chunk| {
            records += chunk.len() as u64;
            accesses += touched(chunk);
            records < AHEAD && accesses < most
        });
        let hint = self.source.header().records_hint;
        let total = match is_whole {
            true => Some(accesses),
            false => hint.map(|hint| (u128::from(hint) * u128::from(accesses) / u128::from(records.max(1))) as u64),
        };
        let total = total.map(|total| total.min(most));
        self.all = total.filter(|_| is_whole);
        if let Some(total) = total.filter(|&all| is_whole && all >= MANY && all / records.max(1) >= MANY_A_RECORD) {
            let (name, records) = (printable(self.source.name()), counted(records, "record", "records"));
            self.remark = Some(format!("{name}: {records} stand for {} accesses to pages", grouped(total)));
        }
        self.watch.accesses(format!("reading {}", self.source.name()), total)
    }

    /// A part of the rest of a chunk.
    fn part(&mut self, out: &mut Vec<Record>) {
        let mut room = PART;
        out.clear();
        while let Some(mut record) = self.rest.pop_front().filter(|_| room > 0) {
            let pages = u64::from(record.pages);
            if record.kind == RecordKind::Touch && pages > room {
                out.push(Record { pages: room as u32, ..record });
                (record.page, record.pages) = (record.page + room, record.pages - room as u32);
                self.rest.push_front(record);
                return;
            }
            room = room.saturating_sub(pages);
            out.push(record);
        }
    }

    /// Notes the time of the next access. Clocks that go back do not.
    fn note(&mut self) {
        self.notes.push((self.accesses, self.last_ns));
        self.next_note = self.accesses + self.every;
        if self.notes.len() == NOTES {
            let mut n = 0;
            self.notes.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.every *= 2;
        }
    }

    /// Whether accesses say which memory cgroup they come from.
    pub fn has_groups(&self) -> bool {
        self.has_groups || !self.source.header().memcgs.is_empty()
    }

    /// Seconds since the first access at each of some places, which ascend; none: the trace has no
    /// times.
    pub fn seconds(&self, places: &[u64]) -> Option<Vec<f64>> {
        let &(_, first) = self.notes.first()?;
        if self.last_ns <= first {
            return None;
        }
        let mut notes = self.notes.clone();
        notes.push((self.accesses, self.last_ns));
        let at = |place: u64| {
            let after = notes.partition_point(|&(n, _)| n < place).min(notes.len() - 1);
            let (n1, t1) = notes[after];
            if after == 0 || n1 <= place {
                return (t1 - first) as f64 / 1e9;
            }
            let (n0, t0) = notes[after - 1];
            let share = (place - n0) as f64 / (n1 - n0).max(1) as f64;
            (t0 as f64 + share * (t1.saturating_sub(t0)) as f64 - first as f64) / 1e9
        };
        Some(places.iter().map(|&place| at(place)).collect())
    }
}

impl RecordSource for Clocked<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn header(&self) -> &Header {
        self.source.header()
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        self.watch.check().map_err(|e| TraceError::usage(self.source.name(), e))?;
        match self.progress {
            None => self.progress = Some(self.begin()),
            Some(_) => self.remark.take().iter().for_each(|text| self.watch.remark(text)),
        }
        let mut more = true;
        if self.rest.is_empty() {
            more = self.source.next_chunk(out)?;
            if touched(out) > PART {
                self.rest.extend(out.drain(..));
            }
        }
        if !self.rest.is_empty() {
            self.part(out);
        }
        if let Some(progress) = &self.progress {
            progress.add(touched(out));
        }
        self.has_groups = self.has_groups || out.iter().any(|record| record.memcg > 0);
        // A recording has more than accesses: pages that come and go, advice.
        for record in out.iter().filter(|record| record.kind.is_touch()) {
            self.last_ns = self.last_ns.max(record.time_ns);
            if self.accesses >= self.next_note {
                self.note();
            }
            self.accesses += u64::from(record.pages);
        }
        Ok(more)
    }

    fn known_accesses(&self) -> Option<u64> {
        self.all
    }
}

/// Accesses of records.
fn touched(records: &[Record]) -> u64 {
    records.iter().filter(|record| record.kind.is_touch()).map(|record| u64::from(record.pages)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{MachineMeter, Meter, Monitor};
    use refault_trace::{Format, LoadOptions, ObjectKind, Op, Trace};
    use std::sync::{Arc, Mutex};

    /// Ranges of a file, a chunk each.
    struct Ranges {
        header: Header,
        left: VecDeque<Record>,
    }

    impl Ranges {
        fn new(ranges: &[(u64, u32)]) -> Ranges {
            let of = |&(page, pages): &(u64, u32)| Record { pages, ..Record::touch(page, Op::READ) };
            let header = Header::with_object(Format::Arc, "f", ObjectKind::File);
            Ranges { header, left: ranges.iter().map(of).collect() }
        }
    }

    impl RecordSource for Ranges {
        fn name(&self) -> &str {
            "ranges"
        }

        fn header(&self) -> &Header {
            &self.header
        }

        fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
            out.clear();
            out.extend(self.left.pop_front());
            Ok(!out.is_empty())
        }
    }

    /// Totals, steps and remarks that somebody is told.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<String>>>);

    impl Told {
        fn add(&self, text: String) {
            self.0.lock().expect("a list").push(text);
        }
    }

    impl Meter for Told {
        fn add(&self, accesses: u64) {
            self.add(format!("{accesses}"));
        }
    }

    impl Monitor for Told {
        fn accesses(&self, name: String, total: Option<u64>) -> Box<dyn Meter> {
            self.add(format!("{name}: {total:?}"));
            Box::new(self.clone())
        }

        fn machines(&self, _: &str, _: usize) -> Box<dyn MachineMeter> {
            unreachable!("there are none")
        }

        fn remark(&self, text: &str) {
            self.add(text.to_owned());
        }
    }

    /// Long ranges are said before they are looked at page by page, and show on the way.
    #[test]
    fn regression_long_ranges_are_said_and_come_in_parts() {
        let told = Told::default();
        let mut source = Clocked::new(
            Box::new(Ranges::new(&[(0, 1 << 25), (1 << 30, 3 << 24)])),
            None,
            &Watch::new(Arc::new(told.clone())),
        );
        let (mut chunk, mut next) = (Vec::new(), 0);
        assert!(source.next_chunk(&mut chunk).expect("reads"));
        let front = told.0.lock().expect("a list").clone();
        assert_eq!(front, ["reading ranges: Some(83886080)", "1048576"], "no remark before there is memory");
        assert_eq!(source.known_accesses(), Some(83_886_080));
        loop {
            for record in &chunk {
                assert!(record.page == next || record.page == 1 << 30, "{record:?}");
                next = record.page + u64::from(record.pages);
            }
            if !source.next_chunk(&mut chunk).expect("reads") {
                break;
            }
            assert!(touched(&chunk) <= PART);
        }
        assert_eq!(next, (1 << 30) + (3 << 24));
        let told = told.0.lock().expect("a list");
        assert_eq!(told[2], "ranges: 2 records stand for 83,886,080 accesses to pages");
        assert_eq!(told.len(), 2 + 80 + 1);
    }

    /// Parts of ranges are the same accesses.
    #[test]
    fn parts_of_ranges_are_the_same_trace() {
        let ranges = [(7, 3), (0, 1_060_000), (5, 1), (1_060_000, 9)];
        let load = |mut source: Box<dyn RecordSource>, max| {
            Trace::load(&mut source, &LoadOptions { max_accesses: max, ..LoadOptions::default() }).expect("loads")
        };
        for max in [None, Some(1_050_000)] {
            let clocked = Clocked::new(Box::new(Ranges::new(&ranges)), max, &Watch::default());
            assert_eq!(load(Box::new(clocked), max), load(Box::new(Ranges::new(&ranges)), max));
        }
    }
}
