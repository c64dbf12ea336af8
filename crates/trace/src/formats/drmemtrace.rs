//! drmemtrace (`trace_entry_t`): packed little-endian entries of 12 bytes, u16 type, u16 size, u64
//! address.
//!
//! A file starts with a header entry and ends with a footer. Data reads and writes are accesses;
//! instruction fetches are when asked for; a thread entry names the task of what follows. The other
//! types (encodings, markers, prefetches, timing) are no accesses and are skipped.

use crate::binary::{BinaryFormat, le16, le64};
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record, Via};
use crate::units::UnitDetector;

pub(crate) const SIZE: usize = 12;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FIRST_INSTRUCTION: u16 = 10;
const LAST_INSTRUCTION: u16 = 16;
const THREAD: u16 = 22;
const HEADER: u16 = 25;
const FOOTER: u16 = 26;
/// Beyond every type of the format's published versions: what is above is no drmemtrace.
const TYPES: u16 = 128;

/// The most threads; more is taken for a broken file.
const MAX_TASKS: usize = 1 << 20;

pub(crate) struct Drmemtrace {
    header: Header,
    instructions: bool,
    /// Bytes that an address counts.
    unit: u32,
    watch: UnitDetector,
    tasks: std::collections::HashMap<u64, u32>,
    task: u32,
    begun: bool,
    ended: bool,
}

impl Drmemtrace {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::with_object(Format::Drmemtrace, "memory", ObjectKind::Anon);
        header.page_size = opts.page_size;
        Self {
            header,
            instructions: opts.instructions,
            unit: opts.block_bytes.unwrap_or(1),
            watch: UnitDetector::new(Format::Drmemtrace, opts),
            tasks: std::collections::HashMap::new(),
            task: 0,
            begun: false,
            ended: false,
        }
    }

    fn switch(&mut self, thread: u64) -> Result<(), String> {
        let known = self.tasks.len();
        if known >= MAX_TASKS && !self.tasks.contains_key(&thread) {
            return Err(format!("more than {MAX_TASKS} threads"));
        }
        self.task = *self.tasks.entry(thread).or_insert(known as u32);
        if self.tasks.len() > known {
            self.header.tasks.push(format!("thread {thread}"));
        }
        Ok(())
    }
}

impl BinaryFormat for Drmemtrace {
    fn size(&self) -> usize {
        SIZE
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
    }

    fn record(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), String> {
        let (kind, size, address) = (le16(bytes, 0), le16(bytes, 2), le64(bytes, 4));
        if !self.begun && kind != HEADER {
            return Err(format!("entry of type {kind} where a header was expected"));
        }
        self.begun = true;
        self.ended = kind == FOOTER;
        let fetch = self.instructions && (FIRST_INSTRUCTION..=LAST_INSTRUCTION).contains(&kind);
        match kind {
            READ | WRITE => {}
            _ if fetch => {}
            THREAD => return self.switch(address),
            _ if kind < TYPES => return Ok(()),
            _ => return Err(format!("entry of unknown type {kind}")),
        }
        self.watch.access(address, u64::from(size));
        let (page, pages) = pages::of_units(address, self.unit, u64::from(size), self.header.page_size)?;
        let op = Op { write: kind == WRITE, via: Some(Via::Map) };
        out.push(Record { pages, task: self.task, ..Record::touch(page, op) });
        Ok(())
    }

    fn end(&self, _: u64) -> Result<(), String> {
        if self.begun && !self.ended {
            return Err("ends without a footer; the file is truncated".to_owned());
        }
        Ok(())
    }
}

/// Whether bytes start with a header entry of a plausible version.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    head.len() >= SIZE && le16(head, 0) == HEADER && le16(head, 2) == 0 && le64(head, 4) < 256
}
