//! The file in a tar archive, as a stream. An archive of several is refused, for nothing says in
//! which order they belong; folders and the notes of archivers are passed over.
//!
//! Definition: POSIX.1-2017, pax, "ustar Interchange Format": blocks of 512 bytes, a header with
//! the name, the size in octal digits and a type before each file.

use std::io::{self, Error, ErrorKind, Read};

const BLOCK: usize = 512;

/// Where the mark of a header is, and the mark.
const MARK: (usize, &[u8]) = (257, b"ustar");

/// Reads the contents of the only file.
pub(crate) struct TarReader<R> {
    inner: R,
    /// The file, once its header was read.
    name: Option<String>,
    /// Bytes of the file that are left, and of the blank behind it.
    left: u64,
    blank: u64,
    is_done: bool,
}

/// Header of a member.
struct Header {
    name: String,
    size: u64,
    is_file: bool,
}

/// Whether bytes are an archive.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    head.get(MARK.0..MARK.0 + MARK.1.len()) == Some(MARK.1)
}

impl<R: Read> TarReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, name: None, left: 0, blank: 0, is_done: false }
    }

    /// Goes to the next file; false at the end of the archive.
    fn enter(&mut self) -> io::Result<bool> {
        loop {
            skip(&mut self.inner, self.blank)?;
            self.blank = 0;
            let mut block = [0; BLOCK];
            let have = fill(&mut self.inner, &mut block)?;
            // Archives end with blocks of zeros; some are cut before them.
            if have == 0 || block == [0; BLOCK] {
                return Ok(false);
            }
            if have < BLOCK {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let header = header(&block)?;
            let blank = header.size.next_multiple_of(BLOCK as u64) - header.size;
            let base = header.name.rsplit('/').next().unwrap_or_default();
            // macOS writes notes on files as files of that name.
            if !header.is_file || base.starts_with("._") {
                self.blank = header.size + blank;
                continue;
            }
            if let Some(first) = &self.name {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    format!(
                        "it holds several files, such as {first} and {}, and nothing says which comes first: give one, as \
                         tar -xOf ARCHIVE {first} does",
                        header.name
                    ),
                ));
            }
            self.name = Some(header.name);
            (self.left, self.blank) = (header.size, blank);
            if self.left > 0 {
                return Ok(true);
            }
        }
    }
}

impl<R: Read> Read for TarReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() || self.is_done {
            return Ok(0);
        }
        if self.left == 0 && !self.enter()? {
            self.is_done = true;
            return Ok(0);
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let have = self.inner.read(&mut buf[..room])?;
        if have == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.left -= have as u64;
        Ok(have)
    }
}

fn header(block: &[u8; BLOCK]) -> io::Result<Header> {
    let broken = |what: &str| Error::new(ErrorKind::InvalidData, what.to_owned());
    if !looks_like(block) {
        return Err(broken("a member header is missing"));
    }
    let sum: u64 =
        block.iter().enumerate().map(|(at, b)| if (148..156).contains(&at) { 32 } else { u64::from(*b) }).sum();
    if octal(&block[148..156]) != Some(sum) {
        return Err(broken("a checksum is wrong"));
    }
    let size = octal(&block[124..136]).filter(|size| *size < 1 << 62).ok_or_else(|| broken("a size is no number"))?;
    let end = block[..100].iter().position(|b| *b == 0).unwrap_or(100);
    let name = String::from_utf8_lossy(&block[..end]).chars().filter(|c| !c.is_control()).collect();
    Ok(Header { name, size, is_file: matches!(block[156], b'0' | 0 | b'7') })
}

/// A number in octal digits, or, with the highest bit of the first byte, in binary.
fn octal(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        let bytes = field.get(field.len() - 8..)?;
        return Some(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)));
    }
    let text = std::str::from_utf8(field).ok()?;
    let digits = text.trim_matches(|c| c == ' ' || c == '\0');
    u64::from_str_radix(digits, 8).ok()
}

fn fill(reader: &mut impl Read, buf: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < buf.len() {
        match reader.read(&mut buf[have..]) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(have)
}

fn skip(reader: &mut impl Read, bytes: u64) -> io::Result<()> {
    match io::copy(&mut reader.take(bytes), &mut io::sink())? {
        skipped if skipped < bytes => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
