//! `PGTRACE1`: a header, then little-endian u32 accesses to one file and one anonymous region.
//!
//! Header: magic (8 bytes), name (32), then u32: limit_pages, file_pages, anon_pages, seed, n,
//! nphase, phase_end[16]. An access is a page index; bit 31 is set for the anonymous region, which
//! is written.

use crate::binary::{BinaryFormat, le32};
use crate::error::{ErrorKind, TraceError};
use crate::format::Format;
use crate::input::Input;
use crate::record::{Header, ObjectInfo, ObjectKind, Op, Record, Via};

pub(crate) const MAGIC: &[u8; 8] = b"PGTRACE1";
const HEADER: usize = 8 + 32 + 6 * 4 + 16 * 4;
const ANON: u32 = 1 << 31;

pub(crate) struct PgTrace {
    header: Header,
    file_pages: u32,
    anon_pages: u32,
    accesses: u32,
}

impl PgTrace {
    pub(crate) fn new(input: &mut Input) -> Result<Self, TraceError> {
        let mut raw = [0; HEADER];
        let have = input.fill(&mut raw)?;
        if have < HEADER {
            let what = format!("header is cut short ({have} of {HEADER} bytes); the file is truncated");
            let kind = match have {
                0 => ErrorKind::Empty,
                _ => ErrorKind::Truncated,
            };
            return Err(input.error_at(kind, 0, what));
        }
        if !raw.starts_with(MAGIC) {
            let what = "does not start with PGTRACE1";
            return Err(input.error_at(ErrorKind::Malformed, 0, what));
        }
        let mut header = Header::new(Format::PgTrace);
        header.objects = vec![ObjectInfo::new("file", ObjectKind::File), ObjectInfo::new("anon", ObjectKind::Anon)];
        let name: Vec<u8> = raw[8..40].iter().copied().take_while(|b| *b != 0).collect();
        header.source = Some(String::from_utf8_lossy(&name).into_owned());
        let accesses = le32(&raw, 56);
        header.records_hint = Some(u64::from(accesses));
        Ok(Self { header, file_pages: le32(&raw, 44), anon_pages: le32(&raw, 48), accesses })
    }
}

impl BinaryFormat for PgTrace {
    fn size(&self) -> usize {
        4
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn record(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), String> {
        let raw = le32(bytes, 0);
        let page = raw & !ANON;
        let (object, pages, op) = if raw & ANON == 0 {
            (0, self.file_pages, Op::READ)
        } else {
            let via = Some(Via::Map);
            (1, self.anon_pages, Op { write: true, via })
        };
        if page >= pages {
            let name = &self.header.objects[object as usize].name;
            return Err(format!("page {page} is beyond the {pages} pages of {name}"));
        }
        out.push(Record { object, ..Record::touch(u64::from(page), op) });
        Ok(())
    }

    fn end(&self, offset: u64) -> Result<(), String> {
        let found = (offset - HEADER as u64) / 4;
        if found == u64::from(self.accesses) {
            return Ok(());
        }
        Err(format!("the header promises {} accesses, the file holds {found}", self.accesses))
    }
}
