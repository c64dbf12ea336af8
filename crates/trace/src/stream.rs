//! A trace that is larger than memory: one reading numbers its pages, a second one brings its
//! accesses, a piece at a time.
//!
//! Memory is that of the page numbers (about 20 bytes a distinct page) and of the pieces that are
//! in use, whatever the number of accesses.

use crate::dense::{LoadOptions, Loader, PackedAccess, Trace};
use crate::error::{ErrorKind, Place, TraceError};
use crate::open::empty;
use crate::record::{CHUNK, Record, RecordSource};

/// The pages of a trace, numbered as [`Trace::load`] numbers them.
pub struct PageNumbers {
    loader: Loader,
    trace: Trace,
    accesses: u64,
    keep_time: bool,
    has_times: bool,
}

impl PageNumbers {
    /// Reads a source to its end and keeps no access. An empty trace is an error. Tasks and memory
    /// cgroups of accesses are not kept either.
    pub fn read(source: &mut dyn RecordSource, opts: &LoadOptions) -> Result<PageNumbers, TraceError> {
        let opts = LoadOptions { keep_task: false, keep_memcg: false, ..opts.clone() };
        let mut loader = Loader::new(source, &opts, None);
        loader.trace.accesses = Vec::new();
        let (mut parts, mut part, mut has_times) = (Parts::default(), Vec::with_capacity(CHUNK), false);
        while !loader.trace.cut && parts.next(source, &mut part)? {
            loader.add_chunk(source, &part)?;
            loader.gone += loader.trace.accesses.len() as u64;
            loader.trace.accesses.clear();
            if let Some(times) = &mut loader.trace.time_ns {
                has_times = times.last().map_or(has_times, |&last| last > 0);
                times.clear();
            }
        }
        let accesses = loader.gone;
        if accesses == 0 {
            return Err(empty(source.name(), source.header().passed_over.as_deref()));
        }
        let renamed = loader.number(source);
        for (_, page) in &mut loader.trace.drops {
            *page = renamed[*page as usize];
        }
        let trace = loader.trace.clone();
        (loader.trace.objects, loader.trace.drops) = (Vec::new(), Vec::new());
        loader.begin_again(&renamed);
        Ok(PageNumbers { loader, trace, accesses, keep_time: opts.keep_time, has_times })
    }

    /// The accesses that pieces will have.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Whether times were kept, and the last one is not 0, which traces without times have.
    pub fn has_times(&self) -> bool {
        self.has_times
    }

    /// The trace without its accesses and their times, and the accesses themselves. `source` is the
    /// same one, opened again.
    pub fn pieces(self, source: Box<dyn RecordSource>) -> (Trace, Pieces) {
        let PageNumbers { loader, trace, accesses, keep_time, .. } = self;
        let trace = Trace { time_ns: None, ..trace };
        let (parts, part, rest) = (Parts::default(), Vec::with_capacity(CHUNK), Piece::default());
        (trace, Pieces { source, loader, accesses, seen: 0, ended: false, keep_time, parts, part, rest })
    }
}

/// The most pages that the records of a part touch: a few records of long ranges would be more
/// accesses than memory holds.
const MOST_PAGES: u32 = 1 << 20;

/// The chunks of a source in parts of no more than [`MOST_PAGES`].
#[derive(Default)]
struct Parts {
    chunk: Vec<Record>,
    /// Records of the chunk that were handed out.
    done: usize,
}

impl Parts {
    /// Replaces `part` by the next records; `false` when there are no more.
    fn next(&mut self, source: &mut dyn RecordSource, part: &mut Vec<Record>) -> Result<bool, TraceError> {
        part.clear();
        if self.done == self.chunk.len() {
            self.done = 0;
            if !source.next_chunk(&mut self.chunk)? {
                return Ok(false);
            }
        }
        let mut room = MOST_PAGES;
        for record in &mut self.chunk[self.done..] {
            // Only a touch becomes as many accesses as it has pages.
            if record.kind.is_touch() && record.pages > room {
                if room > 0 {
                    part.push(Record { pages: room, ..*record });
                    record.page += u64::from(room);
                    record.pages -= room;
                }
                break;
            }
            if record.kind.is_touch() {
                room -= record.pages;
            }
            part.push(*record);
            self.done += 1;
        }
        Ok(true)
    }
}

/// Some consecutive accesses of a trace.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// The accesses; none behind the end of the trace.
    pub accesses: Vec<PackedAccess>,
    /// The time of each in nanoseconds, if kept.
    pub time_ns: Option<Vec<u64>>,
}

/// The accesses of a trace from front to back.
pub struct Pieces {
    source: Box<dyn RecordSource>,
    loader: Loader,
    accesses: u64,
    /// Accesses read so far.
    seen: u64,
    ended: bool,
    keep_time: bool,
    parts: Parts,
    /// The records that are added, kept for their memory.
    part: Vec<Record>,
    /// Accesses that were read beyond the end of the last piece.
    rest: Piece,
}

impl Pieces {
    /// Replaces `piece` by the next `length` accesses; there are fewer only at the end of the
    /// trace.
    ///
    /// A file that is not what it was when its pages were numbered is an error.
    pub fn next(&mut self, piece: &mut Piece, length: usize) -> Result<(), TraceError> {
        // The old content of the piece is written over, so that nothing is allocated anew.
        piece.accesses.clear();
        piece.accesses.append(&mut self.rest.accesses);
        piece.time_ns = self.keep_time.then(|| {
            let mut times = piece.time_ns.take().unwrap_or_default();
            times.clear();
            times.append(self.rest.time_ns.get_or_insert_default());
            times
        });
        self.read(piece, length)?;
        if piece.accesses.len() > length {
            self.rest.accesses.extend(piece.accesses.drain(length..));
            if let Some(times) = &mut piece.time_ns {
                self.rest.time_ns.get_or_insert_default().extend(times.drain(length..));
            }
        }
        Ok(())
    }

