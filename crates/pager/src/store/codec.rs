//! Compression of one page.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into};

use super::{Page, StoreError};
use crate::uffd::PAGE;

/// More than any codec makes of a page.
pub(super) const COMPRESS_BOUND: usize = PAGE + 512;

/// How pages of the pool are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Codec {
    /// LZ4: a few microseconds in, one or two out.
    #[default]
    Lz4,
    /// Zstandard at level 1: smaller, at two to three times the time.
    Zstd,
}

impl Codec {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        [Codec::Lz4, Codec::Zstd]
            .into_iter()
            .find(|c| c.name() == s)
            .ok_or_else(|| format!("unknown codec {s:?}; known are lz4, zstd"))
    }
}

/// Buffers that a thread keeps from page to page.
struct Scratch {
    lz4: CompressTable,
    zstd: Option<(zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>)>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch { lz4: CompressTable::small(), zstd: None });
}

impl Scratch {
    fn zstd(
        &mut self,
    ) -> Result<&mut (zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>), StoreError> {
        if self.zstd.is_none() {
            let compressor = zstd::bulk::Compressor::new(1).map_err(StoreError::Io)?;
            self.zstd = Some((compressor, zstd::bulk::Decompressor::new().map_err(StoreError::Io)?));
        }
        Ok(self.zstd.as_mut().expect("it was just made"))
    }
}

/// A thread that is ending has no scratch any more, but may still fault on a page.
fn with_scratch<R>(use_it: impl FnOnce(&mut Scratch) -> R) -> R {
    let mut use_it = Some(use_it);
    let done = SCRATCH.try_with(|scratch| use_it.take().map(|f| f(&mut scratch.borrow_mut()))).ok().flatten();
    match (done, use_it) {
        (Some(result), _) => result,
        (None, f) => f.expect("it was not used")(&mut Scratch { lz4: CompressTable::small(), zstd: None }),
    }
}

/// Compresses a page; the number of bytes of `out` that it took. `None`: it does not get smaller
/// than `out`.
pub(super) fn compress(codec: Codec, page: &Page, out: &mut [u8; COMPRESS_BOUND]) -> Result<Option<usize>, StoreError> {
    with_scratch(|scratch| match codec {
        Codec::Lz4 => Ok(compress_into_with_table(page, out, &mut scratch.lz4).ok()),
        Codec::Zstd => Ok(scratch.zstd()?.0.compress_to_buffer(page, &mut out[..]).ok()),
    })
}

/// The reverse. Anything but exactly one page is an error.
pub(super) fn decompress(codec: Codec, bytes: &[u8], page: &mut Page) -> Result<(), StoreError> {
    let done = match codec {
        Codec::Lz4 => decompress_into(bytes, page).ok(),
        Codec::Zstd => with_scratch(|scratch| Ok(scratch.zstd()?.1.decompress_to_buffer(bytes, &mut page[..]).ok()))?,
    };
    if done == Some(PAGE) { Ok(()) } else { Err(StoreError::Corrupt("it does not decompress to a page")) }
}
