//! Files that are of no known format: what they look like, which format is nearest and why it is
//! not that, and what could read them.

use crate::error::quote;
use crate::format::Format;
use crate::formats;
use crate::input::Input;
use crate::options::OpenOptions;
use crate::record::RecordSource;
use crate::text::words;

/// Lines at the front that are tried.
const TRIED: usize = 64;

/// The formats of lines, in the order in which a tie is decided.
const OF_LINES: [Format; 6] = [Format::Msr, Format::Arc, Format::Plain, Format::Lirs, Format::Lackey, Format::Address];

/// Text has no control characters but white space.
pub(crate) fn is_text(head: &[u8]) -> bool {
    head.iter().all(|b| !b.is_ascii_control() || matches!(b, b'\t' | b'\r' | b'\n'))
}

/// Whether a file may be of a format of lines: one at its front can be read, or it has none there.
/// True of other formats.
pub(crate) fn may_be(head: &[u8], format: Format) -> bool {
    !OF_LINES.contains(&format) || !is_text(head) || lines(head).next().is_none() || readable(head, format) > 0
}

/// How many of the first lines can be read in a format.
fn readable(head: &[u8], format: Format) -> usize {
    lines(head).filter(|(_, line)| tried(line, format).is_ok()).count()
}

/// The first lines that say something, with their numbers. Comments are none of what is looked for.
fn lines(head: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let all = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end).enumerate();
    let says = |line: &[u8]| !line.is_empty() && !line.starts_with(b"#") && line != b"*";
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
    let seen = known_elsewhere(head).map_or(String::new(), |(what, then)| format!(": it looks like {what}, {then}"));
    let is_utf8 = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true);
    if !is_text(head) || !is_utf8 {
        let nearest = match named {
            Some(format) => format!("; nearest is {format}, by its name, but its bytes are not of that"),
            None => "; nearest are bare numbers, which have no mark: u32le, u32be, u64le or u64be with --format".into(),
        };
        return match seen.is_empty() {
            true => format!("format not recognised{nearest}; {}", names()),
            false => format!("format not recognised{seen}; if it is of another format, --format says which"),
        };
    }
    let Some((number, line)) = lines(head).next() else {
        return format!("format not recognised: its front has no line but comments; {}", names());
    };
    let nearest = named.filter(|format| OF_LINES.contains(format)).unwrap_or_else(|| nearest(line));
    let why = tried(line, nearest).err().unwrap_or_else(|| "the lines after it are of another".to_owned());
    let others = OF_LINES.into_iter().filter(|format| *format != nearest && readable(head, *format) > 0);
    let others: Vec<_> = others.map(Format::name).collect();
    let others = match others.is_empty() {
        false => format!("{} could read it (--format)", others.join(", ")),
        true => "a line for each access, its page and then r or w, could be read with --format plain".to_owned(),
    };
    let line = quote(line);
    format!(
        "format not recognised{seen}; nearest is {nearest}, but line {number} is not of that ({line}: {why}); {others}"
    )
}

fn names() -> String {
    format!("say which it is with --format: {}; docs/reference/formats.md has what each is", Format::list())
}

/// The format of lines with as many fields.
fn nearest(line: &[u8]) -> Format {
    let commas = line.iter().filter(|b| **b == b',').count();
    match (commas, words(line).count()) {
        (2.., _) => Format::Msr,
        (_, 4..) => Format::Arc,
        _ => Format::Plain,
    }
}

const UNPACK: &str = "which is to be unpacked: give the file in it";
const NOT_READ: &str = "which is not read";

/// Formats that are not read, by a mark of theirs: what one is, and what to do.
fn known_elsewhere(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if head.get(257..262) == Some(b"ustar") {
        return Some(("a tar archive", UNPACK));
    }
    if head.get(1..4) == Some(b"tae") || head.starts_with(b"eat") {
        return Some(("a binary trace of blktrace", "of which blkparse makes text"));
    }
    if head.starts_with(b"PERFILE2") {
        return Some(("a file of perf record", "of which perf script makes text"));
    }
    if head.starts_with(b"SQLite format 3\0") {
        return Some(("a database of SQLite", "which is no trace"));
    }
    if !is_text(head) {
        return None;
    }
    let line = lines(head).next()?.1;
    let text = std::str::from_utf8(line).ok()?.trim_start();
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    of_fields(&fields).or_else(|| of_words(text)).map(|what| (what, NOT_READ))
}

