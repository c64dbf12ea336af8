//! A source that shows how far it has been read, and notes how time passes without keeping the time
//! of every access.

use crate::Watch;
use crate::watch::Progress;
use refault_trace::{Header, Record, RecordSource, TraceError};

/// Notes of the time at most; of a longer trace every second is left out, and so on.
const NOTES: usize = 1 << 16;

/// Accesses from one note to the next, until there are too many.
const FIRST_EVERY: u64 = 64;

/// Reads another source.
pub struct Clocked {
    source: Box<dyn RecordSource>,
    progress: Progress,
    accesses: u64,
    /// The number of an access, and when it happened.
    notes: Vec<(u64, u64)>,
    last_ns: u64,
    /// Accesses from one note to the next, and the access of the next one.
    every: u64,
    next_note: u64,
    has_groups: bool,
    watch: Watch,
}

impl Clocked {
    /// Reads a source, up to so many accesses.
    pub fn new(source: Box<dyn RecordSource>, max_accesses: Option<u64>, watch: &Watch) -> Clocked {
        let total = source.header().records_hint.map(|hint| max_accesses.map_or(hint, |max| max.min(hint)));
        let progress = watch.accesses(format!("reading {}", source.name()), total);
        Clocked {
            source,
            progress,
            accesses: 0,
            notes: Vec::new(),
            last_ns: 0,
            every: FIRST_EVERY,
            next_note: 0,
            has_groups: false,
            watch: watch.clone(),
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

impl RecordSource for Clocked {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn header(&self) -> &Header {
        self.source.header()
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        self.watch.check().map_err(|e| TraceError::usage(self.source.name(), e))?;
        let more = self.source.next_chunk(out)?;
        self.progress.add(out.len() as u64);
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
}
