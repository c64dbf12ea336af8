//! How a trace is to be read.

use crate::error::TraceError;
use crate::format::Format;

/// How a trace is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// The format; seen by content first and by name second when `None`.
    pub format: Option<Format>,
    /// oracleGeneral only: take the object id as a page as it is and ignore the size.
    pub raw_ids: bool,
    /// Plain, LIRS, ARC and bare numbers: bytes a block, folded into pages; `None` takes a block as
    /// a page. oracleGeneral: bytes that an id counts; `None` takes sectors of 512.
    pub block_bytes: Option<u32>,
    /// Bytes a page, for formats that give addresses. A power of two from 512 to 2 MiB.
    pub page_size: u32,
    /// lackey and drmemtrace only: instruction fetches count as reads.
    pub instructions: bool,
    /// Refuse numbers that may be meant in another unit, instead of saying so in
    /// [`Header::doubt`](crate::Header::doubt).
    pub strict: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { format: None, raw_ids: false, block_bytes: None, page_size: 4096, instructions: false, strict: false }
    }
}

impl OpenOptions {
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let page = self.page_size;
        if !page.is_power_of_two() || !(512..=2 << 20).contains(&page) {
            return Err(TraceError::usage(format!("page size {page}"), "is not a power of two from 512 to 2097152"));
        }
        match self.block_bytes {
            Some(0) => Err(TraceError::usage("block size 0", "is not at least 1 byte")),
            _ => Ok(()),
        }
    }
}