/// By the fields of a line with commas.
fn of_fields(fields: &[&str]) -> Option<&'static str> {
    let number = |i: usize| fields.get(i).is_some_and(|field| field.parse::<f64>().is_ok());
    let is = |i: usize, any: &[&str]| fields.get(i).is_some_and(|f| any.iter().any(|one| one.eq_ignore_ascii_case(f)));
    let kinds = ["r", "w"];
    match fields.len() {
        5 if number(0) && is(1, &kinds) && number(2) && number(3) => {
            Some("a block trace of Alibaba (device,kind,offset,length,time)")
        }
        5 if number(0) && number(1) && number(2) && is(3, &kinds) => {
            Some("a trace of SPC or UMass (unit,sector,bytes,kind,time)")
        }
        5 if (0..5).all(number) && is(3, &["0", "1"]) => {
            Some("a block trace of Tencent (time,sector,sectors,kind,volume)")
        }
        6 if is(2, &["IOType"]) || (number(0) && number(1) && is(2, &kinds)) => {
            Some("a trace of Systor '17 (time,response,kind,unit,offset,size)")
        }
        7 if number(0)
            && is(5, &["get", "gets", "set", "add", "replace", "cas", "append", "prepend", "delete", "incr"]) =>
        {
            Some("a cache trace of Twitter (time,key,key size,value size,client,kind,ttl)")
        }
        7 if is(3, &["Type"]) || is(4, &["Offset"]) => {
            Some("msr with a line of names, which msr has not: leave it out")
        }
        7 if is(3, &["read", "write"]) => Some("msr in small letters, which has Read and Write"),
        5.. if is(0, &["op_time", "key"]) => Some("a cache trace of Meta"),
        _ => None,
    }
}

/// By the words of a line.
fn of_words(text: &str) -> Option<&'static str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pair =
        |word: &str| word.split_once(',').is_some_and(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok());
    let has = |part: &str| text.contains(part);
    match words.as_slice() {
        [first, _, _, _, ..] if pair(first) => Some("text of blkparse"),
        ["TIME(s)", ..] => Some("output of biosnoop"),
        ["fio", "version", ..] => Some("an iolog of fio"),
        ["base_time_absolute:", ..] => Some("output of DAMON's damo"),
        ["0" | "1" | "2", address] if address.len() > 3 && u64::from_str_radix(address, 16).is_ok() => {
            Some("a trace of Dinero (kind and hexadecimal address)")
        }
        [_, kind, ..] if kind.starts_with("REST.") => Some("a trace of IBM's object store"),
        _ if has("block_rq_") || has("mm_filemap_") || text.starts_with("cpus=") => Some("text of ftrace or trace-cmd"),
        _ if has("page-faults:") || has("cpu/mem-") => Some("text of perf script"),
        _ if has("majfault [") || has("minfault [") => Some("text of perf trace"),
        _ if has("(") && has(") = ") => Some("output of strace"),
        [_, "R" | "W", address] | [_, "R" | "W", address, _] if address.starts_with("0x") || address.len() > 9 => {
            Some("a list of memory accesses of pin or Prospero (number, kind, address)")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(head: &str, named: Option<Format>, parts: &[&str]) {
        let said = about(head.as_bytes(), named);
        assert!(said.starts_with("format not recognised"), "{said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
        assert_eq!(said.lines().count(), 1, "{said}");
    }

    #[test]
    fn regression_text_is_not_blamed_on_a_format_that_it_is_not() {
        let msr = Some(Format::Msr);
        says(
            "419,R,413696,4096,157\n",
            msr,
            &["Alibaba", "nearest is msr, but line 1 is not", "5 fields instead of 7"],
        );
        says("0,nz:u:1,17,120,0,get,0\n", msr, &["Twitter", "neither Read nor Write"]);
        says("0,808,4096,r,0.0\n", msr, &["SPC"]);
        says("15,808,8,0,1283\n", msr, &["Tencent"]);
        says(
            "  8,16   0  1  1.4 5529  Q  R 808 + 8 [app]\n",
            Some(Format::Plain),
            &["blkparse", "page \"8,16\" is not"],
        );
        says("# x\n\nfio version 2 iolog\n", None, &["fio", "line 3"]);
        says("1 2 3 x\n", None, &["nearest is arc", "request number \"x\" is not a number"]);
        says("hello\n", Some(Format::Plain), &["nearest is plain", "its page and then r or w"]);
        says("12 w\n", msr, &["nearest is msr", "plain could read it"]);
        says("# only\n", None, &["no line but comments"]);
    }

    #[test]
    fn bytes_are_told_from_text() {
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(about(&tar, None).contains("a tar archive, which is to be unpacked: give the file in it"));
        assert!(about(&[0; 100], None).contains("bare numbers, which have no mark: u32le"));
        assert!(about(&[1; 100], Some(Format::Vscsi)).contains("nearest is vscsi, by its name"));
        assert!(about(b"\x07tae\0", None).contains("of which blkparse makes text"));
    }
}
