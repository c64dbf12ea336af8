//! vscsi: SCSI commands of a virtual disk, little-endian, version 1 (32 bytes) or 2 (40 bytes).

use crate::binary::{BinaryFormat, le16, le32, le64};
use crate::error::{ErrorKind, TraceError};
use crate::format::Format;
use crate::input::Input;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record};
use crate::seen::Seen;
use crate::units::UnitDetector;

const SECTOR: u64 = 512;
const MICROSECOND: u64 = 1000;

/// Where the fields of a version are.
#[derive(Clone, Copy)]
struct Layout {
    version: u16,
    size: usize,
    command: usize,
    length: usize,
    sector: usize,
    time: usize,
}

const V1: Layout = Layout { version: 1, size: 32, command: 12, length: 4, sector: 16, time: 24 };
const V2: Layout = Layout { version: 2, size: 40, command: 0, length: 8, sector: 16, time: 24 };

/// READ and WRITE of 6, 10, 12 and 16 bytes.
fn is_write(command: u16) -> Option<bool> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(false),
        0x0a | 0x2a | 0xaa | 0x8a => Some(true),
        _ => None,
    }
}

/// The layout of the first record. The version follows the command in both.
fn layout(head: &[u8]) -> Option<Layout> {
    [V1, V2].into_iter().find(|layout| {
        head.len() >= layout.size
            && le16(head, layout.command + 2) >> 8 == layout.version
            && is_write(le16(head, layout.command)).is_some()
    })
}

/// Whether bytes look like this format.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    layout(head).is_some()
}

pub(crate) struct Vscsi {
    header: Header,
    layout: Layout,
    /// Bytes that a sector has.
    unit: u64,
    /// Nanoseconds that a time counts.
    tick_ns: u64,
    start: Option<u64>,
    watch: UnitDetector,
}

impl Vscsi {
    pub(crate) fn new(input: &Input, opts: &OpenOptions) -> Result<Self, TraceError> {
        let head = input.head();
        let layout = match layout(head) {
            Some(layout) => layout,
            // An empty or cut first record is reported by the thread that reads it.
            None if head.len() < V1.size => V1,
            None => {
                let what = "is neither a vscsi record of version 1 nor of version 2";
                return Err(input.error_at(ErrorKind::Malformed, 0, what));
            }
        };
        let mut header = Header::with_object(Format::Vscsi, "disk", ObjectKind::File);
        header.page_size = opts.page_size;
        header.seen = Some(Seen::BlockRequests);
        let unit = opts.block_bytes.map_or(SECTOR, u64::from);
        let tick_ns = opts.tick_ns.unwrap_or(MICROSECOND);
        Ok(Self { header, layout, unit, tick_ns, start: None, watch: UnitDetector::new(Format::Vscsi, opts) })
    }
}

impl BinaryFormat for Vscsi {
    fn size(&self) -> usize {
        self.layout.size
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
    }

    fn record(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), String> {
        let Layout { version, command, length, sector, time, .. } = self.layout;
        let found = le16(bytes, command + 2) >> 8;
        if found != version {
            return Err(format!("record is of version {found}, the first of {version}"));
        }
        let command = le16(bytes, command);
        let write = is_write(command)
            .ok_or_else(|| format!("command {command:#04x} is neither READ nor WRITE; others are not known here"))?;
        let number = le64(bytes, sector);
        let start =
            number.checked_mul(self.unit).ok_or_else(|| format!("sector {number} is beyond 64 bits of bytes"))?;
        let length = u64::from(le32(bytes, length));
        let (page, pages) = pages::of_bytes(start, length, self.header.page_size)?;
        let time = le64(bytes, time);
        self.watch.range(number, length);
        self.watch.time(time);
        let start = *self.start.get_or_insert(time);
        out.push(Record {
            time_ns: time.saturating_sub(start).saturating_mul(self.tick_ns),
            pages,
            ..Record::touch(page, Op { write, via: None })
        });
        Ok(())
    }
}
