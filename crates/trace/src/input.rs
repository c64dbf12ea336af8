//! Bytes in: a file or standard input, decompressed, with the offset of every byte known.

use crate::error::{ErrorKind, Place, TraceError, plain_io};
use crate::tar::{self, TarReader};
use crate::zip::ZipReader;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Bytes of the front that are looked at to see compression and format.
const HEAD: usize = 64 * 1024;

/// Memory that a decompressor may use: a window of 128 MiB, the largest that common tools write.
const XZ_MEMORY: u64 = 192 << 20;
const ZSTD_WINDOW_LOG: u32 = 27;

/// Compressions and archives in each other.
const MOST_LAYERS: usize = 4;

/// Advice without a trace.
const MAKES_TRACES: &str = "refault record and refault trace generate make traces";

type Stream = Box<dyn Read + Send>;

/// A stream of (decompressed) bytes that knows its name and where it is.
pub struct Input {
    name: String,
    compressed: Option<&'static str>,
    reader: BufReader<Stream>,
    offset: u64,
    head: Vec<u8>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("name", &self.name)
            .field("compressed", &self.compressed)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl Input {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        if path.as_os_str() == "-" {
            return Self::from_reader("stdin", Box::new(io::stdin()));
        }
        let name = path.display().to_string();
        let fail = |e: &io::Error| TraceError::io(name.clone(), "cannot be opened", e);
        let file = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let what = format!("cannot be opened: {}; {MAKES_TRACES}", plain_io(&e));
                return Err(TraceError::new(ErrorKind::Io, name, Place::Whole, what));
            }
            opened => opened.map_err(|e| fail(&e))?,
        };
        if file.metadata().map_err(|e| fail(&e))?.is_dir() {
            return Err(TraceError::new(ErrorKind::Io, name, Place::Whole, "is a directory; a trace is a file"));
        }
        Self::from_reader(name, Box::new(file))
    }

    /// Reads from any stream of bytes; compression and archives are seen by content, and in each
    /// other, as in `trace.csv.gz` in a tar.
    pub fn from_reader(name: impl Into<String>, mut raw: Stream) -> Result<Self, TraceError> {
        let name = name.into();
        let mut front = read_head(&mut raw).map_err(|e| TraceError::io(&*name, "cannot be read", &e))?;
        let mut stream: Stream = Box::new(io::Cursor::new(front.clone()).chain(raw));
        let mut compressed = None;
        for _ in 0..MOST_LAYERS {
            let Some(kind) = compression(&front) else { break };
            compressed = Some(kind);
            stream = decompress(kind, stream).map_err(|e| TraceError::io(&*name, "cannot be read", &e))?;
            let mut head = Vec::new();
            let mut taken = stream.by_ref().take(HEAD as u64);
            // Bytes before a broken place are read first; the error comes again when it is reached.
            let failure = taken.read_to_end(&mut head).err();
            let rest: Stream = match failure {
                None => stream,
                Some(e) if head.is_empty() && kind == "tar" => {
                    let (error, what) = broken(kind, &e);
                    return Err(TraceError::new(error, name, Place::DecompressedByte(0), what));
                }
                Some(e) => Box::new(Failing(Some(e))),
            };
            stream = Box::new(io::Cursor::new(head.clone()).chain(rest));
            front = head;
        }
        Ok(Self::with(name, compressed, front, stream))
    }

    /// `stream` starts with `head`.
    fn with(name: String, compressed: Option<&'static str>, head: Vec<u8>, stream: Stream) -> Self {
        Self { name, compressed, reader: BufReader::with_capacity(HEAD, stream), offset: 0, head }
    }

    /// The name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The compression that was seen, if any.
    pub fn compression(&self) -> Option<&'static str> {
        self.compressed
    }

    /// The first bytes, for seeing the format; reading starts at the front all the same.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The place of a byte, in the words that fit the compression.
    pub fn place(&self, offset: u64) -> Place {
        match self.compressed {
            None => Place::Byte(offset),
            Some(_) => Place::DecompressedByte(offset),
        }
    }

    /// The number of bytes taken so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// An error at a byte.
    pub fn error_at(&self, kind: ErrorKind, offset: u64, what: impl Into<String>) -> TraceError {
        TraceError::new(kind, &*self.name, self.place(offset), what)
    }

    /// Fills `buf` as far as there are bytes; less than all of it only at the end.
    pub fn fill(&mut self, buf: &mut [u8]) -> Result<usize, TraceError> {
        let mut have = 0;
        while have < buf.len() {
            match self.reader.read(&mut buf[have..]) {
                Ok(0) => break,
                Ok(n) => {
                    have += n;
                    self.offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.read_error(&e)),
            }
        }
        Ok(have)
    }

    /// Appends bytes up to and with the next line end, at most `limit` bytes.
    pub(crate) fn until_newline(&mut self, out: &mut Vec<u8>, limit: usize) -> Result<usize, TraceError> {
        let before = out.len();
        while out.len() - before < limit {
            let available = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(self.read_error(&e)),
            };
            let room = available.len().min(limit - (out.len() - before));
            if room == 0 {
                break;
            }
            let end = memchr::memchr(b'\n', &available[..room]);
            let used = end.map_or(room, |at| at + 1);
            out.extend_from_slice(&available[..used]);
            self.reader.consume(used);
            self.offset += used as u64;
            if end.is_some() {
                break;
            }
        }
        Ok(out.len() - before)
    }

    fn read_error(&self, error: &io::Error) -> TraceError {
        let Some(kind) = self.compressed else {
            let what = format!("cannot be read: {}", plain_io(error));
            return TraceError::new(ErrorKind::Io, &*self.name, Place::Byte(self.offset), what);
        };
        let (kind, what) = broken(kind, error);
        self.error_at(kind, self.offset, what)
    }
}

/// The error of data in a compression or an archive.
fn broken(kind: &str, error: &io::Error) -> (ErrorKind, String) {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            (ErrorKind::Truncated, format!("the {kind} data ends early; the file is truncated"))
        }
        _ => (ErrorKind::Malformed, format!("the {kind} data is broken: {}", plain_io(error))),
    }
}

/// Delivers one error, again and again.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0.take() {
            Some(e) => {
                self.0 = Some(io::Error::new(e.kind(), e.to_string()));
                Err(e)
            }
            None => Ok(0),
        }
    }
}

fn read_head(raw: &mut Stream) -> io::Result<Vec<u8>> {
    let mut front = Vec::new();
    raw.by_ref().take(HEAD as u64).read_to_end(&mut front)?;
    Ok(front)
}

/// Compression by its magic bytes.
fn compression(front: &[u8]) -> Option<&'static str> {
    match front {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstd"),
        [0x1f, 0x8b, 0x08, ..] => Some("gzip"),
        [b'P', b'K', 3, 4, ..] => Some("zip"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz"),
        _ if tar::looks_like(front) => Some("tar"),
        _ => None,
    }
}

fn decompress(kind: &str, stream: Stream) -> io::Result<Stream> {
    Ok(match kind {
        "zstd" => {
            let mut decoder = zstd::stream::read::Decoder::new(stream)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
        "gzip" => Box::new(flate2::read::MultiGzDecoder::new(stream)),
        "tar" => Box::new(TarReader::new(stream)),
        "zip" => Box::new(ZipReader::new(BufReader::new(stream))),
        _ => {
            let flags = liblzma::stream::CONCATENATED;
            let decoder = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, flags).map_err(io::Error::other)?;
            Box::new(liblzma::read::XzDecoder::new_stream(stream, decoder))
        }
    })
}
