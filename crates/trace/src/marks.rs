//! Formats that are told by marks which no other file has: a magic, a line of names, a line of a
//! tool. A file that merely has the shape of a format is named by `foreign`, and not read unasked.

use crate::columns::Columns;
use crate::format::Format;
use crate::formats::{biosnoop, blkparse, blktrace, drcachesim_view, events, io_tracer, perf_trace, strace};
use crate::unknown::is_text;

/// Lines at the front that are looked at.
const LOOKED_AT: usize = 64;

/// A format and how it is read.
pub(crate) enum Mark {
    /// By a reader of its own.
    Format(Format),
    /// As columns.
    Columns(Columns),
}

/// First lines and the columns below them.
const NAMES: [(&str, &str); 6] = [
    ("fio version 2 iolog", "fio-iolog-2"),
    ("fio version 3 iolog", "fio-iolog-3"),
    ("Timestamp,Response,IOType,LUN,Offset,Size", "systor"),
    ("op_time,key,key_size,op,op_count,", "meta-kv-2022"),
    ("key,op,size,op_count,", "meta-kv"),
    ("time,obj_id,obj_size", "libcachesim-csv"),
];

/// The comment on top of libCacheSim's csv with operations.
const LIBCACHESIM: (&str, &str) = ("# timestamp (ms), op, id, size", "time:ms,_,key,_");

/// The format of a mark.
pub(crate) fn of(head: &[u8]) -> Option<Mark> {
    if blktrace::looks_like(head) {
        return Some(Mark::Format(Format::Blktrace));
    }
    if !is_text(head) {
        return None;
    }
    let mut all = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty());
    let first = std::str::from_utf8(all.clone().next()?).ok()?;
    if let Some((_, name)) = NAMES.iter().find(|(line, _)| first.starts_with(line)) {
        return Columns::named(name).map(Mark::Columns);
    }
    if first.starts_with(LIBCACHESIM.0) {
        let columns = Columns::new(LIBCACHESIM.1, ",", 0).ok()?;
        return Some(Mark::Columns(Columns { seen: Some(crate::seen::Seen::Objects), ..columns }));
    }
    if drcachesim_view::is_header(first.as_bytes()) {
        return Some(Mark::Format(Format::DrcachesimView));
    }
    all.by_ref().take(LOOKED_AT).find_map(of_line).map(Mark::Format)
}

/// The format of a line.
fn of_line(line: &[u8]) -> Option<Format> {
    match () {
        () if biosnoop::is_header(line) => Some(Format::Biosnoop),
        () if blkparse::looks_like(line) => Some(Format::Blkparse),
        () if events::looks_like(line) => Some(Format::Events),
        () if perf_trace::looks_like(line) => Some(Format::PerfTrace),
        () if io_tracer::looks_like(line) => Some(Format::IoTracer),
        () if strace::looks_like(line) => Some(Format::Strace),
        () => None,
    }
}
