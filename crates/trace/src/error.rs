//! Errors of a trace, and where they are.

use std::fmt;

/// Where in the input an error was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The input as a whole.
    Whole,
    /// A line of a text format, counted from 1.
    Line(u64),
    /// A byte offset, counted from 0.
    Byte(u64),
    /// A byte offset behind the decompressor.
    DecompressedByte(u64),
    /// A row of a table, counted from 0.
    Row(u64),
}

/// The kind of an error, for callers that act on it; people read the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The operating system refused to open, read or write.
    Io,
    /// The input ends inside a record.
    Truncated,
    /// The input breaks the rules of its format.
    Malformed,
    /// The input holds no access.
    Empty,
    /// The input is beyond a documented bound.
    TooLarge,
    /// The format is not known, or is newer than this version.
    Unsupported,
    /// An option or a specification makes no sense.
    Usage,
}

/// One error: what it is about, where it is, what is wrong and what to do.
///
/// The message is one line, such as `trace.csv:17: page "x1" is not a number`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    subject: String,
    place: Place,
    what: String,
}

impl TraceError {
    /// An error about `subject`, a file name or an option.
    pub fn new(kind: ErrorKind, subject: impl Into<String>, place: Place, what: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, subject: subject.into(), place, what: what.into() }))
    }

    /// An option or a specification that makes no sense.
    pub fn usage(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, subject, Place::Whole, what)
    }

    /// A refusal of the operating system, in its own words.
    pub fn io(subject: impl Into<String>, doing: &str, error: &std::io::Error) -> Self {
        let what = format!("{doing}: {}", plain_io(error));
        Self::new(ErrorKind::Io, subject, Place::Whole, what)
    }

    /// The same error, and what to do about it.
    pub(crate) fn with_advice(mut self, advice: &str) -> Self {
        self.0.what = format!("{}; {advice}", self.0.what);
        self
    }

    /// Kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Complaint, without what it is about and where.
    pub(crate) fn what(&self) -> &str {
        &self.0.what
    }

    /// Where it was found.
    pub fn place(&self) -> Place {
        self.0.place
    }
}

/// The text of an I/O error without the `(os error 2)` that helps nobody.
pub(crate) fn plain_io(error: &std::io::Error) -> String {
    plain(error.to_string())
}

/// The same for a text that has such an error in it.
pub(crate) fn plain(text: String) -> String {
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { subject, place, what, .. } = &*self.0;
        match place {
            Place::Whole => write!(f, "{subject}: {what}"),
            Place::Line(n) => write!(f, "{subject}:{n}: {what}"),
            Place::Byte(n) => write!(f, "{subject}: byte {n}: {what}"),
            Place::DecompressedByte(n) => write!(f, "{subject}: decompressed byte {n}: {what}"),
            Place::Row(n) => write!(f, "{subject}: row {n}: {what}"),
        }
    }
}

impl std::error::Error for TraceError {}

/// Bytes of a broken input as they can be shown in a message: printable, short.
pub(crate) fn quote(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let mut text = String::from("\"");
    for &b in bytes.iter().take(SHOWN) {
        match b {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(b as char);
            }
            0x20..=0x7e => text.push(b as char),
            _ => text.push_str(&format!("\\x{b:02x}")),
        }
    }
    text.push_str(if bytes.len() > SHOWN { "...\"" } else { "\"" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_what_and_where() {
        let line = TraceError::new(
            ErrorKind::Malformed,
            "t.csv",
            Place::Line(17),
            format!("page {} is not a number", quote(b"x1")),
        );
        assert_eq!(line.to_string(), "t.csv:17: page \"x1\" is not a number");
        let byte = TraceError::new(ErrorKind::Truncated, "t.bin", Place::Byte(24), "cut short");
        assert_eq!(byte.to_string(), "t.bin: byte 24: cut short");
        assert_eq!(byte.kind(), ErrorKind::Truncated);
    }

    #[test]
    fn quoted_bytes_stay_on_one_line() {
        assert_eq!(quote(b"a\n\"\xff"), "\"a\\x0a\\\"\\xff\"");
        assert!(quote(&[b'x'; 1000]).len() < 60);
    }
}
