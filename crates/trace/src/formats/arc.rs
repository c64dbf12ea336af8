//! ARC `.lis`: four decimals a line, `start_block n_blocks ignored request_number`.
//!
//! A block is a page, or with `block_bytes` (512 in the disk traces) folds into pages.

use crate::error::TraceError;
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record};
use crate::text::{LineFormat, LinePosition, words};
use crate::units::UnitDetector;

pub(crate) struct Arc {
    header: Header,
    block_bytes: Option<u32>,
    watch: UnitDetector,
}

impl Arc {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::with_object(Format::Arc, "blocks", ObjectKind::File);
        header.page_size = opts.page_size;
        Self { header, block_bytes: opts.block_bytes, watch: UnitDetector::new(Format::Arc, opts) }
    }
}

impl LineFormat for Arc {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
    }

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let mut fields = words(line);
        let mut numbers = [0; 4];
        for (i, what) in ["start block", "number of blocks", "third field", "request number"].into_iter().enumerate() {
            let Some(field) = fields.next() else {
                if i == 0 {
                    return Ok(());
                }
                return Err(at.error(format!("{what} is missing; a line has four numbers")));
            };
            numbers[i] = at.decimal(field, what)?;
        }
        if fields.next().is_some() {
            return Err(at.error("more than four numbers"));
        }
        let [start, blocks, third, request] = numbers;
        if blocks == 0 {
            return Err(at.error("a request of 0 blocks"));
        }
        self.watch.range(start, blocks);
        self.watch.request(third, request);
        let (page, pages) =
            pages::of_blocks(start, blocks, self.block_bytes, self.header.page_size).map_err(|what| at.error(what))?;
        out.push(Record { pages, ..Record::touch(page, Op::READ) });
        Ok(())
    }
}
