//! Accesses of a phase: streams over objects.

use super::MAX_PAGES;
use super::objects::DeclaredObject;
use super::read::{Field, Result, Section};
use super::types::{AccessPattern, Action, Share, StreamSpec, Sync};
use refault_mm::AccessAdvice;
use refault_trace::{ObjectKind, Via};

/// The keys of a stream, which a phase with one stream has itself.
pub(super) const STREAM_KEYS: [&str; 21] = [
    "read",
    "write",
    "object",
    "page_out",
    "drop",
    "write_share",
    "renew",
    "pattern",
    "skew",
    "permute",
    "sigma",
    "via",
    "sync",
    "block",
    "advice",
    "from",
    "size",
    "start",
    "share",
    "times",
    "weight",
];
/// The keys that name an object, and so say what is done with it.
const VERBS: [&str; 5] = ["read", "write", "object", "page_out", "drop"];
/// The keys that only accesses have.
const ACCESS_KEYS: [&str; 5] = ["write_share", "renew", "via", "advice", "sync"];
const MAX_STREAMS: usize = 64;
const MAX_TIMES: u32 = 1000;
const MAX_BLOCK: u64 = 1 << 16;
/// Pages that a walk over memory takes at once: a page table.
const WALK_PAGES: u64 = 512;

/// The streams of a phase: itself, or its list; none: it sleeps.
pub(super) fn streams(s: &Section<'_>, count: u32, objects: &[DeclaredObject<'_>]) -> Result<Vec<StreamSpec>> {
    let inline = STREAM_KEYS.iter().find_map(|key| s.get(key));
    let Some(list) = s.get("stream") else {
        return inline.map_or(Ok(Vec::new()), |_| Ok(vec![stream(s, count, objects)?]));
    };
    if let Some(field) = inline {
        return Err(field.error("the phase has a list of streams; write this in one of them"));
    }
    let sections = list.sections(&STREAM_KEYS, MAX_STREAMS)?;
    let streams = sections.iter().map(|s| stream(s, count, objects)).collect::<Result<Vec<_>>>()?;
    if streams.iter().all(|stream| stream.weight == 0.0) {
        return Err(list.error("no stream has a weight above 0"));
    }
    Ok(streams)
}

fn stream(s: &Section<'_>, count: u32, objects: &[DeclaredObject<'_>]) -> Result<StreamSpec> {
    let (key, field) = verb(s)?;
    let index = field.index("an object", objects.iter().map(|o| o.spec.name.as_str()))?;
    let object = &objects[index].spec;
    let action = action(key, &field, s, object.kind)?;
    let [least_pages, used] = used(s, object.pages)?;
    let walks = matches!(action, Action::Drop | Action::PageOut);
    let default_block = if walks { WALK_PAGES.min(least_pages) } else { 1 };
    let block_pages = s.or("block", default_block, |f| f.pages(1..=MAX_BLOCK))?;
    if let (true, Some(field)) = (least_pages < block_pages, s.get("block")) {
        return Err(field.bad(&format!("is more than what is used of the object, {least_pages} pages")));
    }
    let shares =
        [("same", Share::Same), ("split", Share::Split), ("staggered", Share::Staggered), ("queue", Share::Queue)];
    let stream = StreamSpec {
        object: index,
        action,
        pattern: pattern(s)?,
        weight: s.or("weight", 1.0, |f| f.float(0.0..=1e9))?,
        via: via(key, s, object.kind)?,
        sync: sync(s, action, object.kind)?,
        write_share: write_share(key, &field, s)?,
        block_pages: block_pages as u32,
        advice: s.or("advice", AccessAdvice::Normal, |f| f.choice(&AccessAdvice::ALL))?,
        first_page: s.or("from", 0, |f| f.pages(0..=MAX_PAGES))?,
        pages: used,
        least_pages,
        start_page: s.or("start", 0, |f| f.pages(0..=least_pages - 1))?,
        share: s.or("share", Share::Same, |f| f.choice(&shares))?,
        times: s.or("times", 1, |f| f.int(1u32..=MAX_TIMES))?,
    };
    shared(&stream, s, count, object.private)?;
    Ok(stream)
}

/// Checks how the copies of a task divide what is used.
fn shared(stream: &StreamSpec, s: &Section<'_>, count: u32, private: bool) -> Result<()> {
    if let (true, Some(start)) = (stream.pattern != AccessPattern::Sequential, s.get("start")) {
        return Err(start.error("only sequential readers have a place to start"));
    }
    let slice = stream.least_pages / if stream.share == Share::Split { u64::from(count) } else { 1 };
    if let (true, Some(start)) = (stream.start_page > 0 && stream.start_page >= slice, s.get("start")) {
        return Err(start.error(format!("is beyond the slice of a copy, {slice} pages")));
    }
    let what = match stream.share {
        Share::Same => return Ok(()),
        _ if private => "the copies have instances of their own; leave it out",
        _ if stream.least_pages < stream.pages => "copies cannot share what has a size drawn by each",
        Share::Staggered | Share::Queue if stream.pattern != AccessPattern::Sequential => {
            "only sequential readers have a place to start"
        }
        Share::Split if slice < u64::from(stream.block_pages) => "the slice of a copy is smaller than a block",
        _ => return Ok(()),
    };
    Err(s.get("share").map_or_else(|| s.error(what), |f| f.error(what)))
}

