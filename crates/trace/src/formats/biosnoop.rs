//! Output of biosnoop, of bcc or libbpf-tools: a request to a block device a line.
//!
//! Definition: biosnoop(8) of bcc. A line of names is on top; which columns there are depends on
//! the version and its flags (`QUE(ms)`, `PATTERN`), and commands have spaces, so that fields are
//! counted from the right. Requests that are neither reads nor writes are passed over.

use super::block_request::is_write;
use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::names::{Clock, ObjectNames, TaskNames};
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record};
use crate::seen::Seen;
use crate::text::{LineFormat, LinePosition, words};

/// Columns where there is no line of names.
const PLAIN: &str = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)";

pub(crate) struct Biosnoop {
    header: Header,
    columns: Columns,
    objects: ObjectNames,
    tasks: TaskNames,
    clock: Clock,
}

/// Places of columns; those behind the command are counted from the right.
struct Columns {
    /// Number of all.
    all: usize,
    process: usize,
    disk: usize,
    kind: usize,
    sector: usize,
    bytes: usize,
}

impl Columns {
    fn of(names: &[&[u8]]) -> Option<Columns> {
        let is_first = names.first() == Some(&&b"TIME(s)"[..]) && names.get(1) == Some(&&b"COMM"[..]);
        let at = |name: &[u8]| names.iter().position(|known| *known == name).map(|at| names.len() - at);
        let (process, disk, kind) = (at(b"PID")?, at(b"DISK")?, at(b"T")?);
        is_first.then_some(Columns {
            all: names.len(),
            process,
            disk,
            kind,
            sector: at(b"SECTOR")?,
            bytes: at(b"BYTES")?,
        })
    }
}

/// Whether a line has the names of the columns.
pub(crate) fn is_header(line: &[u8]) -> bool {
    Columns::of(&words(line).collect::<Vec<_>>()).is_some()
}

impl Biosnoop {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::new(Format::Biosnoop);
        header.page_size = opts.page_size;
        header.seen = Some(Seen::BlockRequests);
        let columns = Columns::of(&words(PLAIN.as_bytes()).collect::<Vec<_>>()).expect("names are known");
        let (objects, tasks, clock) = (ObjectNames::default(), TaskNames::default(), Clock::default());
        Self { header, columns, objects, tasks, clock }
    }

    /// The record of a line; none: it is neither a read nor a write.
    fn record(&mut self, fields: &[&[u8]]) -> Result<Option<Record>, String> {
        let Columns { all, process, disk, kind, sector, bytes } = self.columns;
        if fields.len() < all {
            return Err(format!("{} fields instead of at least {all}, as the names on top say", fields.len()));
        }
        let back = |at: usize| fields[fields.len() - at];
        let number = |at: usize, what: &str| {
            let text = std::str::from_utf8(back(at)).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            text.and_then(|text| text.parse::<u64>().ok())
                .ok_or_else(|| format!("{what} {} is not a number", quote(back(at))))
        };
        let time = super::columns::time(fields[0], 1_000_000_000)?;
        let flags = back(kind);
        if flags.is_empty() || !flags.iter().all(|b| b.is_ascii_alphabetic() || *b == b'?') {
            return Err(format!("{} is no kind of request, such as R or W", quote(flags)));
        }
        let (sector, bytes) = (number(sector, "sector")?, number(bytes, "number of bytes")?);
        let Some(write) = is_write(flags).filter(|_| bytes > 0) else { return Ok(None) };
        let start = sector.checked_mul(512).ok_or_else(|| format!("sector {sector} is beyond 64 bits"))?;
        let (page, pages) = pages::of_bytes(start, bytes, self.header.page_size)?;
        let object = self.objects.number(back(disk), ObjectKind::File, &mut self.header)?;
        let task = self.tasks.number(back(process))?;
        let time_ns = self.clock.since_first(time.ns);
        Ok(Some(Record { time_ns, object, task, pages, ..Record::touch(page, Op { write, via: None }) }))
    }
}

impl LineFormat for Biosnoop {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {}

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let line = line.strip_prefix(b"^C").unwrap_or(line);
        let fields: Vec<&[u8]> = words(line).collect();
        if fields.is_empty() || line.starts_with(b"Tracing ") {
            return Ok(());
        }
        if let Some(columns) = Columns::of(&fields) {
            self.columns = columns;
            return Ok(());
        }
        out.extend(self.record(&fields).map_err(|what| at.error(what))?);
        Ok(())
    }
}
