//! Output of `perf trace -F`: a page fault a line, with the file and the place in it.
//!
//! Definition: perf-trace(1), `--pf`, and its example
//! `117.5 ( 0.0 ms): name/123 majfault [ip] => /file@0x55000 (d.)`. Milliseconds are since the
//! start. Lines of system calls, which `-F all` mixes in, are passed over.

use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::names::{Clock, ObjectNames, TaskNames};
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record, Via};
use crate::seen::Seen;
use crate::text::{LineFormat, LinePosition};
use memchr::memmem;

/// Words of the two kinds of faults.
const FAULTS: [&[u8]; 2] = [b" majfault [", b" minfault ["];

pub(crate) struct PerfTrace {
    header: Header,
    objects: ObjectNames,
    tasks: TaskNames,
    clock: Clock,
}

/// Place of the word of a fault, and its length.
fn fault(line: &[u8]) -> Option<(usize, usize)> {
    FAULTS.iter().find_map(|word| Some((memmem::find(line, word)?, word.len())))
}

/// Whether a line is a fault.
pub(crate) fn looks_like(line: &[u8]) -> bool {
    parts(line).is_some()
}

/// The time in milliseconds, the task, and what was touched.
fn parts(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (at, length) = fault(line)?;
    let open = memchr::memchr(b'(', line).filter(|open| *open < at)?;
    let close = open + memmem::find(&line[open..at], b"):")?;
    let arrow = at + length + memmem::find(&line[at + length..], b"] => ")?;
    Some((line[..open].trim_ascii(), line[close + 2..at].trim_ascii(), line[arrow + 5..].trim_ascii()))
}

impl PerfTrace {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::new(Format::PerfTrace);
        header.page_size = opts.page_size;
        header.seen = Some(Seen::Faults);
        let (objects, tasks, clock) = (ObjectNames::default(), TaskNames::default(), Clock::default());
        Self { header, objects, tasks, clock }
    }

    fn record(&mut self, line: &[u8]) -> Result<Record, String> {
        let (time, task, touched) =
            parts(line).ok_or("is no line of a fault, such as a/1 majfault [ip] => /f@0x0 (d.)")?;
        let time = super::columns::time(time, 1_000_000)?;
        // The level and the kind of the map are the last word.
        let place = match memmem::rfind(touched, b" (") {
            Some(at) => touched[..at].trim_ascii_end(),
            None => touched,
        };
        // Memory of no name is an address alone.
        let (name, digits) = match memmem::rfind(place, b"@0x") {
            Some(at) => (&place[..at], &place[at + 3..]),
            None => (&b""[..], place.strip_prefix(b"0x").unwrap_or(b"")),
        };
        if digits.is_empty() {
            return Err(format!("{} has no place, as /f@0x0 has", quote(place)));
        }
        let address = std::str::from_utf8(digits).ok().and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let address = address.ok_or_else(|| format!("{} is no hexadecimal number", quote(digits)))?;
        let (page, pages) = pages::of_bytes(address, 1, self.header.page_size)?;
        let is_file = name.starts_with(b"/") && !name.starts_with(b"//");
        let kind = if is_file { ObjectKind::File } else { ObjectKind::Anon };
        // Memory that is no file is of one process.
        let process = task.rsplit(|b| *b == b'/').next().unwrap_or(task);
        let own = [if name.is_empty() { b"memory" } else { name }, &b" of "[..], process].concat();
        let object = self.objects.number(if is_file { name } else { &own }, kind, &mut self.header)?;
        let task = self.tasks.number(task)?;
        let op = Op { write: false, via: Some(Via::Map) };
        Ok(Record { time_ns: self.clock.since_first(time.ns), object, task, pages, ..Record::touch(page, op) })
    }
}

impl LineFormat for PerfTrace {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {}

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let is_call = memmem::find(line, b" ms): ").is_some() && fault(line).is_none();
        if line.trim_ascii().is_empty() || line.starts_with(b"#") || is_call {
            return Ok(());
        }
        out.push(self.record(line).map_err(|what| at.error(what))?);
        Ok(())
    }
}