/// The key that names the object.
fn verb<'s>(s: &Section<'s>) -> Result<(&'static str, Field<'s>)> {
    let mut given = VERBS.iter().filter_map(|key| Some((*key, s.get(key)?)));
    let Some(first) = given.next() else {
        return Err(s.error("no object is named; write read = \"...\", write = \"...\" or object = \"...\""));
    };
    match given.next() {
        Some(_) => Err(first.1.error("a stream has one object; write read, write, object, page_out or drop")),
        None => Ok(first),
    }
}

fn action(key: &str, field: &Field<'_>, s: &Section<'_>, kind: ObjectKind) -> Result<Action> {
    let action = match key {
        "page_out" => Action::PageOut,
        "drop" => Action::Drop,
        _ if s.or("renew", false, Field::boolean)? => Action::Renew,
        _ if is_direct(s)? => Action::Direct,
        _ => return Ok(Action::Access),
    };
    let makes_accesses = matches!(action, Action::Renew | Action::Direct);
    let foreign = ACCESS_KEYS.iter().find_map(|key| s.get(key)).filter(|_| !makes_accesses);
    match foreign {
        _ if action == Action::Direct && kind == ObjectKind::Anon => {
            Err(field.bad("is anonymous memory; only files are accessed past the page cache"))
        }
        _ if matches!(action, Action::PageOut | Action::Renew) && kind != ObjectKind::Anon => {
            Err(field.bad("is a file; only anonymous memory is paged out or renewed"))
        }
        Some(foreign) => Err(foreign.error(format!("is of accesses; {key} makes none"))),
        None => Ok(action),
    }
}

/// Whether the page cache is passed by.
fn is_direct(s: &Section<'_>) -> Result<bool> {
    Ok(s.opt("via", Field::text)? == Some("direct"))
}

/// Calls after each block that was written.
fn sync(s: &Section<'_>, action: Action, kind: ObjectKind) -> Result<Sync> {
    let Some(field) = s.get("sync") else { return Ok(Sync::None) };
    let is_map = s.opt("via", Field::text)? == Some("map");
    if action != Action::Access || kind != ObjectKind::File || is_map || !(s.has("write") || s.has("write_share")) {
        return Err(field.error("is for files that are written by descriptor; leave it out"));
    }
    field.choice(&[("none", Sync::None), ("fsync", Sync::Fsync), ("sync_file_range", Sync::SyncFileRange)])
}

/// The share of writes.
fn write_share(key: &str, field: &Field<'_>, s: &Section<'_>) -> Result<f64> {
    match (key, s.get("write_share")) {
        ("object", Some(share)) => share.float(0.0..=1.0),
        ("object", None) => {
            Err(field.error("is read or written? write write_share = 0.5, or read or write for object"))
        }
        (_, Some(share)) => Err(share.error(format!("{key} says it already; write object for {key}"))),
        (_, None) => Ok(if key == "write" { 1.0 } else { 0.0 }),
    }
}

/// Pages of an object that are used: the least and the most.
fn used(s: &Section<'_>, pages: u64) -> Result<[u64; 2]> {
    let first = s.or("from", 0, |f| f.pages(0..=MAX_PAGES))?;
    if let (true, Some(from)) = (first >= pages, s.get("from")) {
        return Err(from.bad(&format!("is beyond the end of the object, which has {pages} pages")));
    }
    let rest = pages.saturating_sub(first);
    let used = s.or("size", [rest; 2], |f| f.pages_or_range(1..=MAX_PAGES))?;
    match s.get("size") {
        Some(size) if used[1] > rest => Err(size.bad(&format!("is more than the object has from there, {rest} pages"))),
        _ => Ok(used),
    }
}

/// Anonymous memory that is read by descriptor is a file in tmpfs.
fn via(key: &str, s: &Section<'_>, kind: ObjectKind) -> Result<Via> {
    let default = if kind == ObjectKind::File { Via::Fd } else { Via::Map };
    let via = s.or("via", default, |f| f.choice(&[("fd", Via::Fd), ("map", Via::Map), ("direct", Via::Fd)]))?;
    match (kind, via, s.get("via")) {
        (ObjectKind::Anon, Via::Fd, Some(field)) if key != "read" => {
            Err(field.bad("is for files, and for read of anonymous memory, as of a file in tmpfs; leave it out"))
        }
        _ => Ok(via),
    }
}

fn pattern(s: &Section<'_>) -> Result<AccessPattern> {
    let zipf = AccessPattern::Zipf { skew: 1.0, permute: true };
    let normal = AccessPattern::Normal { sigma: 0.25 };
    let names = [
        ("sequential", AccessPattern::Sequential),
        ("uniform", AccessPattern::Uniform),
        ("zipf", zipf),
        ("normal", normal),
    ];
    let pattern = s.or("pattern", AccessPattern::Sequential, |f| f.choice(&names))?;
    if pattern == normal {
        if let Some(field) = s.get("skew").or(s.get("permute")) {
            return Err(field.error("is only for pattern = \"zipf\""));
        }
        return Ok(AccessPattern::Normal { sigma: s.or("sigma", 0.25, |f| f.float(1e-6..=100.0))? });
    }
    if let Some(field) = s.get("sigma") {
        return Err(field.error("is only for pattern = \"normal\""));
    }
    if pattern == zipf {
        let skew = s.or("skew", 1.0, |f| f.float(0.0..=32.0))?;
        return Ok(AccessPattern::Zipf { skew, permute: s.or("permute", true, Field::boolean)? });
    }
    match s.get("skew").or(s.get("permute")) {
        Some(field) => Err(field.error("is only for pattern = \"zipf\"")),
        None => Ok(pattern),
    }
}
