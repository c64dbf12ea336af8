//! Events of the kernel as text: output of perf script and trace-cmd report, or the `trace` file of
//! tracefs.
//!
//! | file | |
//! |---|---|
//! | `line` | a line taken apart, of any of the three |
//! | `kind` | events that are read, by how much they see |
//!
//! Definition of the events' fields: `include/trace/events/filemap.h` and `block.h`, the formats in
//! tracefs of `sys_enter_*` and `exceptions:page_fault_user`, and perf-script(1), field `addr`.

mod kind;
mod line;

use super::block_request;
use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::names::{Clock, ObjectNames, TaskNames};
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record};
use crate::text::{LineFormat, LinePosition, words};
use kind::{CLASSES, Class, EventKind};
use line::EventLine;
use memchr::memmem;
use std::collections::BTreeMap;

/// Names of other events that are kept for notes.
const MOST_NAMES: usize = 4;

/// Digits of an address; shorter words may be parts of symbols.
const SHORTEST_ADDRESS: usize = 5;

/// The largest order of a folio that is believable.
const MAX_ORDER: u32 = 20;

pub(crate) struct Events {
    header: Header,
    class: &'static Class,
    objects: ObjectNames,
    tasks: TaskNames,
    clock: Clock,
    /// Lines of other events, by name, and calls that say no place.
    others: BTreeMap<String, u64>,
    without_place: u64,
    /// Lines that say that events were lost.
    losses: u64,
    /// Memory was told apart by threads.
    by_thread: bool,
    has_record: bool,
}

/// Whether a line is an event that is read.
pub(crate) fn looks_like(line: &[u8]) -> bool {
    line::parse(line).is_some_and(|line| CLASSES.iter().any(|class| class.has(line.event)))
}

/// Whether a line is an event at all.
pub(crate) fn is_event(line: &[u8]) -> bool {
    line::parse(line).is_some()
}

impl Events {
    pub(crate) fn new(head: &[u8], opts: &OpenOptions) -> Self {
        let mut header = Header::new(Format::Events);
        header.page_size = opts.page_size;
        let found: Vec<&[u8]> =
            head.split(|b| *b == b'\n').filter_map(line::parse).map(|EventLine { event, .. }| event).collect();
        let class = CLASSES.iter().find(|class| found.iter().any(|event| class.has(event)));
        let class = class.unwrap_or(&CLASSES[0]);
        header.seen = Some(class.seen);
        Self {
            header,
            class,
            objects: ObjectNames::default(),
            tasks: TaskNames::default(),
            clock: Clock::default(),
            others: BTreeMap::new(),
            without_place: 0,
            losses: 0,
            by_thread: false,
            has_record: false,
        }
    }

    /// Counts an event that is not read.
    fn pass(&mut self, event: &[u8]) {
        let name = String::from_utf8_lossy(event).into_owned();
        if self.others.len() < MOST_NAMES || self.others.contains_key(&name) {
            *self.others.entry(name).or_default() += 1;
        }
    }

    /// Object, first byte, bytes, and whether it is a write; none: there is nothing to read.
    fn access(&mut self, kind: EventKind, line: &EventLine<'_>) -> Result<Option<(String, u64, u64, bool)>, String> {
        match kind {
            EventKind::GetPages | EventKind::FileFault | EventKind::Added => file(kind, line.fields).map(Some),
            EventKind::Block => {
                let mut fields = words(line.fields);
                let (device, flags) = (fields.next().unwrap_or(b""), fields.next().unwrap_or(b""));
                if !device.contains(&b',') {
                    return Err(format!("{} is no device, such as 8,16", quote(device)));
                }
                let rest: Vec<&[u8]> = fields.collect();
                let Some(request) = block_request::read(flags, &rest)? else { return Ok(None) };
                let bytes =
                    |sectors: u64| sectors.checked_mul(512).ok_or(format!("{sectors} sectors are beyond 64 bits"));
                let device = String::from_utf8_lossy(device).into_owned();
                Ok(Some((device, bytes(request.sector)?, bytes(request.sectors)?, request.write)))
            }
            EventKind::Call { write } => {
                let get = |name: &str| hex_field(line.fields, name);
                let (fd, count, place) = (get("fd")?, get("count")?, get("pos")?);
                // A place below 0 is an error of the program.
                let is_call = count > 0 && i64::try_from(place).is_ok();
                let process = String::from_utf8_lossy(line.process.unwrap_or(line.thread)).into_owned();
                Ok(is_call.then(|| (format!("fd {fd} of {process}"), place, count, write)))
            }
            EventKind::Fault => {
                let (address, write) = fault(line.fields)?;
                self.by_thread |= line.process.is_none();
                let process = String::from_utf8_lossy(line.process.unwrap_or(line.thread)).into_owned();
                Ok(Some((format!("memory of {process}"), address, 1, write)))
            }
            EventKind::WithoutPlace => Ok(None),
        }
    }

