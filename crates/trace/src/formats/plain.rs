//! Plain text: one page or block a line, decimal or `0x` hexadecimal, optionally followed by `r` or
//! `w`.
//!
//! Skipped, and documented as such: empty lines, comment lines that start with `#`, and the `*`
//! marks of the LIRS format, which looks the same otherwise.

use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record};
use crate::text::{LineFormat, LinePosition, words};
use crate::units::UnitDetector;

pub(crate) struct Plain {
    header: Header,
    block_bytes: Option<u32>,
    watch: UnitDetector,
}

impl Plain {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::with_object(Format::Plain, "blocks", ObjectKind::File);
        header.page_size = opts.page_size;
        Self { header, block_bytes: opts.block_bytes, watch: UnitDetector::new(Format::Plain, opts) }
    }
}

impl LineFormat for Plain {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
    }

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let mut fields = words(line);
        let Some(number) = fields.next() else {
            return Ok(());
        };
        if number.starts_with(b"#") || (number == b"*" && fields.next().is_none()) {
            return Ok(());
        }
        let block = match number.strip_prefix(b"0x") {
            Some(digits) => at.hex(digits, "page"),
            None => at.decimal(number, "page"),
        };
        let block = block?;
        let op = match fields.next() {
            None | Some(b"r" | b"R") => Op::READ,
            Some(b"w" | b"W") => Op::WRITE,
            Some(other) => {
                return Err(at.error(format!("{} is neither r nor w", quote(other))));
            }
        };
        if let Some(more) = fields.next() {
            return Err(at.error(format!("{} is one field too many", quote(more))));
        }
        self.watch.block(block);
        let (page, pages) =
            pages::of_blocks(block, 1, self.block_bytes, self.header.page_size).map_err(|what| at.error(what))?;
        out.push(Record { pages, ..Record::touch(page, op) });
        Ok(())
    }
}
