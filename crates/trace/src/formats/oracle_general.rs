//! oracleGeneral: packed little-endian records of 24 bytes.
//!
//! u32 time in seconds, u64 object id, u32 size in bytes, i64 index of the next access to the same
//! id. The id is a sector of 512 bytes (or of `block_bytes`), which folds into pages, or with
//! `raw_ids` a page as it is, its size ignored.

use crate::binary::{BinaryFormat, le32, le64};
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record};
use crate::units::UnitDetector;

pub(crate) const SIZE: usize = 24;
const SECTOR: u64 = 512;

pub(crate) struct OracleGeneral {
    header: Header,
    raw_ids: bool,
    /// Bytes that an id counts.
    unit: u64,
    /// Nanoseconds that a time counts.
    tick_ns: u64,
    start: Option<u32>,
    watch: UnitDetector,
}

impl OracleGeneral {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::with_object(Format::OracleGeneral, "disk", ObjectKind::File);
        header.page_size = opts.page_size;
        let unit = opts.block_bytes.map_or(SECTOR, u64::from);
        Self {
            header,
            raw_ids: opts.raw_ids,
            unit,
            tick_ns: opts.tick_ns.unwrap_or(1_000_000_000),
            start: None,
            watch: UnitDetector::new(Format::OracleGeneral, opts),
        }
    }
}

impl BinaryFormat for OracleGeneral {
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
        let (time, id, size) = (le32(bytes, 0), le64(bytes, 4), le32(bytes, 12));
        self.watch.range(id, u64::from(size));
        let (page, pages) = if self.raw_ids {
            pages::of_blocks(id, 1, None, self.header.page_size)?
        } else {
            let start = id
                .checked_mul(self.unit)
                .ok_or_else(|| format!("id {id} is no sector address; is --raw-ids meant?"))?;
            pages::of_bytes(start, u64::from(size), self.header.page_size)?
        };
        let start = *self.start.get_or_insert(time);
        out.push(Record {
            time_ns: u64::from(time.saturating_sub(start)).saturating_mul(self.tick_ns),
            pages,
            ..Record::touch(page, Op::READ)
        });
        Ok(())
    }
}

/// Whether bytes look like this format: the next access lies ahead, or there is none, and time does
/// not go back.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    let mut time = 0;
    let mut seen = 0;
    for (i, bytes) in head.chunks_exact(SIZE).take(64).enumerate() {
        let next = le64(bytes, 16) as i64;
        // -2: there is none after a part of a trace that was cut.
        let ahead = matches!(next, -1 | -2 | i64::MAX) || (next > i as i64 && next < 1 << 40);
        if !ahead || le32(bytes, 0) < time || le32(bytes, 12) > 1 << 30 {
            return false;
        }
        time = le32(bytes, 0);
        seen += 1;
    }
    seen > 0
}
