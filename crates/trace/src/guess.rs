//! Descriptions of columns that read the front of a file of no known format: that of a format whose
//! fields it has between other separators or below a line of names, or what its names say.

use crate::columns::{Columns, MSR, MSR_SECONDS};
use crate::foreign::{self, Remedy};
use crate::format::Format;
use crate::formats;
use crate::input::Input;
use crate::options::OpenOptions;
use crate::text::{SEPARATORS, is_names, split_at};
use crate::units::unix_time_unit;

/// Words of reads and of writes.
const READS: [&str; 5] = ["r", "read", "rd", "get", "load"];
const WRITES: [&str; 6] = ["w", "write", "wr", "set", "put", "store"];

/// Formats with a reader of their own, as columns.
const READ: [(&str, &str); 8] = [
    ("msr", MSR_SECONDS),
    ("msr", MSR),
    ("arc", "page,size:pages,_,_"),
    ("lackey", "op=L|S+M|I,offset:hex,size:bytes"),
    ("address", "op=l|s,offset:hex,_"),
    ("plain", "page,op=r|w"),
    ("plain", "page,op=r+read|w+write"),
    ("plain", "page"),
];

/// A description that reads all lines.
pub(crate) struct Guess {
    /// The format that it is like, if that has a reader of its own.
    pub(crate) format: Option<Format>,
    /// The kind of file, or how it was seen.
    pub(crate) like: String,
    pub(crate) flags: String,
}

/// The first description that reads all of the lines, and each as an access or passed over for its
/// word.
pub(crate) fn of(lines: &[&[u8]]) -> Option<Guess> {
    let has_names = lines.len() > 1 && is_names(lines[0]);
    let body = &lines[usize::from(has_names)..];
    SEPARATORS.into_iter().find_map(|(separator, flag)| {
        let rows: Option<Vec<Vec<&str>>> = body.iter().map(|line| fields(line, separator)).collect();
        let (rows, names) = (rows?, fields(lines[0], separator)?);
        let reads = |columns: Columns| reads_all(&columns, lines).then(|| columns.flags());
        let of_read = || {
            READ.into_iter().find_map(|(like, text)| {
                let columns = is_like(like, text, &rows).then(|| Columns::new(text, bare(flag), 0))?.ok()?;
                Some(Guess { format: like.parse().ok(), like: like.into(), flags: reads(columns)? })
            })
        };
        let of_named = || {
            let found = foreign::of_split(&names).or_else(|| foreign::of_split(rows.first()?))?;
            let (columns, flags) = match found.then {
                Remedy::Named(name) => {
                    let columns = Columns::named(name)?.with(Some(bare(flag)), None).ok()?;
                    (columns, Some(format!("--format {name} --separator {flag}")))
                }
                Remedy::Described(text) => (Columns::new(text, bare(flag), 0).ok()?, None),
                Remedy::Advice(_) => return None,
            };
            let read = reads(columns)?;
            let like = format!("it looks like {}", found.what);
            Some(Guess { format: None, like, flags: flags.unwrap_or(read) })
        };
        let of_names = || {
            let columns = Columns::new(&by_names(&names, &rows)?, bare(flag), 0).ok()?;
            let like = "its line of names says what each field is".into();
            Some(Guess { format: None, like, flags: reads(columns)? })
        };
        of_named().or_else(of_read).or_else(|| if has_names { of_names() } else { None })
    })
}

