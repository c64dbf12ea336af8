//! Page cache events of io-tracer (cacheMon): a csv, from its schema 2 on with a line of names.
//!
//! Definition: its description of trace files, "Cache Events":
//! `time,pid,command,event,inode,index,pages of the file,cpu,device,count`, and since schema 2
//! nanoseconds of the monotonic clock behind them. `HIT` is a touch of a page that the kernel had,
//! `MISS` a page that it added, which readahead does, too: a read that misses is a MISS and then a
//! HIT. `DIRTY` is a write. `EVICT` and `RECLAIM` are evictions, `DROP` and `INVALIDATE` pages that
//! were given up; the end of a page by both is one record. Writeback and readahead are passed over.

use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::names::{Clock, ObjectNames, TaskNames};
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record, RecordKind};
use crate::seen::Seen;
use crate::text::{LineFormat, LinePosition};

const NAMES: &[u8] = b"timestamp,pid,command,event_type,";
/// Fields behind the event: inode, index, pages of the file, CPU, device, count.
const BEHIND: usize = 6;
const EVENTS: [&[u8]; 10] = [
    b"HIT",
    b"MISS",
    b"DIRTY",
    b"WRITEBACK_START",
    b"WRITEBACK_END",
    b"EVICT",
    b"INVALIDATE",
    b"DROP",
    b"READAHEAD",
    b"RECLAIM",
];

/// Days before each month of a year that is no leap year.
const DAYS: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

pub(crate) struct IoTracer {
    header: Header,
    objects: ObjectNames,
    tasks: TaskNames,
    clock: Clock,
}

/// Whether a line is one of these events, or their names.
pub(crate) fn looks_like(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|b| *b == b',').collect();
    line.starts_with(NAMES) || fields.len() >= 8 && EVENTS.contains(&fields[3]) && nanoseconds(fields[0]).is_some()
}

/// Place of the event among fields, counted from the end, for a command may have commas in it:
/// without the monotonic clock behind, or with it.
fn event_at(fields: &[&[u8]]) -> Result<usize, String> {
    let least = 4 + BEHIND;
    let plain = (fields.len().checked_sub(1 + BEHIND).filter(|at| *at > 2))
        .ok_or_else(|| format!("{} fields instead of {least} or {}", fields.len(), least + 1))?;
    let places = [plain, plain - 1];
    let is_event = |at: &usize| *at > 2 && EVENTS.contains(&fields[*at]);
    // A line of the usual length says best which field is meant.
    let meant = if fields.len() == least + 1 { plain - 1 } else { plain };
    (places.into_iter().find(is_event))
        .ok_or_else(|| format!("{} is no event, such as HIT or MISS", quote(fields[meant])))
}

/// Nanoseconds of a date, `2024-01-15 10:30:45.123456`, since the year 1970.
fn nanoseconds(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut parts = date.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let mut parts = time.split(':');
    let (hour, minute) = (parts.next()?.parse::<u64>().ok()?, parts.next()?.parse::<u64>().ok()?);
    let second = super::columns::time(parts.next()?.as_bytes(), 1_000_000_000).ok()?.ns;
    let is_time = hour < 24 && minute < 60 && second < 61_000_000_000;
    if !(1970..2262).contains(&year) || !(1..=31).contains(&day) || !is_time {
        return None;
    }
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = 365 * (year - 1970) + leaps(year - 1) - leaps(1969) + DAYS.get(month.checked_sub(1)? as usize)? + day
        - 1
        + u64::from(is_leap && month > 2);
    Some(((days * 24 + hour) * 60 + minute) * 60 * 1_000_000_000 + second)
}

impl IoTracer {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::new(Format::IoTracer);
        header.page_size = opts.page_size;
        header.seen = Some(Seen::PageCache);
        let (objects, tasks, clock) = (ObjectNames::default(), TaskNames::default(), Clock::default());
        Self { header, objects, tasks, clock }
    }

    /// The record of a line; none: it is passed over.
    fn record(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let fields: Vec<&[u8]> = line.split(|b| *b == b',').map(<[u8]>::trim_ascii).collect();
        let event = event_at(&fields)?;
        let number = |behind: usize, what: &str| match fields[event + behind] {
            b"" => Ok(0),
            digits => {
                let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                text.and_then(|text| text.parse().ok())
                    .ok_or_else(|| format!("{what} {} is not a number", quote(digits)))
            }
        };
        let touch = |write, kind| Some((Op { write, via: None }, kind));
        let what = match fields[event] {
            b"HIT" => touch(false, RecordKind::Hit),
            b"MISS" => touch(false, RecordKind::Miss),
            b"DIRTY" => touch(true, RecordKind::Touch),
            b"EVICT" | b"RECLAIM" => touch(false, RecordKind::Evict),
            b"INVALIDATE" | b"DROP" => touch(false, RecordKind::Drop),
            _ => None,
        };
        let time = nanoseconds(fields[0])
            .ok_or_else(|| format!("{} is no time, such as 2024-01-15 10:30:45.123456", quote(fields[0])))?;
        // Events of one microsecond are told apart by the other clock.
        let is_monotonic = fields.get(event + BEHIND + 1).is_some_and(|clock| !clock.is_empty());
        let time = if is_monotonic { number(BEHIND + 1, "monotonic time")? } else { time };
        let (inode, index, count) = (number(1, "inode")?, number(2, "index")?, number(6, "count")?);
        // Memory that is no file has no inode.
        let Some((op, kind)) = what.filter(|_| inode > 0) else { return Ok(None) };
        let device = number(5, "device")?;
        let (page, pages) = pages::of_blocks(index, count.max(1), None, self.header.page_size)?;
        let name = format!("dev {device} ino {inode}");
        let object = self.objects.number(name.as_bytes(), ObjectKind::File, &mut self.header)?;
        let task = self.tasks.number(fields[1])?;
        Ok(Some(Record {
            time_ns: self.clock.since_first(time),
            object,
            task,
            pages,
            op,
            kind,
            ..Record::touch(page, op)
        }))
    }
}

impl LineFormat for IoTracer {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {}

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        if line.is_empty() || at.is_first() && line.starts_with(NAMES) {
            return Ok(());
        }
        out.extend(self.record(line).map_err(|what| at.error(what))?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_nanoseconds() {
        // By `date -u -d ... +%s`.
        for (date, seconds) in [
            ("1970-01-01 00:00:00.0", 0),
            ("2024-01-15 10:30:45.5", 1_705_314_645),
            ("2024-03-01 00:00:00", 1_709_251_200),
            ("2000-12-31 23:59:59", 978_307_199),
        ] {
            assert_eq!(nanoseconds(date.as_bytes()).map(|ns| ns / 1_000_000_000), Some(seconds), "{date}");
        }
        for text in ["", "x", "2024-13-01 00:00:00", "2024-01-01", "2024-01-01 25:00:00", "-1-01-01 00:00:00"] {
            assert_eq!(nanoseconds(text.as_bytes()), None, "{text}");
        }
    }
}
