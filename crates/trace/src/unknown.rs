//! Files of no known format: what they look like, which format is nearest and why the file is not
//! of that format, and what could read it. A format whose fields do not agree is never called
//! nearest.

use crate::error::quote;
use crate::foreign::{self, Remedy};
use crate::format::Format;
use crate::formats::{self, msr};
use crate::guess::{self, Guess};
use crate::input::Input;
use crate::options::OpenOptions;
use crate::record::RecordSource;
use crate::text::{is_names, words};

/// Lines at the front that are tried.
const TRIED: usize = 64;

/// The formats of lines, in the order in which a tie is decided.
const OF_LINES: [Format; 6] = [Format::Msr, Format::Arc, Format::Plain, Format::Lirs, Format::Lackey, Format::Address];

/// Formats of lines that have marks, so that no other file is taken for one.
const WITH_MARKS: [Format; 7] = [
    Format::Blkparse,
    Format::Biosnoop,
    Format::Strace,
    Format::Events,
    Format::PerfTrace,
    Format::DrcachesimView,
    Format::IoTracer,
];

/// Text has no control characters but white space.
pub(crate) fn is_text(head: &[u8]) -> bool {
    head.iter().all(|b| !b.is_ascii_control() || matches!(b, b'\t' | b'\r' | b'\n'))
}

/// Text with a bad byte here and there: most of its first lines have none.
fn is_mostly_text(head: &[u8]) -> bool {
    let all = head.split(|b| *b == b'\n').filter(|line| !line.is_empty()).take(TRIED);
    let (good, bad): (Vec<_>, Vec<_>) = all.partition(|line| bad_byte(line).is_none());
    good.len() > bad.len()
}

/// The first byte that is not of text in UTF-8.
fn bad_byte(line: &[u8]) -> Option<u8> {
    let control = line.iter().position(|b| !is_text(&[*b]));
    let broken = std::str::from_utf8(line).err().filter(|e| e.error_len().is_some()).map(|e| e.valid_up_to());
    control.into_iter().chain(broken).min().map(|at| line[at])
}

/// Says of a file that is to be read as text that its bytes are none; `None`: it may be.
pub(crate) fn no_text(head: &[u8], format: Format) -> Option<String> {
    let is_of_lines = format == Format::Columns || OF_LINES.contains(&format) || WITH_MARKS.contains(&format);
    if !is_of_lines || is_text(head) || is_mostly_text(head) {
        return None;
    }
    Some(match foreign::of(head, None) {
        Some(foreign::UnreadFormat { what, then: Remedy::Advice(then) }) => format!("it looks like {what}, {then}"),
        _ => format!("its bytes are not text, and {format} is lines of text"),
    })
}

/// Whether a file may be of a format: bytes of one of bytes, lines of one of lines. The first of
/// lines can be read, but for lackey, which other programs print into.
pub(crate) fn may_be(head: &[u8], format: Format) -> bool {
    match (OF_LINES.contains(&format), is_text(head)) {
        (true, true) if format == Format::Lackey => lines(head).next().is_none() || readable(head, format) > 0,
        (true, true) => lines(head).next().is_none_or(|(_, line)| tried(line, format).is_ok()),
        (of_lines, is_text) => of_lines == is_text,
    }
}

/// Number of the first lines that can be read in a format.
fn readable(head: &[u8], format: Format) -> usize {
    lines(head).filter(|(_, line)| tried(line, format).is_ok()).count()
}

/// The first lines that say something, with their numbers. Comments are none of what is looked for,
/// nor is what is cut at the end.
pub(crate) fn lines(head: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let all = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end).enumerate();
    let says = |line: &[u8]| !line.is_empty() && !line.starts_with(b"#") && line != b"*" && !msr::is_header(line);
    all.filter(move |(_, line)| says(line)).map(|(i, line)| (i + 1, line)).take(TRIED)
}

/// Reads one line by itself; why it cannot be.
fn tried(line: &[u8], format: Format) -> Result<(), String> {
    let input = Input::from_reader("", Box::new(std::io::Cursor::new(line.to_vec())));
    let opts = OpenOptions { format: Some(format), ..OpenOptions::default() };
    let mut source = input.and_then(|input| formats::reader(format, input, &opts)).map_err(|e| e.to_string())?;
    match source.next_chunk(&mut Vec::new()) {
        Ok(true) => Ok(()),
        Ok(false) => Err("it holds no access".into()),
        // Without name and line, which are not those of the file.
        Err(e) => Err(e.what().to_owned()),
    }
}

