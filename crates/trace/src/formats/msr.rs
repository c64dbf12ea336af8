//! MSR Cambridge csv: `timestamp,host,disk,Read|Write,offset,size,response time`.
//!
//! Timestamps are ticks of 100 ns and become relative to the first record. Each (host, disk) is an
//! object.

use crate::columns::{MSR, MSR_SECONDS};
use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, MAX_OBJECTS, ObjectInfo, ObjectKind, Op, Record};
use crate::seen::Seen;
use crate::text::{LineFormat, LinePosition, other_separator};
use crate::units::UnitDetector;
use std::collections::HashMap;

const TICK_NS: u64 = 100;
const MAX_NAME: usize = 200;

pub(crate) struct Msr {
    header: Header,
    disks: HashMap<Vec<u8>, u32>,
    /// Bytes that offsets and sizes count.
    unit: u32,
    /// Nanoseconds that a timestamp counts.
    tick_ns: u64,
    start: Option<u64>,
    watch: UnitDetector,
}

impl Msr {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::new(Format::Msr);
        header.page_size = opts.page_size;
        header.seen = Some(Seen::BlockRequests);
        let (unit, tick_ns) = (opts.block_bytes.unwrap_or(1), opts.tick_ns.unwrap_or(TICK_NS));
        Self { header, disks: HashMap::new(), unit, tick_ns, start: None, watch: UnitDetector::new(Format::Msr, opts) }
    }

    fn object(&mut self, host: &[u8], disk: &[u8], at: &LinePosition<'_>) -> Result<u32, TraceError> {
        let mut key = host.to_vec();
        key.push(b'.');
        key.extend_from_slice(disk);
        if let Some(object) = self.disks.get(&key) {
            return Ok(*object);
        }
        if key.len() > MAX_NAME {
            return Err(at.error("host and disk names are too long"));
        }
        let object = self.header.objects.len() as u32;
        if object >= MAX_OBJECTS {
            return Err(at.error(format!("more than {MAX_OBJECTS} disks")));
        }
        let name = String::from_utf8_lossy(&key).into_owned();
        self.header.objects.push(ObjectInfo::new(name, ObjectKind::File));
        self.disks.insert(key, object);
        Ok(object)
    }
}

/// `Read` or `Write`, in whatever letters.
pub(crate) fn is_write(op: &[u8]) -> Option<bool> {
    match op {
        _ if op.eq_ignore_ascii_case(b"Read") => Some(false),
        _ if op.eq_ignore_ascii_case(b"Write") => Some(true),
        _ => None,
    }
}

/// Whether a line names the columns, as some copies of these traces have it on top.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let mut fields = line.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let [_, _, _, _, offset, size, _] = [(); 7].map(|()| fields.next().unwrap_or(b""));
    offset.eq_ignore_ascii_case(b"offset") && size.eq_ignore_ascii_case(b"size") && fields.next().is_none()
}

impl LineFormat for Msr {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
    }

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        if line.is_empty() || at.is_first() && is_header(line) {
            return Ok(());
        }
        let mut fields = [&b""[..]; 7];
        let mut found = 0;
        for (i, field) in line.split(|b| *b == b',').enumerate() {
            if i < fields.len() {
                fields[i] = field.trim_ascii();
            }
            found = i + 1;
        }
        if found != fields.len() {
            let counted = if found == 1 { "1 field" } else { &format!("{found} fields") };
            let error = at.error(format!("{counted} instead of 7"));
            return Err(match other_separator(line, Some(b','), 7, false) {
                Some(separator) => {
                    error.with_advice(&format!("--format 'columns:{MSR}' --separator {separator} finds 7"))
                }
                None => error,
            });
        }
        let [time, host, disk, op, offset, size, _] = fields;
        let has_point = time.contains(&b'.');
        let seconds = || format!("--format 'columns:{MSR_SECONDS}' reads seconds with a fraction");
        let ticks = at.decimal(time, "timestamp");
        let ticks = ticks.map_err(|error| if has_point { error.with_advice(&seconds()) } else { error })?;
        let Some(write) = is_write(op) else {
            return Err(at.error(format!("{} is neither Read nor Write", quote(op))));
        };
        let offset = at.decimal(offset, "offset")?;
        let size = at.decimal(size, "size")?;
        self.watch.range(offset, size);
        self.watch.time(ticks);
        let (page, pages) =
            pages::of_blocks(offset, size, Some(self.unit), self.header.page_size).map_err(|what| at.error(what))?;
        let object = self.object(host, disk, at)?;
        let start = *self.start.get_or_insert(ticks);
        out.push(Record {
            time_ns: ticks.saturating_sub(start).saturating_mul(self.tick_ns),
            object,
            pages,
            ..Record::touch(page, Op { write, via: None })
        });
        Ok(())
    }
}
