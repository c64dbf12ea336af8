//! Formats of others that are not read, by their marks: what a file is, and how its accesses could
//! be written so that they are read.

use crate::formats::events;
use crate::text::is_address_and_kind;

/// A format that is not read.
pub(crate) struct UnreadFormat {
    /// Description of the kind of file.
    pub(crate) what: &'static str,
    pub(crate) then: Remedy,
}

/// Advice: what to do.
#[derive(Clone, Copy)]
pub(crate) enum Remedy {
    Advice(&'static str),
    /// A name of `--format` that reads it.
    Named(&'static str),
    /// Columns that read it, with commas between fields.
    Described(&'static str),
}

const UNPACK: &str = "which is to be unpacked: give the file in it";
const NO_TRACE: &str = "which is no trace";
const KEYS: &str = "which is not read; keys are, written as plain: a number for each, one a line";
const EVENTS: &str = "which has no event that is read: filemap and block events, page faults and sys_enter_pread64 are; \
                      refault record makes recordings of the page cache";
const SAMPLES: &str = "which is one access in thousands, so that no replay follows from it; lackey, drmemtrace and \
                       drcachesim's view have all, and refault record --touches samples accessed bits";
const REGIONS: &str = "which has counts of regions and intervals, and no order of accesses in them, so that it cannot be \
                       replayed; refault record --touches samples accessed bits page by page";

fn foreign(what: &'static str, then: &'static str) -> Option<UnreadFormat> {
    Some(UnreadFormat { what, then: Remedy::Advice(then) })
}

fn named(what: &'static str, format: &'static str) -> Option<UnreadFormat> {
    Some(UnreadFormat { what, then: Remedy::Named(format) })
}

fn described(what: &'static str, columns: &'static str) -> Option<UnreadFormat> {
    Some(UnreadFormat { what, then: Remedy::Described(columns) })
}

/// The format of the front of a file, if it is known and not read. `lines` are the first ones that
/// say something; none: it is no text.
pub(crate) fn of(head: &[u8], lines: Option<&[&[u8]]>) -> Option<UnreadFormat> {
    if head.get(1..4) == Some(b"tae") || head.starts_with(b"eat") {
        return foreign("a binary trace of blktrace", "which --format blktrace reads");
    }
    let marks: [(&[u8], &str, &str); 12] = [
        (b"PERFILE2", "a file of perf record", "of which perf script makes text"),
        (b"SQLite format 3\0", "a database of SQLite", NO_TRACE),
        (b"tracing", "a file of trace-cmd", "of which trace-cmd report makes text"),
        (b"BZh", "data of bzip2", UNPACK),
        (b"7z\xbc\xaf", "an archive of 7-Zip", UNPACK),
        (b"\x04\x22\x4d\x18", "data of lz4", UNPACK),
        (b"\x7fELF", "a program", NO_TRACE),
        (b"%PDF", "a PDF", NO_TRACE),
        (b"\x89PNG", "a picture", NO_TRACE),
        (b"\xff\xfe", "text in UTF-16", "which is to be UTF-8: iconv -f UTF-16 -t UTF-8"),
        (b"\xfe\xff", "text in UTF-16", "which is to be UTF-8: iconv -f UTF-16 -t UTF-8"),
        (b"ARROW1", "a file of Arrow", "which is not read; Parquet is"),
    ];
    let is_tracing = |mark: &[u8]| mark != b"tracing" || head.starts_with(b"\x17\x08\x44tracing");
    let bare = head.strip_prefix(b"\x17\x08\x44").unwrap_or(head);
    if let Some((_, what, then)) = marks.iter().find(|(mark, ..)| bare.starts_with(mark) && is_tracing(mark)) {
        return foreign(what, then);
    }
    let lines = lines?;
    of_comments(head).or_else(|| {
        // A line of names says little: the one behind it is looked at, too.
        let two = || lines.iter().take(2).filter_map(|line| std::str::from_utf8(line).ok());
        two().find_map(|line| {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let words: Vec<&str> = line.split_whitespace().collect();
            of_fields(&fields, line).or_else(|| of_words(&words, line))
        })
    })
}

/// The format of lines whose fields are those, whatever stands between them.
pub(crate) fn of_split(fields: &[&str]) -> Option<UnreadFormat> {
    of_words(fields, "").or_else(|| of_fields(fields, ""))
}

/// Format by what stands in comments.
fn of_comments(head: &[u8]) -> Option<UnreadFormat> {
    let first = head.split(|b| *b == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    match std::str::from_utf8(first).ok()?.trim() {
        line if line.starts_with("# timestamp") && line.contains("op, id, size") => {
            described("a csv of libCacheSim", "time:ms,_,key,_")
        }
        line if line.starts_with("# tracer:") => foreign("text of ftrace or trace-cmd", EVENTS),
        line if line.starts_with("# Overhead") || line.starts_with("# To display the perf") => {
            foreign("a report of perf", "which has no accesses")
        }
        _ => None,
    }
}

/// Format by the fields of a line; `line` is the whole line, if its fields are separated as there.
fn of_fields(fields: &[&str], line: &str) -> Option<UnreadFormat> {
    let number = |i: usize| fields.get(i).is_some_and(|field| field.parse::<f64>().is_ok());
    let is = |i: usize, any: &[&str]| fields.get(i).is_some_and(|f| any.iter().any(|one| one.eq_ignore_ascii_case(f)));
    let kinds = ["r", "w"];
    let caches = ["get", "gets", "set", "add", "replace", "cas", "append", "prepend", "delete", "incr", "decr"];
    match fields.len() {
        3.. if is(0, &["time", "timestamp"]) && is(1, &["obj_id", "object_id", "id", "key"]) => {
            named("a csv of a cache (time, id, size)", "libcachesim-csv")
        }
        6.. if (0..fields.len()).all(number) && is(2, &["0", "1", "2"]) && line.contains(", ") => {
            named("a log of fio with offsets (time, value, direction, block size, offset)", "fio-log")
        }
        4 | 5 if (0..fields.len()).all(number) && is(2, &["0", "1", "2"]) && line.contains(", ") => foreign(
            "a log of fio (time, value, direction, block size)",
            "which says how long requests took, not of what; with log_offset=1 it says that",
        ),
        5 if number(0) && !fields[0].contains('.') && is(1, &kinds) && number(2) && number(3) => {
            named("a block trace of Alibaba (device,kind,offset,length,time)", "alibaba")
        }
        5 if number(0) && number(1) && number(2) && is(3, &kinds) => {
            named("a trace of SPC or UMass (unit,sector,bytes,kind,time)", "spc")
        }
        5 if (0..5).all(number) && is(3, &["0", "1"]) => {
            named("a block trace of Tencent (time,sector,sectors,kind,volume)", "tencent")
        }
        6 if is(2, &["IOType"]) || (number(0) && number(1) && is(2, &kinds)) => {
            named("a trace of Systor '17 (time,response,kind,unit,offset,size)", "systor")
        }
        7 if number(0) && is(5, &caches) => {
            named("a cache trace of Twitter (time,key,key size,value size,client,kind,ttl)", "twitter")
        }
        5.. if is(0, &["op_time"]) && is(1, &["key"]) && is(3, &["op"]) => {
            named("a cache trace of Meta", "meta-kv-2022")
        }
        5.. if is(0, &["key"]) && is(1, &["op"]) => named("a cache trace of Meta", "meta-kv"),
        _ => None,
    }
}

/// Format by the words of a line.
fn of_words(words: &[&str], line: &str) -> Option<UnreadFormat> {
    let whole = |word: &str| word.parse::<u64>().is_ok();
    let pair = |word: &str| word.split_once(',').is_some_and(|(a, b)| whole(a) && whole(b));
    let hexadecimal = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).is_ok();
    let has = |part: &str| line.contains(part);
    match words {
        [first, _, _, _, ..] if pair(first) => named("text of blkparse", "blkparse"),
        ["TIME(s)", ..] => named("output of biosnoop", "biosnoop"),
        [time, _, pid, _, "R" | "W", sector, bytes, _]
            if time.contains('.') && [pid, sector, bytes].iter().all(|w| whole(w)) =>
        {
            named("output of biosnoop", "biosnoop")
        }
        ["fio", "version", "3", ..] => named("an iolog of fio, version 3", "fio-iolog-3"),
        ["fio", "version", "2", ..] => named("an iolog of fio, version 2", "fio-iolog-2"),
        ["fio", "version", ..] => foreign("an iolog of fio", "of which versions 2 and 3 are read"),
        ["base_time_absolute:", ..] => foreign("output of DAMON's damo", REGIONS),
        ["RES", "PAGES", "SIZE", "FILE"] => foreign(
            "output of fincore",
            "which says how much is in memory, and of no accesses; refault record sees them",
        ),
        [time, "R" | "W", sector, count, flags]
            if time.contains('.') && [sector, count, flags].iter().all(|w| whole(w)) =>
        {
            named("a block trace of CAMELab (time, kind, sector, sectors, latency)", "camelab")
        }
        [time, device, sector, sectors, "0" | "1"] if [time, device, sector, sectors].iter().all(|w| whole(w)) => {
            named("a trace of MQSim (time, device, sector, sectors, kind)", "mqsim")
        }
        [time, pid, _, sector, sectors, "R" | "W" | "r" | "w", ..]
            if [time, pid, sector, sectors].iter().all(|w| whole(w)) =>
        {
            named("a block trace of FIU (time, pid, process, sector, sectors, kind)", "fiu")
        }
        ["0" | "1" | "2", address] if address.len() > 3 && hexadecimal(address) => {
            named("a trace of Dinero (kind and hexadecimal address)", "dinero")
        }
        [_, kind, ..] if kind.starts_with("REST.") => named("a trace of IBM's object store", "ibm-cos"),
        _ if has("block_rq_") || has("mm_filemap_") || line.starts_with("cpus=") => {
            foreign("text of ftrace or trace-cmd", EVENTS)
        }
        _ if has("cpu/mem-") || has("cpu_core/mem-") || has(" ldlat=") => foreign("samples of perf mem", SAMPLES),
        _ if has("page-faults:") => foreign("text of perf script", EVENTS),
        _ if has("majfault [") || has("minfault [") => named("text of perf trace -F", "perf-trace"),
        _ if has("(") && has(") = ") => named("output of strace", "strace"),
        [address, kind] if is_address_and_kind(address.as_bytes(), kind.as_bytes()) => {
            named("a trace of Ramulator (address, R or W; if numbers are pages: --format plain)", "ramulator")
        }
        _ if has("\"GET /") || has("\"POST /") || has("\"HEAD /") => foreign("a log of a web server", KEYS),
        [_, "R" | "W", address, _] if address.len() > 9 => {
            named("a trace of Prospero (number, kind, address, size)", "prospero")
        }
        [_, "R" | "W", address] if address.starts_with("0x") || address.len() > 9 => {
            named("output of pinatrace (instruction, kind, address)", "pinatrace")
        }
        _ if events::is_event(line.as_bytes()) => foreign("text of perf script or ftrace", EVENTS),
        [first, ..] if first.starts_with('{') || first.starts_with('[') => {
            foreign("JSON", "which is not read as a trace")
        }
        [first, ..] if first.starts_with('<') => foreign("HTML or XML", NO_TRACE),
        _ => None,
    }
}
