//! Text of blkparse: one event of a block device a line.
//!
//! Definition: blkparse(1), "DEFAULT OUTPUT": device, CPU, sequence number, seconds, process,
//! action, RWBS flags, then for most actions `sector + sectors [command]`. A request makes several
//! lines, so that those of one action are read: queued (Q) if the front of the file has any, else
//! sent to the device (D), completed (C) or inserted (I). The statistics at the end and requests
//! without data are passed over.

use super::block_request::{self, Request};
use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::names::{Clock, ObjectNames, TaskNames};
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record};
use crate::seen::Seen;
use crate::text::{LineFormat, LinePosition, words};

/// Actions of which each request has one, the first choice first.
const ACTIONS: [(&[u8], &str); 4] =
    [(b"Q", "queued (Q)"), (b"D", "sent to the device (D)"), (b"C", "completed (C)"), (b"I", "inserted (I)")];

/// Lines that blkparse prints before and behind the events.
const STATISTICS: [&[u8]; 2] = [b"CPU", b"Total ("];
const NOTES: [&[u8]; 2] = [b"Input file ", b"Skipping "];

pub(crate) struct Blkparse {
    header: Header,
    action: &'static [u8],
    objects: ObjectNames,
    tasks: TaskNames,
    clock: Clock,
    /// Events are over, and statistics follow.
    in_statistics: bool,
}

impl Blkparse {
    pub(crate) fn new(head: &[u8], opts: &OpenOptions) -> Self {
        let mut header = Header::new(Format::Blkparse);
        header.page_size = opts.page_size;
        header.seen = Some(Seen::BlockRequests);
        let has = |action: &[u8]| head.split(|b| *b == b'\n').any(|line| words(line).nth(5) == Some(action));
        let (action, said) = ACTIONS.into_iter().find(|(action, _)| has(action)).unwrap_or(ACTIONS[0]);
        if action != ACTIONS[0].0 {
            header.remarks.push(format!("no request is queued (Q) at its front: those {said} are read"));
        }
        let (objects, tasks, clock) = (ObjectNames::default(), TaskNames::default(), Clock::default());
        Self { header, action, objects, tasks, clock, in_statistics: false }
    }
}

/// Whether a line is an event: device, CPU, number, time, process and action.
pub(crate) fn looks_like(line: &[u8]) -> bool {
    let mut fields = words(line);
    let mut next = || fields.next().unwrap_or(b"");
    let (device, cpu, number, time, process, action) = (next(), next(), next(), next(), next(), next());
    let is_time = super::columns::time(time, 1_000_000_000).is_ok() && time.contains(&b'.');
    let are_numbers = [cpu, number, process].iter().all(|word| !word.is_empty() && word.iter().all(u8::is_ascii_digit));
    is_device(device) && are_numbers && is_time && action.len() <= 2 && !action.is_empty()
}

fn is_device(word: &[u8]) -> bool {
    let mut parts = word.split(|b| *b == b',');
    let mut number = || parts.next().is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit));
    number() && number() && parts.next().is_none()
}

impl LineFormat for Blkparse {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {}

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let fields: Vec<&[u8]> = words(line).collect();
        let Some(device) = fields.first() else { return Ok(()) };
        if !is_device(device) {
            self.in_statistics |= STATISTICS.iter().any(|mark| line.starts_with(mark));
            if self.in_statistics || NOTES.iter().any(|mark| line.starts_with(mark)) {
                return Ok(());
            }
            return Err(at.error(format!("{} is no device, such as 8,16: is this text of blkparse?", quote(device))));
        }
        let [_, _, _, time, process, action, rest @ ..] = &fields[..] else {
            return Err(at.error(format!("{} fields instead of at least 7: the line is cut", fields.len())));
        };
        if *action != self.action {
            return Ok(());
        }
        let [flags, rest @ ..] = rest else {
            return Err(at.error("the line is cut: it has no flags behind the action".to_owned()));
        };
        let request = block_request::read(flags, rest).map_err(|what| at.error(what))?;
        let Some(Request { sector, sectors, write }) = request else { return Ok(()) };
        let time = super::columns::time(time, 1_000_000_000).map_err(|what| at.error(what))?;
        let (page, pages) =
            pages::of_blocks(sector, sectors, Some(512), self.header.page_size).map_err(|what| at.error(what))?;
        let object = self.objects.number(device, ObjectKind::File, &mut self.header).map_err(|what| at.error(what))?;
        let task = self.tasks.number(process).map_err(|what| at.error(what))?;
        out.push(Record {
            time_ns: self.clock.since_first(time.ns),
            object,
            task,
            pages,
            ..Record::touch(page, Op { write, via: None })
        });
        Ok(())
    }
}
