//! LIRS: one decimal block a line; a line `*` is a mark of the authors' tools and is skipped, as
//! are empty lines.

use crate::error::TraceError;
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record};
use crate::text::{LineFormat, LinePosition};
use crate::units::UnitDetector;

pub(crate) struct Lirs {
    header: Header,
    block_bytes: Option<u32>,
    watch: UnitDetector,
}

impl Lirs {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::with_object(Format::Lirs, "blocks", ObjectKind::File);
        header.page_size = opts.page_size;
        Self { header, block_bytes: opts.block_bytes, watch: UnitDetector::new(Format::Lirs, opts) }
    }
}

impl LineFormat for Lirs {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
    }

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let line = line.trim_ascii();
        if line.is_empty() || line == b"*" {
            return Ok(());
        }
        let block = at.decimal(line, "block")?;
        self.watch.block(block);
        let (page, pages) =
            pages::of_blocks(block, 1, self.block_bytes, self.header.page_size).map_err(|what| at.error(what))?;
        out.push(Record { pages, ..Record::touch(page, Op::READ) });
        Ok(())
    }
}