/// Says all that can be said of a file that is not recognised. `named`: the format that its name
/// promises.
pub(crate) fn about(head: &[u8], named: Option<Format>) -> String {
    let first: Vec<_> = lines(head).map(|(_, line)| line).take(2).collect();
    let first = is_text(head).then_some(&first[..]);
    if let Some(foreign::UnreadFormat { what, then }) = foreign::of(head, first) {
        let then = match then {
            Remedy::Advice(then) => then.to_owned(),
            Remedy::Named(name) => format!("which --format {name} reads"),
            Remedy::Described(columns) => format!("which --format 'columns:{columns}' reads"),
        };
        return format!("format not recognised: it looks like {what}, {then}");
    }
    let is_utf8 = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true);
    if (!is_text(head) || !is_utf8) && is_mostly_text(head) {
        return damaged(head);
    }
    if !is_text(head) || !is_utf8 {
        let named = named.map_or(String::new(), |format| format!("; its name says {format}, but its bytes do not"));
        return format!(
            "format not recognised{named}; bare numbers have no mark: if it is these, give u32le, u32be, u64le or u64be \
             with --format; {}",
            names()
        );
    }
    let all: Vec<_> = lines(head).collect();
    let Some(&(number, line)) = all.first() else {
        return format!("format not recognised: its front has no line but comments; {}", names());
    };
    let most = OF_LINES.into_iter().rev().max_by_key(|format| readable(head, *format));
    let most = most.map(|format| (format, readable(head, format))).filter(|(_, n)| 2 * n >= all.len() && *n > 0);
    if let Some((format, n)) = most {
        return mostly(&all, format, n);
    }
    if let Some(said) = in_columns(&all) {
        return said;
    }
    let shown = quote(line);
    if let Some((format, separator)) = with_spaces(&all) {
        let header = if is_names(line) { format!(" | tail -n +{}", number + 1) } else { String::new() };
        return format!(
            "format not recognised: line {number} ({shown}); with spaces in place of '{separator}' it can be read as \
             {format}: tr '{separator}' ' ' <FILE{header} >NEW"
        );
    }
    if let Some(said) = keys(&all) {
        return said;
    }
    // A name above names is no header.
    if is_names(line) && all.len() > 1 && !is_names(all[1].1) {
        let second = quote(all[1].1);
        return format!(
            "format not recognised: line {number} is a header ({shown}), and what follows ({second}) is of no format that is \
             read; {}",
            names()
        );
    }
    match nearest(line) {
        Some(format) => {
            let why = tried(line, format).err().unwrap_or_else(|| "the lines after it are of another".to_owned());
            format!(
                "format not recognised; nearest is {format}, but line {number} is not of that ({shown}: {why}); {}",
                names()
            )
        }
        None => format!("format not recognised: line {number} ({shown}) is of no format that is read; {}", names()),
    }
}

fn texts<'t>(all: &[(usize, &'t [u8])]) -> Vec<&'t [u8]> {
    all.iter().map(|(_, line)| *line).collect()
}

/// Says where text has a byte that is no text, and how the other lines can be read.
fn damaged(head: &[u8]) -> String {
    let all = || head.split(|b| *b == b'\n');
    let found = all().enumerate().find_map(|(i, line)| Some((i + 1, line, bad_byte(line)?)));
    let good: Vec<&[u8]> = all().filter(|line| bad_byte(line).is_none()).collect();
    let good = good.join(&b'\n');
    let n = lines(&good).count();
    let format = OF_LINES.into_iter().find(|format| n > 0 && readable(&good, *format) == n);
    let others = format.map_or(String::new(), |format| format!("; the other lines can be read as {format}"));
    let (number, line, byte) = found.unwrap_or((1, head, 0));
    format!(
        "format not recognised: line {number} ({}) has the byte 0x{byte:02x}, which is not text in UTF-8: mend the line or \
         leave it out{others}",
        quote(line)
    )
}

/// Says of a name in each line that these can be read as keys.
fn keys(all: &[(usize, &[u8])]) -> Option<String> {
    let is_key = |line: &[u8]| {
        let is_word = !line.iter().any(|b| matches!(b, b' ' | b'\t' | b',' | b';' | b'|'));
        is_word && line.iter().any(u8::is_ascii_alphanumeric)
    };
    let is_name = |line: &[u8]| line.iter().any(u8::is_ascii_alphabetic) && nearest(line).is_none();
    let shown = quote(all.first()?.1);
    (all.len() > 1 && all.iter().any(|(_, line)| is_name(line)) && all.iter().all(|(_, line)| is_key(line))).then(|| {
        format!(
            "format not recognised: each line is one name ({shown}): --format 'columns:key' reads each name as a page"
        )
    })
}

