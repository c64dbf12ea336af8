//! The record of a run: which pages were touched when, as far as it was seen.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::time::Instant;

use crate::uffd::PAGE;

/// A touch of a page, as it was seen: by a fault, or because the page was found in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touched {
    /// Since the start.
    pub time_ns: u64,
    /// The process: an index in the order of their starts.
    pub process: u32,
    /// The address in pages of 4 KiB.
    pub page: u64,
    /// A write; a read otherwise.
    pub write: bool,
}

const BYTES: usize = 24;

/// Writes touches to a file, in a form that takes next to no time.
#[derive(Debug)]
pub(super) struct Recorder {
    file: BufWriter<File>,
    started: Instant,
    /// The processes that there are, by their numbers, and how many there were.
    processes: HashMap<usize, u32>,
    known: u32,
    error: Option<io::Error>,
}

impl Recorder {
    pub(super) fn new(file: File) -> Recorder {
        let file = BufWriter::with_capacity(256 << 10, file);
        Recorder { file, started: Instant::now(), processes: HashMap::new(), known: 0, error: None }
    }

    pub(super) fn touch(&mut self, at: Instant, space: usize, address: usize, write: bool) {
        let known = &mut self.known;
        let process = *self.processes.entry(space).or_insert_with(|| {
            *known += 1;
            *known - 1
        });
        let mut bytes = [0; BYTES];
        let time_ns = at.saturating_duration_since(self.started).as_nanos() as u64;
        bytes[..8].copy_from_slice(&time_ns.to_ne_bytes());
        bytes[8..16].copy_from_slice(&((address / PAGE) as u64).to_ne_bytes());
        bytes[16..20].copy_from_slice(&process.to_ne_bytes());
        bytes[20] = u8::from(write);
        if let Err(e) = self.file.write_all(&bytes) {
            self.error.get_or_insert(e);
        }
    }

    /// Pages (processes and addresses) of which each was written at some time between two: it is recorded as if they had been touched one after the
    /// other, in no order of their addresses.
    pub(super) fn touched_between(&mut self, since: Instant, until: Instant, pages: &[(usize, usize)]) {
        let span = until.saturating_duration_since(since);
        for (i, &(space, address)) in pages.iter().enumerate() {
            _ = (i, span);
            self.touch(until, space, address, true);
        }
    }

    /// The process is gone: its number may be another's.
    pub(super) fn end(&mut self, space: usize) {
        self.processes.remove(&space);
    }

    /// What was recorded.
    pub(super) fn finish(mut self) -> io::Result<Recording> {
        self.file.flush()?;
        if let Some(e) = self.error {
            return Err(e);
        }
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(Recording { file, processes: self.known })
    }
}

/// What was recorded of a run.
#[derive(Debug)]
pub struct Recording {
    file: File,
    /// How many processes there were.
    pub processes: u32,
}

impl Recording {
    /// All touches, in the order in which they were seen.
    pub fn touches(self) -> impl Iterator<Item = io::Result<Touched>> {
        let mut file = io::BufReader::with_capacity(256 << 10, self.file);
        std::iter::from_fn(move || {
            let mut bytes = [0; BYTES];
            match file.read_exact(&mut bytes) {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => None,
                Err(e) => Some(Err(e)),
                Ok(()) => {
                    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
                    let process = u32::from_ne_bytes(bytes[16..20].try_into().expect("4 bytes"));
                    Some(Ok(Touched { time_ns: word(0), process, page: word(8), write: bytes[20] != 0 }))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_comes_back() {
        let mut r = Recorder::new(crate::store::nameless_file(&std::env::temp_dir()).unwrap());
        let now = Instant::now();
        r.touch(now, 3, 5 * PAGE, true);
        r.touch(now, 9, 6 * PAGE, false);
        r.end(3);
        r.touch(now, 3, usize::MAX / PAGE * PAGE, false);
        let recording = r.finish().unwrap();
        assert_eq!(recording.processes, 3);
        let all: Vec<Touched> = recording.touches().map(Result::unwrap).collect();
        let found: Vec<_> = all.iter().map(|t| (t.process, t.page, t.write)).collect();
        assert_eq!(found, [(0, 5, true), (1, 6, false), (2, (usize::MAX / PAGE) as u64, false)]);
    }
}
