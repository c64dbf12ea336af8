//! Addresses: `l|s 0xADDRESS n`, a load or a store and the instructions since the last one.

use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record, Via};
use crate::text::{LineFormat, LinePosition, words};
use crate::units::UnitDetector;

pub(crate) struct Address {
    header: Header,
    /// Bytes that an address counts.
    unit: u32,
    watch: UnitDetector,
}

impl Address {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::with_object(Format::Address, "memory", ObjectKind::Anon);
        header.page_size = opts.page_size;
        Self { header, unit: opts.block_bytes.unwrap_or(1), watch: UnitDetector::new(Format::Address, opts) }
    }
}

impl LineFormat for Address {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
    }

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let mut fields = words(line);
        let write = match fields.next() {
            None => return Ok(()),
            Some(b"l") => false,
            Some(b"s") => true,
            Some(other) => return Err(at.error(format!("{} is neither l nor s", quote(other)))),
        };
        let address = fields.next().unwrap_or(b"");
        let Some(digits) = address.strip_prefix(b"0x") else {
            return Err(at.error(format!("{} is not an address 0x...", quote(address))));
        };
        let address = at.hex(digits, "address")?;
        at.decimal(fields.next().unwrap_or(b""), "instruction count")?;
        if fields.next().is_some() {
            return Err(at.error("more than three fields"));
        }
        self.watch.access(address, 0);
        self.watch.digits(digits);
        let (page, _) = pages::of_units(address, self.unit, 1, self.header.page_size).map_err(|what| at.error(what))?;
        let via = Some(Via::Map);
        out.push(Record::touch(page, Op { write, via }));
        Ok(())
    }
}
