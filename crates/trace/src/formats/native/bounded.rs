//! A Parquet file that is never asked for more than it has, and pages that never grow beyond a bound.

use super::{MAGIC, thrift};
use crate::error::{ErrorKind, Place, TraceError};
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// The largest page of a column, decompressed. Writers aim at 1 MiB.
const MAX_PAGE: i64 = 128 << 20;

/// The length of the metadata and the mark, at the end of the file; everything else that is read as a stream
/// is a page header.
const FOOTER: u64 = 8;

/// More than a page header of whole numbers takes, statistics included.
const PEEK: u64 = 4096;

/// A file whose reads never ask for more than it has, whatever its metadata claims.
pub(super) struct Bounded {
    file: File,
    len: u64,
}

impl Bounded {
    /// Over a file whose both ends are those of Parquet.
    pub(super) fn new(name: &str, mut file: File) -> Result<Self, TraceError> {
        let len = check_ends(name, &mut file)?;
        check_metadata(name, &mut file, len)?;
        Ok(Self { file, len })
    }

    /// Looks at the header of a page before the library reserves what it asks for.
    fn check_page(&self, start: u64) -> Result<(), ParquetError> {
        let mut head = Vec::new();
        self.file.get_read(start)?.take(PEEK).read_to_end(&mut head)?;
        // Also walked, since the library may count to thousands of millions in a broken one.
        match uncompressed_size(&head).filter(|_| thrift::is_struct(&head)) {
            Some(size) if size <= MAX_PAGE => Ok(()),
            Some(size) => Err(ParquetError::General(format!(
                "a page at byte {start} would be of {size} bytes, more than {MAX_PAGE}"
            ))),
            None => Err(ParquetError::General(format!("there is no page header at byte {start}"))),
        }
    }

    fn beyond(&self, start: u64, length: u64) -> ParquetError {
        ParquetError::EOF(format!("it refers to bytes {start} to {} of {}", start.saturating_add(length), self.len))
    }
}

impl Length for Bounded {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Bounded {
    type T = <File as ChunkReader>::T;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        if start > self.len {
            return Err(self.beyond(start, 0));
        }
        if start + FOOTER != self.len {
            self.check_page(start)?;
        }
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        match start.checked_add(length as u64) {
            Some(end) if end <= self.len => self.file.get_bytes(start, length),
            _ => Err(self.beyond(start, length as u64)),
        }
    }
}

/// Both ends must be those of Parquet: a cut file is told before its tail is taken for metadata.
fn check_ends(name: &str, file: &mut File) -> Result<u64, TraceError> {
    let fail = |e| TraceError::io(name, "cannot be read", &e);
    let len = file.seek(SeekFrom::End(0)).map_err(fail)?;
    let mut ends = [[0; 4]; 2];
    for (end, at) in ends.iter_mut().zip([0, len.saturating_sub(4)]) {
        file.seek(SeekFrom::Start(at)).map_err(fail)?;
        // A file shorter than the mark leaves zeros, which are not the mark.
        let _ = file.take(4).read(end).map_err(fail)?;
    }
    if len < 12 || &ends[1] != MAGIC {
        let what = "does not end with PAR1; the file is truncated";
        return Err(TraceError::new(ErrorKind::Truncated, name, Place::Byte(len), what));
    }
    if &ends[0] != MAGIC {
        let what = "does not start with PAR1; it is not Parquet";
        return Err(TraceError::new(ErrorKind::Malformed, name, Place::Byte(0), what));
    }
    Ok(len)
}

/// The metadata must lie in the file and hold together.
fn check_metadata(name: &str, file: &mut File, len: u64) -> Result<(), TraceError> {
    let fail = |e| TraceError::io(name, "cannot be read", &e);
    let mut raw = [0; 4];
    file.seek(SeekFrom::Start(len - FOOTER)).map_err(fail)?;
    file.read_exact(&mut raw).map_err(fail)?;
    let size = u64::from(u32::from_le_bytes(raw));
    let malformed = |at, what| Err(TraceError::new(ErrorKind::Malformed, name, Place::Byte(at), what));
    // Between the mark at the front and the footer.
    if size > len - FOOTER - MAGIC.len() as u64 {
        return malformed(len - FOOTER, format!("metadata of {size} bytes do not fit into the file"));
    }
    let start = len - FOOTER - size;
    let mut metadata = Vec::new();
    file.seek(SeekFrom::Start(start)).map_err(fail)?;
    file.take(size).read_to_end(&mut metadata).map_err(fail)?;
    if !thrift::is_struct(&metadata) {
        return malformed(start, "the Parquet metadata are broken".to_owned());
    }
    Ok(())
}

/// The second field of a page header, its size decompressed.
///
/// Headers are Thrift in its compact form: a byte of field distance and type (an i32 next to the last field is
/// 0x15), then the number as a zigzag varint. The first field is the type of the page.
fn uncompressed_size(head: &[u8]) -> Option<i64> {
    let mut rest = head;
    let mut value = 0;
    for _ in 0..2 {
        rest = rest.strip_prefix(&[0x15])?;
        (value, rest) = zigzag(rest)?;
    }
    Some(value)
}

fn zigzag(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut value = 0u64;
    for (i, b) in bytes.iter().take(9).enumerate() {
        value |= u64::from(b & 0x7f) << (7 * i);
        if b & 0x80 == 0 {
            let signed = (value >> 1) as i64 ^ -((value & 1) as i64);
            return Some((signed, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_headers_are_looked_at() {
        // Type 2 (4 as zigzag), 300 bytes (600 as zigzag, in two groups of 7 bits).
        assert_eq!(uncompressed_size(&[0x15, 4, 0x15, 0xd8, 4, 0x15]), Some(300));
        assert_eq!(uncompressed_size(&[0x15, 4, 0x15, 1]), Some(-1));
        assert_eq!(uncompressed_size(&[0x15, 4, 0x25, 1]), None);
        assert_eq!(uncompressed_size(&[0x15, 0x80]), None);
        assert_eq!(uncompressed_size(&[]), None);
    }
}