    /// The record of an event; none: it is passed over.
    fn record(&mut self, line: &EventLine<'_>) -> Result<Option<Record>, String> {
        let Some(kind) = self.class.kind(line.event) else {
            self.pass(line.event);
            return Ok(None);
        };
        self.without_place += u64::from(kind == EventKind::WithoutPlace);
        let time = super::columns::time(line.time, 1_000_000_000)?;
        let Some((object, start, bytes, write)) = self.access(kind, line)? else { return Ok(None) };
        let (page, pages) = pages::of_bytes(start, bytes, self.header.page_size)?;
        let backing = if kind == EventKind::Fault { ObjectKind::Anon } else { ObjectKind::File };
        let object = self.objects.number(object.as_bytes(), backing, &mut self.header)?;
        let task = self.tasks.number(line.thread)?;
        let op = Op { write, via: kind.via() };
        Ok(Some(Record { time_ns: self.clock.since_first(time.ns), object, task, pages, ..Record::touch(page, op) }))
    }

    fn remarks(&self) -> Vec<String> {
        let mut said = vec![format!("events {} are read", self.class.name)];
        if !self.others.is_empty() {
            let all: Vec<_> = self.others.iter().map(|(name, lines)| format!("{lines} of {name}")).collect();
            said[0] += &format!(", and others are passed over: {}", all.join(", "));
        }
        if self.without_place > 0 {
            said.push(format!(
                "{} calls read or write without saying where, and are passed over; strace -f -ttt -y says it",
                self.without_place
            ));
        }
        if self.losses > 0 {
            said.push(format!("{} lines say that events were lost: accesses are missing", self.losses));
        }
        if self.by_thread && self.header.objects.len() > 1 {
            said.push("memory is told apart by thread; perf script -F +pid,+tid says the process".into());
        }
        said
    }
}

impl LineFormat for Events {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.header.remarks = self.remarks();
        let others: Vec<_> = self.others.keys().cloned().collect();
        let why =
            || format!("it has {}, and events that are read are filemap, block, faults and pread64", others.join(", "));
        self.header.passed_over = (!self.has_record && !others.is_empty()).then(why);
    }

    fn line(&mut self, text: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let plain = text.trim_ascii();
        if memmem::find(text, b"LOST").is_some() || memmem::find(text, b"EVENTS DROPPED").is_some() {
            self.losses += 1;
            return Ok(());
        }
        let is_head = [&b"cpus="[..], b"version =", b"CPU "].iter().any(|mark| plain.starts_with(mark));
        if plain.is_empty() || plain.starts_with(b"#") || is_head {
            return Ok(());
        }
        let Some(line) = line::parse(text) else {
            return match line::is_stack(text) {
                true => Ok(()),
                false => Err(at.error(format!("{} is no event: task, seconds, name and a colon", quote(plain)))),
            };
        };
        let record = self.record(&line).map_err(|what| at.error(what))?;
        self.has_record |= record.is_some();
        out.extend(record);
        Ok(())
    }
}

