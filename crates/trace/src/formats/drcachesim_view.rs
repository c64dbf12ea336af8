//! Output of the view tool of DynamoRIO's drcachesim: a record of a trace a line.
//!
//! Definition: "Trace View Tool" of DynamoRIO's documentation, the lines
//! `record# instr#: tid read 8 byte(s) @ 0xADDRESS by PC 0xPC`. Fetches of instructions are read
//! with `--instructions`; markers, and prefetches and flushes of caches, are passed over.

use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::names::TaskNames;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record, Via};
use crate::text::{LineFormat, LinePosition, words};

/// The largest access of one instruction: state saved by `xsave` is below 16 KiB.
const MAX_BYTES: u64 = 1 << 16;

pub(crate) struct DrcachesimView {
    header: Header,
    instructions: bool,
    tasks: TaskNames,
}

/// ViewKind of an access; none: it is passed over.
enum ViewKind {
    Read,
    Write,
    Fetch,
    Other,
}

/// Whether a line is the head of the output.
pub(crate) fn is_header(line: &[u8]) -> bool {
    line == b"Output format:" || line.starts_with(b"<--record#")
}

impl DrcachesimView {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::with_object(Format::DrcachesimView, "memory", ObjectKind::Anon);
        header.page_size = opts.page_size;
        Self { header, instructions: opts.instructions, tasks: TaskNames::default() }
    }

    /// The record of a line; none: it is no access.
    fn record(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let fields: Vec<&[u8]> = words(line).collect();
        let [_, instruction, task, kind, rest @ ..] = &fields[..] else {
            return Err(format!("{} is not `record# instr#: tid read 8 byte(s) @ 0x...`", quote(line)));
        };
        if !instruction.ends_with(b":") {
            return Err(format!("{} is no number of an instruction and a colon", quote(instruction)));
        }
        let kind = match *kind {
            b"read" => ViewKind::Read,
            b"write" => ViewKind::Write,
            b"ifetch" | b"non-fetched" => ViewKind::Fetch,
            word if word.starts_with(b"<") => return Ok(None),
            word if word.starts_with(b"prefetch") || word.starts_with(b"pref") => ViewKind::Other,
            b"iflush" | b"dflush" | b"hw" | b"tlb" | b"exit" | b"thread" | b"encoding" | b"sentinel" => ViewKind::Other,
            word => return Err(format!("{} is no kind of a record: read, write, ifetch or a marker", quote(word))),
        };
        let write = match kind {
            ViewKind::Read => false,
            ViewKind::Write => true,
            ViewKind::Fetch if self.instructions => false,
            ViewKind::Fetch | ViewKind::Other => return Ok(None),
        };
        let at = rest.iter().position(|word| *word == b"byte(s)").filter(|at| *at > 0);
        let at = at.ok_or("the line is cut: it has no number of byte(s)")?;
        let (size, address) = (rest[at - 1], rest.get(at + 2).copied().unwrap_or(b""));
        let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        let bytes: u64 = text(size).parse().map_err(|_| format!("size {} is not a number", quote(size)))?;
        if bytes > MAX_BYTES {
            return Err(format!("an access of {bytes} bytes is not believable"));
        }
        let address = text(address).strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let address = address.ok_or("the line is cut: it has no address @ 0x...")?;
        let (page, pages) = pages::of_bytes(address, bytes, self.header.page_size)?;
        let task = self.tasks.number(task)?;
        Ok(Some(Record { task, pages, ..Record::touch(page, Op { write, via: Some(Via::Map) }) }))
    }
}

impl LineFormat for DrcachesimView {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {}

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let is_rule = line.iter().all(|b| *b == b'-');
        if is_rule || line.trim_ascii().is_empty() || is_header(line) || line.starts_with(b"View tool results") {
            return Ok(());
        }
        // Totals at the end have no number of a record in front.
        let has_total = [&b" : total instructions"[..], b" : total"].iter().any(|end| line.ends_with(end));
        if has_total {
            return Ok(());
        }
        out.extend(self.record(line).map_err(|what| at.error(what))?);
        Ok(())
    }
}
