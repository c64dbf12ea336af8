//! valgrind's lackey (`--tool=lackey --trace-mem=yes`): one memory access a line.
//!
//! ` L addr,size` loads, ` S addr,size` stores, ` M addr,size` does both, `I  addr,size` fetches an
//! instruction. An access across the end of a page touches both pages. Instructions are skipped
//! unless asked for; valgrind's own lines (`==123== ...`, `--123-- ...`) and empty lines are
//! skipped too.

use crate::error::{TraceError, quote};
use crate::format::Format;
use crate::options::OpenOptions;
use crate::pages;
use crate::record::{Header, ObjectKind, Op, Record, Via};
use crate::text::{LineFormat, LinePosition};
use crate::units::UnitDetector;

/// The largest access of one instruction: state saved by `xsave` is below 16 KiB.
const MAX_BYTES: u64 = 1 << 16;

pub(crate) struct Lackey {
    header: Header,
    instructions: bool,
    /// Bytes that an address counts.
    unit: u32,
    watch: UnitDetector,
}

impl Lackey {
    pub(crate) fn new(opts: &OpenOptions) -> Self {
        let mut header = Header::with_object(Format::Lackey, "memory", ObjectKind::Anon);
        header.page_size = opts.page_size;
        let unit = opts.block_bytes.unwrap_or(1);
        Self { header, instructions: opts.instructions, unit, watch: UnitDetector::new(Format::Lackey, opts) }
    }
}

impl LineFormat for Lackey {
    fn header(&self) -> &Header {
        &self.header
    }

    fn judge(&mut self) {
        self.watch.judge(&mut self.header);
    }

    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let (write, range) = match line {
            [b'I', b' ', b' ', range @ ..] if self.instructions => (false, range),
            [b'I', b' ', b' ', ..] | [] => return Ok(()),
            [b' ', b'L', b' ', range @ ..] => (false, range),
            [b' ', b'S' | b'M', b' ', range @ ..] => (true, range),
            [b'=', b'=', ..] | [b'-', b'-', ..] => return Ok(()),
            _ => {
                return Err(at.error(format!(
                    "{} is not a line of lackey; if the program prints there too, use --log-file",
                    quote(line)
                )));
            }
        };
        let Some(comma) = memchr::memchr(b',', range) else {
            return Err(at.error(format!("{} is not address,size", quote(range))));
        };
        let address = at.hex(&range[..comma], "address")?;
        let size = at.decimal(&range[comma + 1..], "size")?;
        if size > MAX_BYTES {
            return Err(at.error(format!("an access of {size} bytes is not believable")));
        }
        self.watch.access(address, size);
        self.watch.digits(&range[..comma]);
        let (page, pages) =
            pages::of_units(address, self.unit, size, self.header.page_size).map_err(|what| at.error(what))?;
        let via = Some(Via::Map);
        out.push(Record { pages, ..Record::touch(page, Op { write, via }) });
        Ok(())
    }
}
