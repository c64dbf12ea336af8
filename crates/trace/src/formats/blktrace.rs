//! Binary traces of blktrace: a file for each CPU, or what `blkparse -d` writes.
//!
//! Definition: `include/uapi/linux/blktrace_api.h`: records of 48 bytes in the byte order of the
//! machine (magic and version, number, nanoseconds, sector, bytes, action, process, device, CPU,
//! error, length of what follows). The action has what it is in its low bits, and of what request
//! in its high ones. One of the actions is read, as in text of blkparse: queued, sent to the device
//! or completed, the first of which is in the front of the file.

use crate::error::{ErrorKind, TraceError};
use crate::format::Format;
use crate::input::Input;
use crate::names::{Clock, ObjectNames, TaskNames};
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{CHUNK, Header, ObjectKind, Op, Record, RecordSource};
use crate::seen::Seen;

const SIZE: usize = 48;
const VERSION: u8 = 7;

/// Action of a request: queued, sent to the device, completed.
const ACTIONS: [(u32, &str); 3] = [(1, "queued"), (7, "sent to the device"), (8, "completed")];

/// Kinds of requests, in the high half of an action.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;

/// A record.
struct Event {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    process: u32,
    device: u32,
    /// Bytes behind the record.
    tail: u16,
}

/// The byte order of a record by its magic; none: it is no record.
fn is_big_endian(bytes: &[u8]) -> Option<(bool, u8)> {
    match bytes {
        [version, b't', b'a', b'e', ..] => Some((false, *version)),
        [b'e', b'a', b't', version, ..] => Some((true, *version)),
        _ => None,
    }
}

/// Whether bytes look like this format.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    is_big_endian(head).is_some_and(|(_, version)| version < b' ')
}

impl Event {
    /// Reads a record of 48 bytes or more.
    fn read(bytes: &[u8]) -> Result<Event, String> {
        let Some((is_big, version)) = is_big_endian(bytes) else {
            return Err("a record does not begin with the mark of blktrace".into());
        };
        if version != VERSION {
            return Err(format!("records are of version {version}, and {VERSION} is read; blkparse makes text of it"));
        }
        let u32_at = |at: usize| {
            let raw = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            if is_big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) }
        };
        let u64_at = |at: usize| {
            let (first, second) = (u64::from(u32_at(at)), u64::from(u32_at(at + 4)));
            if is_big { first << 32 | second } else { second << 32 | first }
        };
        let raw = [bytes[46], bytes[47]];
        Ok(Event {
            time_ns: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action: u32_at(28),
            process: u32_at(32),
            device: u32_at(36),
            tail: if is_big { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) },
        })
    }

    /// Whether it is of that action, and of a request that moves data.
    fn is_of(&self, action: u32) -> bool {
        let kind = self.action & 0xff;
        kind == action && self.action & (NOTIFY | DISCARD) == 0 && self.action & (READ | WRITE) != 0 && self.bytes > 0
    }
}

/// The events of the front of a file.
fn events(mut head: &[u8]) -> impl Iterator<Item = Event> {
    std::iter::from_fn(move || {
        let event = Event::read(head.get(..SIZE)?).ok()?;
        head = head.get(SIZE + usize::from(event.tail)..).unwrap_or(&[]);
        Some(event)
    })
}

pub(crate) struct Blktrace {
    input: Input,
    header: Header,
    action: u32,
    objects: ObjectNames,
    tasks: TaskNames,
    clock: Clock,
    failed: Option<TraceError>,
}

impl Blktrace {
    pub(crate) fn new(input: Input, opts: &OpenOptions) -> Self {
        let mut header = Header::new(Format::Blktrace);
        header.page_size = opts.page_size;
        header.seen = Some(Seen::BlockRequests);
        let has = |action: u32| events(input.head()).any(|event| event.is_of(action));
        let (action, said) = ACTIONS.into_iter().find(|(action, _)| has(*action)).unwrap_or(ACTIONS[0]);
        if action != ACTIONS[0].0 {
            header.remarks.push(format!("no request is queued at its front: those {said} are read"));
        }
        if is_of_one_cpu(input.name()) {
            header.remarks.push("blktrace has a file for each CPU: blkparse -i NAME -d FILE makes one of them".into());
        }
        let (objects, tasks, clock) = (ObjectNames::default(), TaskNames::default(), Clock::default());
        Self { input, header, action, objects, tasks, clock, failed: None }
    }

    /// Reads a record; false at the end.
    fn step(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        let offset = self.input.offset();
        let mut bytes = [0; SIZE];
        let have = self.input.fill(&mut bytes)?;
        if have == 0 {
            return Ok(false);
        }
        let cut = |input: &Input, have: usize, of: usize| {
            let what = format!("record is cut short ({have} of {of} bytes); the file is truncated");
            input.error_at(ErrorKind::Truncated, offset, what)
        };
        if have < SIZE {
            return Err(cut(&self.input, have, SIZE));
        }
        let wrong = |input: &Input, what: String| input.error_at(ErrorKind::Malformed, offset, what);
        let event = Event::read(&bytes).map_err(|what| wrong(&self.input, what))?;
        let mut tail = vec![0; usize::from(event.tail)];
        let have = self.input.fill(&mut tail)?;
        if have < tail.len() {
            return Err(cut(&self.input, SIZE + have, SIZE + tail.len()));
        }
        if event.is_of(self.action) {
            let record = self.record(&event).map_err(|what| wrong(&self.input, what))?;
            out.push(record);
        }
        Ok(true)
    }

    fn record(&mut self, event: &Event) -> Result<Record, String> {
        let start =
            event.sector.checked_mul(512).ok_or_else(|| format!("sector {} is beyond 64 bits", event.sector))?;
        let (page, pages) = pages::of_bytes(start, u64::from(event.bytes), self.header.page_size)?;
        let device = format!("{},{}", event.device >> 20, event.device & 0xf_ffff);
        let object = self.objects.number(device.as_bytes(), ObjectKind::File, &mut self.header)?;
        let task = self.tasks.number(event.process.to_string().as_bytes())?;
        let op = Op { write: event.action & WRITE != 0, via: None };
        Ok(Record { time_ns: self.clock.since_first(event.time_ns), object, task, pages, ..Record::touch(page, op) })
    }
}

/// Whether a name is that of the file of one CPU, such as `sda.blktrace.0`.
fn is_of_one_cpu(name: &str) -> bool {
    let number = name.rsplit_once(".blktrace.").map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

impl RecordSource for Blktrace {
    fn name(&self) -> &str {
        self.input.name()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        out.clear();
        while self.failed.is_none() && out.len() < CHUNK {
            match self.step(out) {
                Ok(true) => {}
                Ok(false) => return Ok(!out.is_empty()),
                Err(error) => self.failed = Some(error),
            }
        }
        match &self.failed {
            Some(error) if out.is_empty() => Err(error.clone()),
            _ => Ok(true),
        }
    }
}
