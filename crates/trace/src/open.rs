//! From a path to a reader: which format is this?

use crate::error::{ErrorKind, Place, TraceError};
use crate::format::Format;
use crate::formats::{self, drmemtrace, native, oracle_general, pgtrace, vscsi};
use crate::input::Input;
use crate::marks::{self, Mark};
use crate::options::OpenOptions;
use crate::record::{Header, RecordSource};
use crate::text::BOM;
use crate::units::{self, LOOKED_AT};
use crate::unknown::{self, is_text};
use std::borrow::Cow;
use std::path::Path;

/// Opens a trace: a file, or standard input for `-`.
pub fn open(path: &Path, opts: &OpenOptions) -> Result<Box<dyn RecordSource>, TraceError> {
    opts.check()?;
    let input = Input::open(path)?;
    let (format, opts) = pick(&input, path, opts)?;
    let opts = &*opts;
    if format == Format::Native && path.is_file() && input.compression().is_none() {
        opts.check_format(format)?;
        // Parquet is read from its end: a pipe must be spooled, a file need not be.
        let source = native::from_path(path)?;
        return if opts.strict { units::strict(source) } else { Ok(source) };
    }
    formats::reader(format, input, opts)
}

/// Reads the beginning of a trace, as much as is looked at for doubts: the header as it is known by
/// then.
pub fn read_header(path: &Path, opts: &OpenOptions) -> Result<Header, TraceError> {
    let mut source = open(path, opts)?;
    let (mut chunk, mut records) = (Vec::new(), 0);
    while records < LOOKED_AT && source.next_chunk(&mut chunk)? {
        records += chunk.len() as u64;
    }
    Ok(source.header().clone())
}

/// Reads a trace from an input that is open already; its name takes the place of the file name.
pub fn open_input(input: Input, opts: &OpenOptions) -> Result<Box<dyn RecordSource>, TraceError> {
    opts.check()?;
    let name = input.name().to_owned();
    let (format, opts) = pick(&input, Path::new(&name), opts)?;
    formats::reader(format, input, &opts)
}

/// The format, and the options with the columns that a mark says.
fn pick<'o>(input: &Input, path: &Path, opts: &'o OpenOptions) -> Result<(Format, Cow<'o, OpenOptions>), TraceError> {
    let plain = |format| Ok((format, Cow::Borrowed(opts)));
    if let Some(format) = opts.format {
        return match unknown::no_text(input.head(), format) {
            None => plain(format),
            Some(what) => Err(TraceError::new(ErrorKind::Unsupported, input.name(), Place::Whole, what)),
        };
    }
    let head = input.head();
    let head = head.strip_prefix(BOM).filter(|text| unknown::is_text(text)).unwrap_or(head);
    if head.is_empty() {
        return Err(empty(input.name(), None));
    }
    match marks::of(head) {
        Some(Mark::Format(format)) => return plain(format),
        Some(Mark::Columns(columns)) => {
            let opts = OpenOptions { columns: Some(columns), ..opts.clone() };
            opts.check()?;
            return Ok((Format::Columns, Cow::Owned(opts)));
        }
        None => {}
    }
    let candidates = by_content(head);
    let named = by_name(path);
    let picked = match (candidates.as_slice(), named) {
        ([one], _) => Some(*one),
        ([], Some(format)) => Some(format),
        (several, Some(format)) if several.contains(&format) => Some(format),
        _ => None,
    };
    match picked.filter(|format| unknown::may_be(head, *format)) {
        Some(format) => plain(format),
        None => {
            let what = unknown::about(head, named);
            Err(TraceError::new(ErrorKind::Unsupported, input.name(), Place::Whole, what))
        }
    }
}

/// The error of a trace without accesses, and why it has none if that is known.
pub(crate) fn empty(name: &str, why: Option<&str>) -> TraceError {
    let why = why.map_or(String::new(), |why| format!(": {why}"));
    TraceError::new(ErrorKind::Empty, name, Place::Whole, format!("holds no access{why}"))
}

