//! Lines and fields of text formats.

use crate::error::{ErrorKind, Place, TraceError, quote};
use crate::format::Format;
use crate::input::Input;
use crate::record::{CHUNK, Header, Record, RecordSource};

/// Longest line in bytes; lines of every format are far shorter.
const MAX_LINE: usize = 64 * 1024;

/// The mark that some editors put before UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

const HEADER: &str = "line 1 looks like a header: leave it out";

/// Decoder of the lines of a text format.
pub(crate) trait LineFormat {
    /// Header of the trace: the names of the format and of its objects; may grow with the lines.
    fn header(&self) -> &Header;

    /// Notes in the header what is in doubt after what was read.
    fn judge(&mut self);

    /// Reads one line (without its end) into at most a few records. `at` is for errors.
    fn line(&mut self, line: &[u8], at: &LinePosition<'_>, out: &mut Vec<Record>) -> Result<(), TraceError>;
}

/// Where a line is.
pub(crate) struct LinePosition<'a> {
    name: &'a str,
    line: u64,
}

impl LinePosition<'_> {
    /// Whether it is the first of the file.
    pub(crate) fn is_first(&self) -> bool {
        self.line == 1
    }

    /// Number of the line, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// An error in this line.
    pub(crate) fn error(&self, what: impl Into<String>) -> TraceError {
        TraceError::new(ErrorKind::Malformed, self.name, Place::Line(self.line), what)
    }

    /// A decimal field.
    pub(crate) fn decimal(&self, field: &[u8], what: &str) -> Result<u64, TraceError> {
        decimal(field).map_err(|why| self.error(format!("{what} {} {why}", quote(field))))
    }

    /// A hexadecimal field, without `0x`.
    pub(crate) fn hex(&self, field: &[u8], what: &str) -> Result<u64, TraceError> {
        hex(field).map_err(|why| self.error(format!("{what} {} {why}", quote(field))))
    }
}

fn decimal(field: &[u8]) -> Result<u64, &'static str> {
    let mut value = 0u64;
    if field.is_empty() {
        return Err("is not a number");
    }
    for &b in field {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return Err(match field.iter().all(u8::is_ascii_hexdigit) {
                true => "is not a decimal number, and hexadecimal ones begin with 0x",
                false => "is not a number",
            });
        }
        value = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit))).ok_or("is beyond 64 bits")?;
    }
    Ok(value)
}

fn hex(field: &[u8]) -> Result<u64, &'static str> {
    if field.is_empty() {
        return Err("is not a hexadecimal number");
    }
    let mut value = 0u64;
    for &b in field {
        let digit = (b as char).to_digit(16).ok_or("is not a hexadecimal number")?;
        if value >> 60 != 0 {
            return Err("is beyond 64 bits");
        }
        value = value << 4 | u64::from(digit);
    }
    Ok(value)
}

/// Whether a line has names of columns: each begins with a letter, and none is a number.
pub(crate) fn is_names(line: &[u8]) -> bool {
    let mut fields =
        line.split(|b| matches!(b, b' ' | b'\t' | b',' | b';' | b'|' | b'\r')).filter(|field| !field.is_empty());
    let is_name = |field: &[u8]| {
        let begins = field[0].is_ascii_alphabetic() || matches!(field[0], b'_' | b'"' | b'(');
        begins && !field.iter().all(u8::is_ascii_hexdigit)
    };
    !line.is_empty() && fields.all(is_name)
}

/// The fields of a line that are separated by spaces or tabs.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| *b == b' ' || *b == b'\t').filter(|word| !word.is_empty())
}

/// Whether a line is of Ramulator: a hexadecimal address of 1 MiB and more, which is large for a
/// page, and R or W in capital letters.
pub(crate) fn is_address_and_kind(address: &[u8], kind: &[u8]) -> bool {
    let digits = address.strip_prefix(b"0x").unwrap_or(b"");
    let is_large = digits.len() > 5 && digits.iter().all(u8::is_ascii_hexdigit);
    is_large && matches!(kind, b"R" | b"W")
}

/// Bytes that may be between fields, and their flags; none: any number of blanks.
pub(crate) const SEPARATORS: [(Option<u8>, &str); 5] =
    [(Some(b','), "','"), (Some(b';'), "';'"), (Some(b'\t'), "tab"), (Some(b'|'), "'|'"), (None, "space")];

/// The fields of a line with that between them.
pub(crate) fn split_at(line: &[u8], separator: Option<u8>) -> Vec<&[u8]> {
    match separator {
        None => words(line).collect(),
        Some(separator) => line.split(|b| *b == separator).map(<[u8]>::trim_ascii).collect(),
    }
}

/// Another separator at which a line has as many fields as are wanted.
pub(crate) fn other_separator(line: &[u8], not: Option<u8>, wanted: usize, or_more: bool) -> Option<&'static str> {
    let fits = |separator| {
        let found = split_at(line, separator).len();
        found == wanted || or_more && found > wanted
    };
    let others = SEPARATORS.into_iter().filter(|(separator, _)| *separator != not && wanted > 1);
    others.into_iter().find(|(separator, _)| fits(*separator)).map(|(_, flag)| flag)
}

/// A source over any format of lines.
pub(crate) struct TextSource<F> {
    input: Input,
    format: F,
    line: Vec<u8>,
    line_number: u64,
    failed: Option<TraceError>,
}

impl<F: LineFormat> TextSource<F> {
    pub(crate) fn new(input: Input, format: F) -> Self {
        Self { input, format, line: Vec::new(), line_number: 0, failed: None }
    }

    /// Reads one line; `false` at the end.
    fn step(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        self.line.clear();
        let before = self.input.offset();
        if self.input.until_newline(&mut self.line, MAX_LINE)? == 0 {
            return Ok(false);
        }
        self.line_number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() == MAX_LINE {
            let what = format!("line {} is longer than {MAX_LINE} bytes; is this a text trace?", self.line_number);
            return Err(self.input.error_at(ErrorKind::TooLarge, before, what));
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        if self.line_number == 1 && self.line.starts_with(BOM) {
            self.line.drain(..BOM.len());
        }
        let at = LinePosition { name: self.input.name(), line: self.line_number };
        // Lines that other programs print into lackey are no header.
        let has_advice = !matches!(self.format.header().format, Format::Lackey | Format::Columns);
        let is_header = at.is_first() && is_names(&self.line) && has_advice;
        self.format.line(&self.line, &at, out).map_err(|e| if is_header { e.with_advice(HEADER) } else { e })?;
        Ok(true)
    }
}

impl<F: LineFormat> RecordSource for TextSource<F> {
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
        while out.len() < CHUNK {
            match self.step(out) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if out.is_empty() => {
                    self.failed = Some(error.clone());
                    return Err(error);
                }
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        self.format.judge();
        Ok(!out.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(decimal(b"18446744073709551615"), Ok(u64::MAX));
        assert!(decimal(b"18446744073709551616").is_err());
        assert!(decimal(b"").is_err());
        assert!(decimal(b"-1").is_err());
        assert_eq!(hex(b"ffffFFFFffffFFFF"), Ok(u64::MAX));
        assert!(hex(b"10000000000000000").is_err());
        assert!(hex(b"g").is_err());
    }
}
