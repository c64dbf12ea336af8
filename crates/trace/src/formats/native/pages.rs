//! The pages of a column, read and decompressed; none is larger than its values can be.

use super::checked::PageChecks;
use super::header::{Kind, PageHeader};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use zstd::bulk::Decompressor;

/// The largest page of a column, decompressed. Writers aim at 1 MiB.
const MAX_PAGE: u64 = 128 << 20;

/// More than a value takes in any encoding, its levels included: 8 bytes when it is plain.
const MAX_VALUE: u64 = 20;

/// Bytes that a page may have beside its values: headers, and a last block of differences that is
/// filled up.
const MAX_EXTRA: u64 = 1 << 16;

/// More than a page header of whole numbers takes, statistics included.
const PEEK: usize = 4096;

/// Bytes that are read at once.
const WINDOW: usize = 1 << 16;

/// Reads the pages of a column in a row group.
pub(super) struct ColumnPages {
    file: Window,
    codec: Codec,
    checked: PageChecks,
    rows: u64,
    optional: bool,
}

/// How pages are compressed.
enum Codec {
    None,
    Snappy,
    Zstd(Decompressor<'static>),
}

impl ColumnPages {
    /// Pages of a part of a file: a column of `rows` rows of `width` bytes each, compressed as
    /// `codec` says.
    pub(super) fn new(
        file: Arc<File>,
        part: Range<u64>,
        codec: i32,
        rows: u64,
        width: usize,
        optional: bool,
    ) -> std::result::Result<Self, String> {
        let codec = Codec::of(codec)?;
        let checked = PageChecks::new(rows, width, optional);
        Ok(Self { file: Window { file, part, buffer: Vec::new(), used: 0 }, codec, checked, rows, optional })
    }

    fn next_page(&mut self) -> Result<Option<Page>> {
        let at = self.file.at();
        let peeked = self.file.peek()?;
        if peeked.is_empty() {
            return Ok(None);
        }
        let Some((head, length)) = PageHeader::read(peeked) else {
            return refuse(format!("there is no page header at byte {at}"));
        };
        self.file.used += length;
        let (size, values) = (u64::from(head.size), u64::from(head.values));
        if size > MAX_PAGE {
            return refuse(format!("a page at byte {at} would be of {size} bytes, more than {MAX_PAGE}"));
        }
        if values > self.rows || size > MAX_EXTRA + MAX_VALUE * values {
            let rows = self.rows;
            return refuse(format!("a page at byte {at} of {values} values in {size} bytes, of {rows} rows"));
        }
        let Some(bytes) = self.file.take(head.packed)? else {
            return refuse(format!("a page at byte {at} goes beyond its column"));
        };
        let page = self.page(&head, bytes)?;
        self.checked.check(&page)?;
        Ok(Some(page))
    }

    /// Decompresses what is behind a header.
    fn page(&mut self, head: &PageHeader, bytes: Vec<u8>) -> Result<Page> {
        let encoding = encoding(head.encoding)?;
        let (num_values, size) = (head.values, head.size as usize);
        Ok(match head.kind {
            Kind::Dictionary => {
                let buf = self.codec.decompress(bytes, size)?;
                Page::DictionaryPage { buf, num_values, encoding, is_sorted: false }
            }
            // Columns without missing values have no levels, whatever is said about them.
            Kind::First { levels } if self.optional && levels != Encoding::RLE as i32 => {
                return refuse("levels are not in encoding RLE");
            }
            Kind::First { .. } => Page::DataPage {
                buf: self.codec.decompress(bytes, size)?,
                num_values,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
            Kind::Second { nulls, rows, definition, repetition, compressed } => {
                let levels = usize::try_from(u64::from(definition) + u64::from(repetition)).unwrap_or(usize::MAX);
                if levels > bytes.len() || levels > size {
                    return refuse("levels are longer than their page");
                }
                let buf = if compressed && !matches!(self.codec, Codec::None) && levels < bytes.len() {
                    // Levels are never compressed.
                    let values = self.codec.decompress(bytes[levels..].to_vec(), size - levels)?;
                    [&bytes[..levels], &values].concat().into()
                } else {
                    Codec::None.decompress(bytes, size)?
                };
                Page::DataPageV2 {
                    buf,
                    num_values,
                    encoding,
                    num_nulls: nulls,
                    num_rows: rows,
                    def_levels_byte_len: definition,
                    rep_levels_byte_len: repetition,
                    is_compressed: false,
                    statistics: None,
                }
            }
        })
    }
}

impl Codec {
    /// Codec by its number in the metadata.
    fn of(number: i32) -> std::result::Result<Self, String> {
        match number {
            0 => Ok(Self::None),
            1 => Ok(Self::Snappy),
            6 => Decompressor::new().map(Self::Zstd).map_err(|e| e.to_string()),
            other => {
                let name = match other {
                    2 => "gzip",
                    3 => "lzo",
                    4 => "brotli",
                    5 | 7 => "lz4",
                    _ => "one that is not known",
                };
                Err(format!("its compression is {name}; only zstd, snappy and none are built in"))
            }
        }
    }