/// Says of a file that `n` of its lines are of a format.
fn mostly(all: &[(usize, &[u8])], format: Format, n: usize) -> String {
    let (number, line) = all[0];
    let shown = quote(line);
    if is_names(line) && n + 1 == all.len() {
        let flags = guess::of(&texts(all)).map_or(String::new(), |guess| format!(", or {} reads both", guess.flags));
        return format!(
            "format not recognised: line {number} is a header ({shown}), and the lines after it can be read as {format}: \
             leave it out, as tail -n +{} does{flags}",
            number + 1
        );
    }
    if n == all.len() {
        return format!(
            "format not recognised; nearest is {format} (line {number}: {shown}): --format {format} reads it"
        );
    }
    let why = tried(line, format).err().unwrap_or_else(|| "the lines after it are of another".to_owned());
    format!(
        "format not recognised: {n} of the first {} lines can be read as {format}, but line {number} cannot ({shown}: \
         {why}); --format {format} reads the file once all can",
        all.len()
    )
}

/// Says which columns read a file.
fn in_columns(all: &[(usize, &[u8])]) -> Option<String> {
    let (number, line) = all[0];
    let shown = quote(line);
    let Guess { format, like, flags } = guess::of(&texts(all))?;
    Some(match format.map(|format| tried(line, format)) {
        Some(_) if is_names(line) => format!(
            "format not recognised: line {number} is a header ({shown}), and nearest to what follows is {like}: {flags} \
             reads both"
        ),
        Some(Err(why)) => {
            // Advice of the reader is the same flags.
            let why = why.split("; --").next().unwrap_or_default();
            format!(
                "format not recognised; nearest is {like}, but line {number} is not of that ({shown}: {why}): {flags} reads it"
            )
        }
        Some(Ok(())) => format!("format not recognised; nearest is {like}: {flags} reads it"),
        None => format!("format not recognised: {like} ({shown}): {flags} reads it"),
    })
}

/// The format of all lines but a header, if their fields were separated by spaces.
fn with_spaces(all: &[(usize, &[u8])]) -> Option<(Format, char)> {
    let first = all.iter().position(|(_, line)| !is_names(line))?;
    let lines = &all[first..];
    let reads = |format, separator: u8| {
        lines.iter().all(|(_, line)| {
            let spaced: Vec<u8> = line.iter().map(|&b| if b == separator { b' ' } else { b }).collect();
            line.contains(&separator) && tried(&spaced, format).is_ok()
        })
    };
    let separators = [b',', b';', b'|'];
    let ways = separators.into_iter().flat_map(|separator| [Format::Plain, Format::Arc].map(|f| (f, separator)));
    let found = ways.into_iter().find(|&(format, separator)| first <= 1 && reads(format, separator));
    found.map(|(format, separator)| (format, char::from(separator)))
}

fn names() -> String {
    format!("say which it is with --format: {}; docs/reference/formats.md has what each is", Format::list())
}

/// The format with which the fields of a line agree but for one.
fn nearest(line: &[u8]) -> Option<Format> {
    let decimal = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let hexadecimal = |word: &[u8]| word.len() > 1 && word.iter().all(u8::is_ascii_hexdigit);
    let fields: Vec<_> = line.split(|b| *b == b',').map(<[u8]>::trim_ascii).collect();
    if let [time, _, _, op, offset, size, _] = fields[..] {
        let agree = [decimal(time), decimal(offset), decimal(size)].into_iter().filter(|agrees| *agrees).count();
        let is_op = op.first().is_some_and(|first| matches!(first | 0x20, b'r' | b'w'));
        return (is_op && agree >= 2).then_some(Format::Msr);
    }
    let of_lackey = |range: &[u8]| {
        let mut parts = range.split(|b| *b == b',');
        matches!((parts.next(), parts.next(), parts.next()), (Some(address), Some(size), None)
            if hexadecimal(address.strip_prefix(b"0x").unwrap_or(address)) && decimal(size))
    };
    let all: Vec<_> = words(line).collect();
    match all[..] {
        [b"L" | b"S" | b"M" | b"I" | b"l" | b"s" | b"m" | b"i", range] if of_lackey(range) => Some(Format::Lackey),
        [b"l" | b"s" | b"L" | b"S", address, ..]
            if all.len() <= 3 && hexadecimal(address.strip_prefix(b"0x").unwrap_or(address)) =>
        {
            Some(Format::Address)
        }
        [_, _, _, _] if all.iter().filter(|word| decimal(word)).count() >= 3 => Some(Format::Arc),
        [number] if hexadecimal(number) || decimal(number.strip_prefix(b"-").unwrap_or(number)) => Some(Format::Plain),
        [number, op] if decimal(number) && !op.is_empty() && matches!(op[0] | 0x20, b'r' | b'w') => Some(Format::Plain),
        _ => None,
    }
}

#[cfg(test)]
#[path = "unknown_tests.rs"]
mod tests;
