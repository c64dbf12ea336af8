//! Bare numbers of 32 or 64 bits in either byte order, without a header: only read when asked for
//! by name.

use crate::binary::BinaryFormat;
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record};
use crate::units::UnitDetector;

pub(crate) struct Bare {
    header: Header,
    size: usize,
    big_endian: bool,
    block_bytes: Option<u32>,
    watch: UnitDetector,
}

impl Bare {
    pub(crate) fn new(format: Format, opts: &OpenOptions) -> Self {
        let mut header = Header::with_object(format, "blocks", ObjectKind::File);
        header.page_size = opts.page_size;
        let size = match format {
            Format::U32Le | Format::U32Be => 4,
            _ => 8,
        };
        let big_endian = matches!(format, Format::U32Be | Format::U64Be);
        Self { header, size, big_endian, block_bytes: opts.block_bytes, watch: UnitDetector::new(format, opts) }
    }
}

impl BinaryFormat for Bare {
    fn size(&self) -> usize {
        self.size
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
    }

    fn record(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), String> {
        let block = number(bytes, self.big_endian);
        self.watch.block(block);
        let (page, pages) = pages::of_blocks(block, 1, self.block_bytes, self.header.page_size)?;
        out.push(Record { pages, ..Record::touch(page, Op::READ) });
        Ok(())
    }
}

fn number(bytes: &[u8], big_endian: bool) -> u64 {
    let push = |value: u64, b: &u8| value << 8 | u64::from(*b);
    if big_endian { bytes.iter().fold(0, push) } else { bytes.iter().rev().fold(0, push) }
}