    /// Bytes that become `size` bytes.
    fn decompress(&mut self, bytes: Vec<u8>, size: usize) -> Result<Bytes> {
        let out = match self {
            Self::None => bytes,
            Self::Snappy => match snap::raw::decompress_len(&bytes) {
                Ok(length) if length == size => snap::raw::Decoder::new().decompress_vec(&bytes).map_err(damaged)?,
                _ => return refuse("a page is not as long as its header says"),
            },
            Self::Zstd(context) => context.decompress(&bytes, size).map_err(damaged)?,
        };
        if out.len() == size { Ok(out.into()) } else { refuse("a page is not as long as its header says") }
    }
}

fn damaged(error: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(format!("a page cannot be decompressed: {error}"))
}

/// Encoding of whole numbers, by its number in a header.
fn encoding(number: i32) -> Result<Encoding> {
    [Encoding::PLAIN, Encoding::PLAIN_DICTIONARY, Encoding::RLE_DICTIONARY, Encoding::DELTA_BINARY_PACKED]
        .into_iter()
        .find(|encoding| *encoding as i32 == number)
        .ok_or_else(|| ParquetError::General(format!("encoding {number} is not one of whole numbers")))
}

/// A part of a file, read from its start to its end.
struct Window {
    file: Arc<File>,
    /// Range that is not yet in the buffer.
    part: Range<u64>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are used up.
    used: usize,
}

impl Window {
    /// The place of what comes next.
    fn at(&self) -> u64 {
        self.part.start - (self.buffer.len() - self.used) as u64
    }

    /// Next bytes, enough for a header.
    fn peek(&mut self) -> io::Result<&[u8]> {
        if self.buffer.len() - self.used < PEEK && !self.part.is_empty() {
            self.buffer.drain(..self.used);
            self.used = 0;
            let more = (WINDOW as u64).min(self.part.end - self.part.start) as usize;
            read(&self.file, &mut self.part, more, &mut self.buffer)?;
        }
        let rest = &self.buffer[self.used..];
        Ok(&rest[..rest.len().min(PEEK)])
    }

    /// The next bytes; `None` when there are fewer.
    fn take(&mut self, count: u32) -> io::Result<Option<Vec<u8>>> {
        let count = count as usize;
        let buffered = count.min(self.buffer.len() - self.used);
        let more = count - buffered;
        if more as u64 > self.part.end - self.part.start {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(count);
        out.extend_from_slice(&self.buffer[self.used..self.used + buffered]);
        self.used += buffered;
        read(&self.file, &mut self.part, more, &mut out)?;
        Ok(Some(out))
    }
}

/// Moves bytes from the start of a part of a file to the end of a buffer.
fn read(mut file: &File, part: &mut Range<u64>, count: usize, out: &mut Vec<u8>) -> io::Result<()> {
    file.seek(SeekFrom::Start(part.start))?;
    // Less only when someone cuts the file at this moment.
    if file.take(count as u64).read_to_end(out)? < count {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    part.start += count as u64;
    Ok(())
}

fn refuse<T>(what: impl Into<String>) -> Result<T> {
    Err(ParquetError::General(what.into()))
}

impl Iterator for ColumnPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_page().transpose()
    }
}

/// The decoder of a column without lists takes only the next page.
impl PageReader for ColumnPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.next_page()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        refuse("pages are not looked at in advance")
    }

    fn skip_next_page(&mut self) -> Result<()> {
        refuse("pages are not skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::tests::{PLAIN, head};
    use super::*;
    use std::io::Write;

    fn pages(bytes: &[u8], codec: i32, optional: bool) -> ColumnPages {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(bytes).expect("writable");
        ColumnPages::new(Arc::new(file), 0..bytes.len() as u64, codec, 10, 8, optional).expect("a known codec")
    }

    #[track_caller]
    fn refused(bytes: &[u8], codec: i32, want: &str) {
        for optional in [false, true] {
            let error = pages(bytes, codec, optional).find_map(Result::err).expect(want);
            assert!(error.to_string().contains(want), "{error}");
        }
    }

    #[test]
    fn a_plain_page_arrives() {
        let mut bytes = head(0, &[16], &[16], PLAIN);
        bytes.extend([7; 8]);
        let mut pages = pages(&bytes, 0, false);
        let page = pages.next_page().expect("whole").expect("there");
        assert_eq!((page.num_values(), page.buffer().as_ref()), (1, &[7; 8][..]));
        assert!(pages.next_page().expect("the end").is_none());
    }

    /// Found by fuzzing: the library reserves what a header asks for.
    #[test]
    fn pages_too_large_for_their_values() {
        refused(&head(0, &[0xfe, 0xff, 0xff, 0xff, 0x0f], &[6], PLAIN), 6, "more than 134217728");
        refused(&head(0, &[0x80, 0x80, 0x10], &[6], PLAIN), 6, "of 1 values in 131072 bytes");
        refused(&head(0, &[16], &[16], &[0x15, 22, 0x15, 0, 0x15, 6, 0x15, 6]), 6, "of 11 values");
        refused(&head(0, &[16], &[16], PLAIN), 0, "goes beyond its column");
    }

    #[test]
    fn pages_that_are_not_what_their_headers_say() {
        for (codec, bytes) in [(0, &[0; 3][..]), (1, &[3, 8, 0, 0, 0]), (1, &[0xff; 3]), (6, &[0; 3])] {
            let page = [&head(0, &[16], &[2 * bytes.len() as u8], PLAIN), bytes].concat();
            refused(&page, codec, if codec == 6 { "cannot be decompressed" } else { "not as long as" });
        }
        refused(&[head(0, &[2], &[2], &[0x15, 2, 0x15, 14, 0x15, 6, 0x15, 6]), vec![0]].concat(), 0, "encoding 7");
        let body = [0x15, 2, 0x15, 0, 0x15, 2, 0x15, 0, 0x15, 8, 0x15, 0];
        refused(&[head(3, &[6], &[6], &body), vec![0; 3]].concat(), 6, "levels are longer");
        assert!(Codec::of(2).is_err_and(|e| e.contains("gzip")));
    }
}
