//! The record of a run: which pages were touched when, as far as it was seen.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::time::Duration;

use crate::threads::nanoseconds;
use crate::uffd::PAGE;

/// A touch of a page, as it was seen: by a fault, because the page was found in place, or because
/// it was found written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessTouch {
    /// Nanoseconds since the start.
    pub time_ns: u64,
    /// The process: an index in the order of their starts.
    pub process: u32,
    /// The address in pages of 4 KiB.
    pub page: u64,
    /// A write; a read otherwise.
    pub write: bool,
}

const BYTES: usize = 24;
/// Touches that are kept at most, to be put in order.
const RECENT: usize = 1 << 16;
/// Least time between two searches for written pages, also as a multiple of what a search takes.
const LEAST_PAUSE: Duration = Duration::from_millis(2);
const SHARE: u32 = 20;

/// Writes touches to a file, in a form that takes next to no time.
#[derive(Debug)]
pub(super) struct Recorder {
    file: BufWriter<File>,
    /// Time now, in nanoseconds.
    now_ns: u64,
    /// The processes that there are, by their numbers, and how many there were.
    processes: HashMap<usize, u32>,
    known: u32,
    /// Touches since written pages were looked for, and when that was.
    recent: Vec<ProcessTouch>,
    since_ns: u64,
    /// Time of the next search for written pages, in nanoseconds.
    next_look_ns: u64,
    /// Faults since reclaim began, and the sum of the pages in place at each of them.
    faults: u64,
    in_place: u64,
    error: Option<io::Error>,
}

impl Recorder {
    pub(super) fn new(file: File) -> Recorder {
        let file = BufWriter::with_capacity(256 << 10, file);
        let (processes, recent) = (HashMap::new(), Vec::new());
        Recorder {
            file,
            now_ns: 0,
            processes,
            known: 0,
            recent,
            since_ns: 0,
            next_look_ns: 0,
            faults: 0,
            in_place: 0,
            error: None,
        }
    }

    /// The number of a process in the record.
    fn process(&mut self, space: usize) -> u32 {
        let known = &mut self.known;
        *self.processes.entry(space).or_insert_with(|| {
            *known += 1;
            *known - 1
        })
    }

    fn note(&mut self, time_ns: u64, space: usize, address: usize, write: bool) {
        let process = self.process(space);
        self.recent.push(ProcessTouch { time_ns, process, page: (address / PAGE) as u64, write });
    }

    pub(super) fn touch(&mut self, at_ns: u64, space: usize, address: usize, write: bool) {
        if self.recent.len() >= RECENT {
            self.put_in_order(at_ns);
        }
        // A touch that was read before a look and is served after it belongs behind it.
        self.note(at_ns.max(self.since_ns), space, address, write);
    }

    /// A fault with `in_place` pages in place. Before reclaim begins nothing limits these.
    pub(super) fn fault_beside(&mut self, in_place: u64) {
        self.faults += 1;
        self.in_place += in_place;
    }

    /// Whether it is time to look for written pages, also where the engine walks no page tables:
    /// the closer the looks, the less is guessed.
    pub(super) fn is_look_due(&mut self, now_ns: u64) -> bool {
        self.now_ns = now_ns;
        now_ns >= self.next_look_ns
    }

    /// Pages (processes and addresses) that were found written: each was at some time since they
    /// were looked for last, and if it was touched in another way meanwhile, after that. Nobody
    /// knows when, so they are spread over that time, in no order of their addresses. `took`: how
    /// long it took to find them.
    pub(super) fn found_written(&mut self, took: Duration, pages: &[(usize, usize)]) {
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;
        // The look itself is part of the time: pages are protected one after the other.
        let (since_ns, now_ns) = (self.since_ns, self.now_ns);
        let touched: HashMap<(u32, u64), u64> = self.recent.iter().map(|t| ((t.process, t.page), t.time_ns)).collect();
        for (i, &(space, address)) in pages.iter().enumerate() {
            let part = ((i + 1) as f64 * GOLDEN_RATIO).fract();
            let at = (self.process(space), (address / PAGE) as u64);
            let from_ns = touched.get(&at).map_or(since_ns, |&t| t.max(since_ns));
            let time_ns = from_ns + (now_ns.saturating_sub(from_ns) as f64 * part) as u64;
            self.note(time_ns, space, address, true);
        }
        self.put_in_order(now_ns);
        self.next_look_ns = now_ns + nanoseconds(took + LEAST_PAUSE.max(took * SHARE));
    }

