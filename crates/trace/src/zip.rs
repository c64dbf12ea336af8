//! The members of a zip archive, one after the other, as a stream: drmemtrace splits a trace into
//! chunks this way.
//!
//! Only what such a stream needs is read (local headers, stored and deflated members, checksums),
//! so that a pipe is as good as a file; the directory at the end is not looked at.

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use std::io::{self, BufRead, Error, ErrorKind, Read, Take};

const LOCAL: u32 = 0x0403_4b50;
const DIRECTORY: u32 = 0x0201_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;

/// Where the reader is.
enum State<R> {
    Between(R),
    Stored(Take<R>),
    Deflated(DeflateDecoder<R>),
    Done,
}

/// Reads the contents of all members.
pub(crate) struct ZipReader<R> {
    state: State<R>,
    member: Member,
    crc: Crc,
}

/// Fields of a local header.
#[derive(Clone, Copy, Default)]
struct Member {
    deflated: bool,
    crc: u32,
    stored: u64,
    /// Checksum and sizes follow the data instead.
    descriptor: bool,
    /// In the descriptor, sizes have 64 bits.
    wide: bool,
}

impl<R: BufRead> ZipReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { state: State::Between(reader), member: Member::default(), crc: Crc::new() }
    }

    /// Goes on to the next member, or to the end.
    fn enter(&mut self, mut reader: R) -> io::Result<()> {
        match le32(&mut reader)? {
            LOCAL => {}
            DIRECTORY => return Ok(()),
            _ => return Err(broken("a member header is missing")),
        }
        self.member = header(&mut reader)?;
        self.crc = Crc::new();
        self.state = if self.member.deflated {
            State::Deflated(DeflateDecoder::new(reader))
        } else {
            State::Stored(reader.take(self.member.stored))
        };
        Ok(())
    }

    /// Checks a member that has been read.
    fn leave(&mut self, mut reader: R) -> io::Result<()> {
        let mut want = self.member.crc;
        if self.member.descriptor {
            // The mark is optional; without it the checksum comes at once.
            want = match le32(&mut reader)? {
                DESCRIPTOR => le32(&mut reader)?,
                crc => crc,
            };
            skip(&mut reader, if self.member.wide { 16 } else { 8 })?;
        }
        if want != self.crc.sum() {
            return Err(broken("a checksum is wrong"));
        }
        self.state = State::Between(reader);
        Ok(())
    }
}

impl<R: BufRead> Read for ZipReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let have = match &mut self.state {
                State::Between(_) => 0,
                State::Stored(data) => data.read(buf)?,
                State::Deflated(data) => data.read(buf)?,
                State::Done => return Ok(0),
            };
            if have > 0 || buf.is_empty() {
                self.crc.update(&buf[..have]);
                return Ok(have);
            }
            match std::mem::replace(&mut self.state, State::Done) {
                State::Between(reader) => self.enter(reader)?,
                State::Stored(data) if data.limit() > 0 => {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                State::Stored(data) => self.leave(data.into_inner())?,
                State::Deflated(data) => self.leave(data.into_inner())?,
                State::Done => return Ok(0),
            }
        }
    }
}

/// Reads a local header behind its mark.
fn header(reader: &mut impl Read) -> io::Result<Member> {
    let mut raw = [0; 26];
    reader.read_exact(&mut raw)?;
    let short = |at: usize| u16::from_le_bytes([raw[at], raw[at + 1]]);
    let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
    let (flags, method) = (short(2), short(4));
    if flags & 1 != 0 {
        return Err(broken("it is encrypted"));
    }
    let mut member = Member {
        deflated: method == 8,
        crc: long(10),
        stored: u64::from(long(14)),
        descriptor: flags & 8 != 0,
        wide: false,
    };
    if method != 8 && (method != 0 || member.descriptor) {
        return Err(broken("only stored and deflated members are known"));
    }
    skip(reader, u64::from(short(22)))?;
    extra(reader, usize::from(short(24)), &mut member)?;
    Ok(member)
}

/// The extra fields: of these only the one with 64-bit sizes matters.
fn extra(reader: &mut impl Read, length: usize, member: &mut Member) -> io::Result<()> {
    let mut raw = vec![0; length];
    reader.read_exact(&mut raw)?;
    let mut rest = raw.as_slice();
    while let [a, b, c, d, tail @ ..] = rest {
        let (id, size) = (u16::from_le_bytes([*a, *b]), usize::from(u16::from_le_bytes([*c, *d])));
        let Some(field) = tail.get(..size) else {
            return Err(broken("an extra field is cut short"));
        };
        if id == 1 {
            member.wide = true;
            // Uncompressed size, then the compressed one, which for a stored member is the same.
            if let (true, Some(size)) = (member.stored == u64::from(u32::MAX), field.first_chunk()) {
                member.stored = u64::from_le_bytes(*size);
            }
        }
        rest = &tail[size..];
    }
    Ok(())
}

fn le32(reader: &mut impl Read) -> io::Result<u32> {
    let mut raw = [0; 4];
    reader.read_exact(&mut raw)?;
    Ok(u32::from_le_bytes(raw))
}

fn skip(reader: &mut impl Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut reader.take(bytes), &mut io::sink())?;
    if skipped < bytes {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