/// The formats that the first bytes may be.
fn by_content(head: &[u8]) -> Vec<Format> {
    if head.starts_with(native::MAGIC) {
        return vec![Format::Native];
    }
    if head.starts_with(pgtrace::MAGIC) {
        return vec![Format::PgTrace];
    }
    if is_text(head) {
        return text_format(head).into_iter().collect();
    }
    if drmemtrace::looks_like(head) {
        return vec![Format::Drmemtrace];
    }
    let mut found = Vec::new();
    if vscsi::looks_like(head) {
        found.push(Format::Vscsi);
    }
    if oracle_general::looks_like(head) {
        found.push(Format::OracleGeneral);
    }
    found
}

/// The format of the first line that says something.
fn text_format(head: &[u8]) -> Option<Format> {
    head.split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
        .take(100)
        .find_map(line_format)
}

fn line_format(line: &[u8]) -> Option<Format> {
    match line {
        [b' ', b'L' | b'S' | b'M', b' ', ..] | [b'I', b' ', b' ', ..] => {
            return Some(Format::Lackey);
        }
        [b'=', b'=', ..] => return Some(Format::Lackey),
        [b'l' | b's', b' ', b'0', b'x', ..] => return Some(Format::Address),
        b"*" => return Some(Format::Lirs),
        _ => {}
    }
    if line.iter().filter(|b| **b == b',').count() == 6 {
        return Some(Format::Msr);
    }
    let words: Vec<_> = crate::text::words(line).take(5).collect();
    let numbers = words.iter().filter(|word| word.iter().all(u8::is_ascii_digit)).count();
    match (words.len(), numbers) {
        (4, 4) => Some(Format::Arc),
        (1, 1) => Some(Format::Plain),
        (1, 0) if words[0].starts_with(b"0x") => Some(Format::Plain),
        (2, _) if crate::text::is_address_and_kind(words[0], words[1]) => None,
        (2, _) if matches!(words[1], b"r" | b"w" | b"R" | b"W") => Some(Format::Plain),
        _ => None,
    }
}

/// The format that a file name promises, behind the suffix of a compression.
fn by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = strip_compression(&name);
    let ends = [
        (".parquet", Format::Native),
        (".oraclegeneral", Format::OracleGeneral),
        (".oraclegeneral.bin", Format::OracleGeneral),
        (".vscsi", Format::Vscsi),
        (".csv", Format::Msr),
        (".lis", Format::Arc),
        (".lirs", Format::Lirs),
        (".txt", Format::Plain),
        (".lackey", Format::Lackey),
    ];
    ends.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| format)
}

fn strip_compression(name: &str) -> &str {
    [".tar.zst", ".tar.gz", ".tar.xz", ".tgz", ".tar", ".zst", ".gz", ".xz", ".zip"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name)
}

/// The name of a trace for tables: the file name without compression and the last suffix.
pub(crate) fn stem(name: &str) -> String {
    let file = Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name);
    let file = strip_compression(file);
    match file.rfind('.') {
        Some(dot) if dot > 0 => file[..dot].to_owned(),
        _ => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_formats_are_told_apart() {
        let cases: [(&[u8], Option<Format>); 10] = [
            (b"12\n13\n", Some(Format::Plain)),
            (b"# made by hand\n12 w\n", Some(Format::Plain)),
            (b"*\n12\n", Some(Format::Lirs)),
            (b"1 1 0 0\n", Some(Format::Arc)),
            (b"==12== Lackey\n L 1ffe,8\n", Some(Format::Lackey)),
            (b"I  04001090,3\n", Some(Format::Lackey)),
            (b"s 0x1fffff50 1\n", Some(Format::Address)),
            (b"128166372003061629,hm,1,Read,383496192,32768,413\r\n", Some(Format::Msr)),
            (b"hello world\n", None),
            (b"\n\n", None),
        ];
        for (head, want) in cases {
            assert_eq!(text_format(head), want, "{}", crate::error::quote(head));
        }
    }

    #[test]
    fn stems_drop_compression_and_suffix() {
        assert_eq!(stem("a/b/OLTP.lis.zst"), "OLTP");
        assert_eq!(stem("loop.trace.gz"), "loop");
        assert_eq!(stem("stdin"), "stdin");
        assert_eq!(stem(".hidden"), ".hidden");
    }
}