    /// Writes what was seen until now.
    fn put_in_order(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
        self.recent.sort_by_key(|t| t.time_ns);
        for t in self.recent.drain(..) {
            let mut bytes = [0; BYTES];
            bytes[..8].copy_from_slice(&t.time_ns.to_ne_bytes());
            bytes[8..16].copy_from_slice(&t.page.to_ne_bytes());
            bytes[16..20].copy_from_slice(&t.process.to_ne_bytes());
            bytes[20] = u8::from(t.write);
            if let Err(e) = self.file.write_all(&bytes) {
                self.error.get_or_insert(e);
            }
        }
    }

    /// The process is gone: its number may be another's.
    pub(super) fn end(&mut self, space: usize) {
        self.processes.remove(&space);
    }

    /// Ends the recording and returns it.
    pub(super) fn finish(mut self) -> io::Result<TouchRecording> {
        self.put_in_order(u64::MAX);
        self.file.flush()?;
        if let Some(e) = self.error {
            return Err(e);
        }
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        let in_place_pages = self.in_place.checked_div(self.faults);
        Ok(TouchRecording { file, processes: self.known, in_place_pages })
    }
}

/// Recording of a run.
#[derive(Debug)]
pub struct TouchRecording {
    file: File,
    /// How many processes there were.
    pub processes: u32,
    /// Average number of pages in place at faults; `None`: no page ever left memory. A replay in as
    /// much memory is one under the same limit.
    pub in_place_pages: Option<u64>,
}

impl TouchRecording {
    /// All touches, in the order in which they were seen.
    pub fn touches(self) -> impl Iterator<Item = io::Result<ProcessTouch>> {
        let mut file = io::BufReader::with_capacity(256 << 10, self.file);
        std::iter::from_fn(move || {
            let mut bytes = [0; BYTES];
            match file.read_exact(&mut bytes) {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => None,
                Err(e) => Some(Err(e)),
                Ok(()) => {
                    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
                    let process = u32::from_ne_bytes(bytes[16..20].try_into().expect("4 bytes"));
                    Some(Ok(ProcessTouch { time_ns: word(0), process, page: word(8), write: bytes[20] != 0 }))
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
        r.touch(0, 3, 5 * PAGE, true);
        r.touch(0, 9, 6 * PAGE, false);
        r.end(3);
        r.touch(0, 3, usize::MAX / PAGE * PAGE, false);
        let ms = |ms: u64| ms * 1_000_000;
        let look = |r: &mut Recorder, at_ms: u64, pages: &[(usize, usize)]| {
            assert!(r.is_look_due(ms(at_ms)));
            r.found_written(Duration::from_micros(50), pages);
            assert!(!r.is_look_due(ms(at_ms + 2)) && r.is_look_due(ms(at_ms + 3)));
        };
        r.touch(ms(30), 3, 9 * PAGE, false);
        look(&mut r, 40, &[(3, 7 * PAGE), (3, 8 * PAGE)]);
        look(&mut r, 50, &[(3, 7 * PAGE)]);
        // The touch comes after its own fault, for any share of the time before it; a page read
        // before a look is not before it in the record.
        r.touch(ms(58), 3, 7 * PAGE, false);
        look(&mut r, 60, &[(3, 7 * PAGE)]);
        r.touch(ms(59), 3, 8 * PAGE, true);
        let recording = r.finish().unwrap();
        assert_eq!(recording.processes, 3);
        let all: Vec<ProcessTouch> = recording.touches().map(Result::unwrap).collect();
        let found: Vec<_> = all.iter().map(|t| (t.process, t.page, t.write)).collect();
        let last = (usize::MAX / PAGE) as u64;
        // Written at 24.7, 9.4 and 46.2 ms.
        let written =
            [(2, 8, true), (2, 7, true), (2, 9, false), (2, 7, true), (2, 7, false), (2, 7, true), (2, 8, true)];
        assert_eq!(found, [[(0, 5, true), (1, 6, false), (2, last, false)].as_slice(), &written].concat());
        assert!(all.is_sorted_by_key(|t| t.time_ns), "{all:?}");
    }
}