fn bare(flag: &'static str) -> &'static str {
    flag.trim_matches('\'')
}

fn fields(line: &[u8], separator: Option<u8>) -> Option<Vec<&str>> {
    split_at(line, separator).into_iter().map(|field| std::str::from_utf8(field).ok()).collect()
}

/// Whether the fields resemble the fields of a format in more than their number.
fn is_like(format: &str, columns: &str, rows: &[Vec<&str>]) -> bool {
    let wanted = columns.split(',').count();
    let whole = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    rows.iter().all(|row| {
        row.len() == wanted
            && match format {
                "msr" => row[0].contains('.') == (columns == MSR_SECONDS),
                "arc" => row.iter().all(|word| whole(word)) && row[1] != "0",
                "lackey" => matches!(row[0], "L" | "S" | "M" | "I"),
                "address" => matches!(row[0], "l" | "s") && row[1].starts_with("0x"),
                _ => whole(row[0]) || row[0].starts_with("0x"),
            }
    })
}

/// Whether a description reads all lines, and at least one of them as an access.
fn reads_all(columns: &Columns, lines: &[&[u8]]) -> bool {
    let opts = OpenOptions { format: Some(Format::Columns), columns: Some(columns.clone()), ..OpenOptions::default() };
    let text = lines.join(&b'\n');
    let input = Input::from_reader("", Box::new(std::io::Cursor::new(text)));
    let Ok(mut source) = input.and_then(|input| formats::reader(Format::Columns, input, &opts)) else { return false };
    let (mut chunk, mut has_access) = (Vec::new(), false);
    loop {
        match source.next_chunk(&mut chunk) {
            Ok(true) => has_access = true,
            Ok(false) => return has_access,
            Err(_) => return false,
        }
    }
}

/// A description after the names of columns.
fn by_names(names: &[&str], rows: &[Vec<&str>]) -> Option<String> {
    let value = |i: usize| rows.first().and_then(|row| row.get(i)).copied().unwrap_or("");
    let is_key = |name: &str| matches!(name, "key" | "id" | "obj_id" | "object_id" | "url");
    let plain: Vec<String> = names.iter().map(|name| name.trim_matches('"').to_ascii_lowercase()).collect();
    let has_key = plain.iter().any(|name| is_key(name));
    let mut all = Vec::new();
    for (i, name) in plain.iter().enumerate() {
        let hex = value(i).starts_with("0x") || value(i).bytes().any(|b| b.is_ascii_alphabetic());
        all.push(match name.as_str() {
            "page" | "pfn" | "block" | "page_number" | "block_number" => "page".to_owned(),
            "offset" | "address" | "addr" | "vaddr" if hex => "offset:hex".into(),
            "offset" | "address" | "addr" | "vaddr" => "offset:bytes".into(),
            "lba" | "sector" | "lbn" => "offset:512".into(),
            name if is_key(name) => "key".into(),
            // A key is a page, whatever its size.
            "size" | "length" | "len" | "bytes" | "sectors" | "pages" if has_key => "_".into(),
            "size" | "length" | "len" | "bytes" => "size:bytes".into(),
            "sectors" => "size:512".into(),
            "pages" => "size:pages".into(),
            "op" | "operation" | "type" | "kind" | "rw" | "iotype" | "io_type" => op(rows, i)?,
            "time" | "timestamp" | "ts" => time(value(i)),
            "file" | "filename" | "path" | "device" | "disk" | "dev" | "volume" | "lun" | "host" => "object".into(),
            "task" | "pid" | "tid" | "comm" | "process" => "task".into(),
            _ => "_".into(),
        });
    }
    Some(all.join(","))
}

fn time(value: &str) -> String {
    let whole = value.split('.').next().and_then(|digits| digits.parse().ok());
    let unit = whole.and_then(unix_time_unit).map_or(1_000_000_000, |(_, unit)| unit);
    format!("time:{}", crate::column_text::time_unit_name(unit))
}

/// Words of reads and writes, if all are known.
fn op(rows: &[Vec<&str>], at: usize) -> Option<String> {
    let words: Option<Vec<String>> = rows.iter().map(|row| Some(row.get(at)?.to_ascii_lowercase())).collect();
    let words = words?;
    let of = |list: &[&'static str]| -> Vec<&'static str> {
        list.iter().copied().filter(|known| words.iter().any(|word| word == known)).collect()
    };
    let (reads, writes) = (of(&READS), of(&WRITES));
    let is_known = |word: &String| reads.contains(&&**word) || writes.contains(&&**word);
    words.iter().all(is_known).then(|| {
        let or = |found: Vec<&'static str>, else_word| if found.is_empty() { vec![else_word] } else { found };
        format!("op={}|{}", or(reads.clone(), READS[0]).join("+"), or(writes.clone(), WRITES[0]).join("+"))
    })
}