    /// Reads chunks until the piece has that length, or more.
    fn read(&mut self, piece: &mut Piece, length: usize) -> Result<(), TraceError> {
        let (pages, loader) = (self.loader.distinct, &mut self.loader);
        std::mem::swap(&mut loader.trace.accesses, &mut piece.accesses);
        std::mem::swap(&mut loader.trace.time_ns, &mut piece.time_ns);
        let before = loader.trace.accesses.len();
        while loader.trace.accesses.len() < length && !self.ended {
            self.ended = !self.parts.next(&mut *self.source, &mut self.part)?;
            loader.add_chunk(&*self.source, &self.part)?;
            self.ended |= loader.trace.cut;
        }
        // Pages that drop here have been noted by the first reading.
        loader.trace.drops.clear();
        self.seen += (loader.trace.accesses.len() - before) as u64;
        std::mem::swap(&mut loader.trace.accesses, &mut piece.accesses);
        std::mem::swap(&mut loader.trace.time_ns, &mut piece.time_ns);
        if loader.distinct != pages || self.seen > self.accesses || (self.ended && self.seen < self.accesses) {
            let what = "is not what it was when its pages were numbered; replay a file that nobody writes to";
            return Err(TraceError::new(ErrorKind::Malformed, self.source.name(), Place::Whole, what));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Pattern, Stream, Workload};
    use crate::{Input, OpenOptions, open_input};

    fn text(text: String) -> Box<dyn RecordSource> {
        let input = Input::from_reader("t", Box::new(std::io::Cursor::new(text.into_bytes()))).expect("text");
        open_input(input, &OpenOptions::default()).expect("a trace")
    }

    fn zipf() -> Box<dyn RecordSource> {
        let stream = Stream::new("set", Pattern::Zipf { skew: 1.0, permute: true }, 5000);
        Box::new(Workload::single(stream, 50_000, 1).generator("zipf").expect("a workload"))
    }

    fn read_all(pieces: &mut Pieces, length: usize) -> Result<Vec<Piece>, TraceError> {
        let mut all = Vec::new();
        loop {
            let mut piece = Piece::default();
            pieces.next(&mut piece, length)?;
            if piece.accesses.is_empty() {
                return Ok(all);
            }
            all.push(piece);
        }
    }

    #[test]
    fn pieces_are_the_trace() {
        for max_accesses in [None, Some(1), Some(30_001)] {
            for keep_time in [false, true] {
                let opts = LoadOptions { max_accesses, keep_time, ..LoadOptions::default() };
                let mut whole = Trace::load(&mut zipf(), &opts).expect("a trace");
                let numbers = PageNumbers::read(&mut zipf(), &opts).expect("numbers");
                assert_eq!(numbers.accesses(), whole.accesses.len() as u64);
                let (trace, mut pieces) = numbers.pieces(zipf());
                let all = read_all(&mut pieces, 10_000).expect("pieces");
                assert!(all.iter().rev().skip(1).all(|piece| piece.accesses.len() == 10_000));
                let accesses: Vec<_> = all.iter().flat_map(|piece| piece.accesses.iter().copied()).collect();
                assert_eq!(accesses, std::mem::take(&mut whole.accesses));
                let times = keep_time.then(|| all.iter().flat_map(|p| p.time_ns.clone().unwrap_or_default()).collect());
                assert_eq!(times, whole.time_ns.take());
                assert_eq!(trace, whole);
            }
        }
    }

    /// Twenty lines of ARC were expanded to all of their accesses, stream or not.
    #[test]
    fn regression_long_ranges_are_read_in_parts() {
        let length = u64::from(3 * MOST_PAGES) / 2;
        let lines: String = (0..4).map(|i| format!("{} {length} 0 {i}\n", (i % 2) * length / 2)).collect();
        let arc = || {
            let input = Input::from_reader("t.lis", Box::new(std::io::Cursor::new(lines.clone().into_bytes())));
            open_input(input.expect("text"), &OpenOptions::default()).expect("a trace")
        };
        let opts = LoadOptions::default();
        let whole = Trace::load(&mut arc(), &opts).expect("a trace");
        assert_eq!(whole.accesses.len() as u64, 4 * length);
        let (_, mut pieces) = PageNumbers::read(&mut arc(), &opts).expect("numbers").pieces(arc());
        let (mut piece, mut all) = (Piece::default(), Vec::new());
        loop {
            pieces.next(&mut piece, 100_000).expect("a piece");
            assert!(pieces.rest.accesses.len() <= MOST_PAGES as usize);
            if piece.accesses.is_empty() {
                break;
            }
            all.extend_from_slice(&piece.accesses);
        }
        assert_eq!(all, whole.accesses);
    }

    #[test]
    fn a_file_that_changed_is_an_error() {
        let numbered = |opts: &LoadOptions| PageNumbers::read(&mut text("1\n2\n3\n1\n".into()), opts).expect("numbers");
        let opts = LoadOptions::default();
        for other in ["1\n2\n3\n4\n", "1\n2\n3\n", "1\n2\n3\n1\n1\n"] {
            let (_, mut pieces) = numbered(&opts).pieces(text(other.into()));
            let error = read_all(&mut pieces, 2).expect_err("another trace");
            assert!(error.to_string().contains("is not what it was"), "{error}");
        }
    }

    #[test]
    fn an_empty_trace_is_an_error() {
        let opts = LoadOptions { max_accesses: Some(0), ..LoadOptions::default() };
        let error = PageNumbers::read(&mut zipf(), &opts).map(|_| ()).expect_err("no access");
        assert_eq!(error.kind(), ErrorKind::Empty);
    }
}
