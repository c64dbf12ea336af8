//! Fixed-size records of binary formats.

use crate::error::{ErrorKind, TraceError};
use crate::input::Input;
use crate::record::{CHUNK, Header, Record, RecordSource};

/// Decoder of the records of a binary format.
pub(crate) trait BinaryFormat {
    /// Bytes a record.
    fn size(&self) -> usize;

    /// Header of the trace.
    fn header(&self) -> &Header;

    /// Notes in the header what is in doubt after what was read.
    fn judge(&mut self) {}

    /// Reads one record. An error is what is wrong; the place is added by the caller.
    fn record(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), String>;

    /// Complaint if the input ends after this many bytes in all, if there is any.
    fn end(&self, _offset: u64) -> Result<(), String> {
        Ok(())
    }
}

/// A source over any format of fixed-size records.
pub(crate) struct BinarySource<F> {
    input: Input,
    format: F,
    buffer: Vec<u8>,
    failed: Option<TraceError>,
}

impl<F: BinaryFormat> BinarySource<F> {
    pub(crate) fn new(input: Input, format: F) -> Self {
        let buffer = vec![0; format.size() * CHUNK];
        Self { input, format, buffer, failed: None }
    }

    /// Reads a chunk; an error after the records before it.
    fn step(&mut self, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let base = self.input.offset();
        let have = self.input.fill(&mut self.buffer)?;
        let size = self.format.size();
        let mut records = self.buffer[..have].chunks_exact(size);
        for (i, bytes) in records.by_ref().enumerate() {
            self.format.record(bytes, out).map_err(|what| {
                let offset = base + (i * size) as u64;
                self.input.error_at(ErrorKind::Malformed, offset, what)
            })?;
        }
        let rest = records.remainder().len();
        if rest != 0 {
            let what = format!("record is cut short ({rest} of {size} bytes); the file is truncated");
            let offset = base + (have - rest) as u64;
            return Err(self.input.error_at(ErrorKind::Truncated, offset, what));
        }
        if have < self.buffer.len() {
            let offset = self.input.offset();
            self.format.end(offset).map_err(|what| self.input.error_at(ErrorKind::Truncated, offset, what))?;
        }
        Ok(())
    }
}

impl<F: BinaryFormat> RecordSource for BinarySource<F> {
    fn name(&self) -> &str {
        self.input.name()
    }

    fn header(&self) -> &Header {
        self.format.header()
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        out.clear();
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        loop {
            let before = self.input.offset();
            let failure = self.step(out).err();
            self.format.judge();
            self.failed.clone_from(&failure);
            match failure {
                Some(error) if out.is_empty() => return Err(error),
                _ if !out.is_empty() => return Ok(true),
                // A chunk may hold nothing but entries that are not accesses.
                _ if self.input.offset() == before => return Ok(false),
                _ => {}
            }
        }
    }
}

/// A little-endian u16 at `at`; callers hold a record of the full size.
pub(crate) fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// A little-endian u32 at `at`.
pub(crate) fn le32(bytes: &[u8], at: usize) -> u32 {
    let mut raw = [0; 4];
    raw.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(raw)
}

/// A little-endian u64 at `at`.
pub(crate) fn le64(bytes: &[u8], at: usize) -> u64 {
    let mut raw = [0; 8];
    raw.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(raw)
}