/// The value behind a key, `ino 2a41` or `ino=2a41`.
fn value<'l>(fields: &'l [u8], key: &str) -> Option<&'l [u8]> {
    let mut all = words(fields);
    while let Some(word) = all.next() {
        match word.strip_prefix(key.as_bytes()) {
            Some(b"") => return all.next(),
            Some(rest) if rest.starts_with(b"=") => return Some(&rest[1..]),
            _ => {}
        }
    }
    None
}

fn decimal(text: &[u8], what: &str) -> Result<u64, String> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| format!("{what} {} is not a number", quote(text)))
}

/// Pages of a file: object, first byte, bytes.
fn file(kind: EventKind, fields: &[u8]) -> Result<(String, u64, u64, bool), String> {
    let get = |key: &str| value(fields, key).ok_or_else(|| format!("the line is cut: it has no {key}"));
    let (device, inode, place) = (get("dev")?, get("ino")?, get("ofs")?);
    if !inode.iter().all(u8::is_ascii_hexdigit) || !device.contains(&b':') {
        return Err(format!("dev {} ino {} is no file, such as dev 8:1 ino 2a41", quote(device), quote(inode)));
    }
    let name = format!("dev {} ino {}", String::from_utf8_lossy(device), String::from_utf8_lossy(inode));
    let mut ends = place.splitn(2, |b| *b == b'-');
    let (first, last) = (ends.next().unwrap_or(b""), ends.next());
    let first_byte = decimal(first, "offset")?;
    let bytes = match (kind, last) {
        (EventKind::GetPages, Some(last)) => {
            let last = decimal(last, "offset")?;
            last.checked_sub(first_byte).ok_or_else(|| format!("offsets {} go down", quote(place)))?.saturating_add(1)
        }
        (EventKind::GetPages, None) => return Err(format!("offset {} has no end", quote(place))),
        (EventKind::Added, None) => {
            let order = value(fields, "order").map_or(Ok(0), |order| decimal(order, "order"))?;
            let order = u32::try_from(order).ok().filter(|order| *order <= MAX_ORDER);
            4096 << order.ok_or("an order of more than 20 is not believable")?
        }
        (_, None) => 1,
        (_, Some(_)) => return Err(format!("offset {} is not one number", quote(place))),
    };
    Ok((name, first_byte, bytes, false))
}

/// A value of a system call, which are hexadecimal: `fd: 0x00000003, buf: ...`.
fn hex_field(fields: &[u8], name: &str) -> Result<u64, String> {
    let mut all = fields.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let found = all.find_map(|field| field.strip_prefix(name.as_bytes())?.strip_prefix(b":"));
    let text = found.map(|text| text.trim_ascii()).ok_or_else(|| format!("the line is cut: it has no {name}"))?;
    let text = text.strip_suffix(b")").unwrap_or(text);
    hex(text.strip_prefix(b"0x").unwrap_or(text)).ok_or_else(|| format!("{name} {} is no number", quote(text)))
}

fn hex(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u64::from_str_radix(text, 16).ok()
}

/// Address of a fault, and whether it is a write, where that is said.
fn fault(fields: &[u8]) -> Result<(u64, bool), String> {
    if let Some(address) = value(fields, "address") {
        let number = |text: &[u8]| hex(text.strip_prefix(b"0x").unwrap_or(text));
        let address = number(address).ok_or_else(|| format!("address {} is no number", quote(address)))?;
        let code = value(fields, "error_code").and_then(number).unwrap_or(0);
        return Ok((address, code & 2 != 0));
    }
    let advice = "perf record -d notes addresses, and perf script -F +addr prints them";
    let mut all = words(fields);
    let address = all.next().and_then(hex).ok_or_else(|| format!("the line has no address: {advice}"))?;
    // The address, perhaps with a symbol and a file, is before the instruction; one number with a
    // symbol is that.
    let (mut is_alone, mut has_instruction) = (true, false);
    for word in all {
        is_alone = false;
        has_instruction |= word.len() >= SHORTEST_ADDRESS && hex(word).is_some();
    }
    match is_alone || has_instruction {
        true => Ok((address, false)),
        false => Err(format!("the line has an instruction and no address: {advice}")),
    }
}
