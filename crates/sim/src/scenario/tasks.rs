//! Tasks, their phases, and what a phase accesses.

use super::objects::{Declared, memcg};
use super::read::{Field, Result, Section};
use super::types::{Burst, DeviceSpec, MemcgSpec, Pattern, PhaseSpec, Share, StreamSpec, TaskSpec, TraceSpec, Until};
use super::units::MAX_TIME_NS;
use super::{MAX_PAGES, MAX_TASKS};
use refault_trace::{ObjectKind, Via};

const TASK_KEYS: [&str; 10] =
    ["name", "count", "memcg", "start", "stagger", "after", "phase", "trace", "background", "oom_score_adj"];
const STREAM_KEYS: [&str; 15] = [
    "read",
    "write",
    "object",
    "write_share",
    "pattern",
    "skew",
    "permute",
    "via",
    "block",
    "advice",
    "from",
    "size",
    "start",
    "share",
    "weight",
];
const UNTIL_KEYS: [&str; 6] = ["accesses", "amount", "ops", "passes", "duration", "until"];
const PACE_KEYS: [&str; 5] = ["think", "cpu", "accesses_per_op", "rate", "burst"];
const PHASE_KEYS: [&str; 3] = ["name", "measured", "stream"];
const MAX_PHASES: usize = 256;
const MAX_STREAMS: usize = 64;
/// No phase has more accesses.
const MAX_ACCESSES: u64 = 1 << 53;
const MAX_BLOCK: u64 = 1 << 16;

/// Everything that tasks refer to.
struct Names<'a, 's> {
    tasks: Vec<String>,
    objects: &'a [Declared<'s>],
    memcgs: &'a [MemcgSpec],
    devices: &'a [DeviceSpec],
}

pub(super) fn tasks<'s>(
    field: &Field<'s>,
    objects: &[Declared<'s>],
    memcgs: &[MemcgSpec],
    devices: &[DeviceSpec],
) -> Result<Vec<(TaskSpec, Section<'s>)>> {
    let sections = field.sections(&TASK_KEYS, MAX_TASKS as usize)?;
    if sections.is_empty() {
        return Err(field.error("there is no task; write [[task]]"));
    }
    let mut names = Names { tasks: Vec::new(), objects, memcgs, devices };
    let mut total = 0;
    for s in &sections {
        let field = s.need("name", "name = \"...\"")?;
        let name = field.name()?;
        if names.tasks.contains(&name) {
            return Err(field.bad("is the name of two tasks"));
        }
        names.tasks.push(name);
        total += s.or("count", 1, |f| f.int(1..=MAX_TASKS))?;
        if total > MAX_TASKS {
            return Err(s.error(format!("there are more than {MAX_TASKS} tasks, copies counted")));
        }
    }
    sections.into_iter().enumerate().map(|(i, s)| Ok((task(&names.tasks[i], &s, &names)?, s))).collect()
}

fn task(name: &str, s: &Section<'_>, names: &Names<'_, '_>) -> Result<TaskSpec> {
    let count = s.or("count", 1, |f| f.int(1..=MAX_TASKS))?;
    let keys: Vec<_> = [&PHASE_KEYS[..], &STREAM_KEYS, &UNTIL_KEYS, &PACE_KEYS].concat();
    let trace = s.opt("trace", |f| trace(f, names.devices))?;
    let phases = match (&trace, s.get("phase")) {
        (Some(_), Some(field)) => return Err(field.error("a task replays a trace or has phases, not both")),
        (Some(_), None) => vec![whole_trace()],
        (None, _) => {
            let field = s.need("phase", "[[task.phase]]")?;
            let phases = field.sections(&keys, MAX_PHASES)?;
            if phases.is_empty() {
                return Err(field.error("there is no phase; write [[task.phase]]"));
            }
            phases.iter().map(|p| phase(p, count, names)).collect::<Result<_>>()?
        }
    };
    Ok(TaskSpec {
        name: name.to_owned(),
        count,
        memcg: s.opt("memcg", |f| memcg(f, names.memcgs))?.flatten(),
        start_ns: s.or("start", 0, |f| f.time(0..=MAX_TIME_NS))?,
        trace,
        stagger_ns: s.or("stagger", 0, |f| f.time(0..=MAX_TIME_NS / u64::from(MAX_TASKS)))?,
        after: s.opt("after", |f| f.index("a task", names.tasks.iter().map(String::as_str)))?,
        phases,
        background: s.or("background", false, Field::boolean)?,
        oom_score_adj: s.or("oom_score_adj", 0, |f| f.int(-1000..=1000))?,
    })
}

/// The trace that a task replays.
fn trace(field: &Field<'_>, devices: &[DeviceSpec]) -> Result<TraceSpec> {
    let s = field.section(&["file", "device", "timed", "advice"])?;
    Ok(TraceSpec {
        path: s.need("file", "trace = { file = \"...\" }")?.text()?.into(),
        device: s.opt("device", |f| f.index("a device", devices.iter().map(|d| d.name.as_str())))?,
        timed: s.or("timed", false, Field::boolean)?,
        random_advice: s.or("advice", false, |f| f.choice(&[("normal", false), ("random", true)]))?,
    })
}

/// The phase of a task that replays a trace: all of it.
fn whole_trace() -> PhaseSpec {
    PhaseSpec {
        name: None,
        streams: Vec::new(),
        until: Until::End,
        measured: true,
        think_ns: 0,
        cpu_ns: 0,
        accesses_per_op: 1,
        rate_per_s: None,
        burst: None,
    }
}

fn phase(s: &Section<'_>, count: u32, names: &Names<'_, '_>) -> Result<PhaseSpec> {
    let streams = streams(s, count, names)?;
    if streams.is_empty()
        && let Some(field) = PACE_KEYS.iter().chain(&["accesses", "amount", "ops", "passes"]).find_map(|k| s.get(k))
    {
        return Err(field.error("a phase that accesses nothing only sleeps; write read = \"...\", or leave this out"));
    }
    let block = streams.iter().map(|stream| stream.block_pages).max().unwrap_or(1);
    let accesses_per_op = s.or("accesses_per_op", block, |f| f.int(1..=1 << 24))?;
    Ok(PhaseSpec {
        name: s.opt("name", Field::name)?,
        until: until(s, &streams, count, accesses_per_op)?,
        streams,
        measured: s.or("measured", true, Field::boolean)?,
        think_ns: s.or("think", 0, |f| f.time(0..=MAX_TIME_NS))?,
        cpu_ns: s.or("cpu", 0, |f| f.time(0..=MAX_TIME_NS))?,
        accesses_per_op,
        rate_per_s: s.opt("rate", Field::per_s)?,
        burst: s.opt("burst", burst)?,
    })
}

fn burst(field: &Field<'_>) -> Result<Burst> {
    let s = field.section(&["on", "off"])?;
    Ok(Burst {
        on_ns: s.need("on", "burst = { on = \"1s\", off = \"4s\" }")?.time(1..=MAX_TIME_NS)?,
        off_ns: s.need("off", "burst = { on = \"1s\", off = \"4s\" }")?.time(1..=MAX_TIME_NS)?,
    })
}

fn until(s: &Section<'_>, streams: &[StreamSpec], count: u32, accesses_per_op: u32) -> Result<Until> {
    let mut given = UNTIL_KEYS.iter().filter_map(|key| Some((*key, s.get(key)?)));
    let Some((key, field)) = given.next() else {
        return Ok(Until::End);
    };
    if let Some((other, _)) = given.next() {
        return Err(field.error(format!("a phase ends in one way; write {key} or {other}")));
    }
    Ok(match key {
        "accesses" => Until::Accesses(field.int(1..=MAX_ACCESSES)?),
        "amount" => Until::Accesses(field.pages(1..=MAX_ACCESSES)?),
        "ops" => {
            let ops = field.int(1..=MAX_ACCESSES)?;
            let accesses = ops.checked_mul(accesses_per_op.into()).filter(|n| *n <= MAX_ACCESSES);
            Until::Accesses(accesses.ok_or_else(|| field.bad("operations are more than 2^53 accesses"))?)
        }
        "passes" => Until::Accesses(passes(&field, streams, count)?),
        "duration" => Until::Duration(field.time(1..=MAX_TIME_NS)?),
        _ => match field.text() {
            Ok("end") => Until::End,
            _ => Until::Time(field.time(1..=MAX_TIME_NS)?),
        },
    })
}

fn passes(field: &Field<'_>, streams: &[StreamSpec], count: u32) -> Result<u64> {
    let [stream] = streams else {
        return Err(field.error("passes are of one object; with several streams write accesses, ops or duration"));
    };
    let passes = field.float(1e-6..=1e9)?;
    let parts = if matches!(stream.share, Share::Split | Share::Queue) { f64::from(count) } else { 1.0 };
    let accesses = (passes * stream.pages as f64 / parts).round().max(1.0);
    match accesses <= MAX_ACCESSES as f64 {
        true => Ok(accesses as u64),
        false => Err(field.bad("passes are more than 2^53 accesses")),
    }
}

fn streams(s: &Section<'_>, count: u32, names: &Names<'_, '_>) -> Result<Vec<StreamSpec>> {
    let inline = STREAM_KEYS.iter().find_map(|key| s.get(key));
    let Some(list) = s.get("stream") else {
        return inline.map_or(Ok(Vec::new()), |_| Ok(vec![stream(s, count, names)?]));
    };
    if let Some(field) = inline {
        return Err(field.error("the phase has a list of streams; write this in one of them"));
    }
    let sections = list.sections(&STREAM_KEYS, MAX_STREAMS)?;
    let streams = sections.iter().map(|s| stream(s, count, names)).collect::<Result<Vec<_>>>()?;
    if streams.iter().all(|stream| stream.weight == 0.0) {
        return Err(list.error("no stream has a weight above 0"));
    }
    Ok(streams)
}

fn stream(s: &Section<'_>, count: u32, names: &Names<'_, '_>) -> Result<StreamSpec> {
    let (field, write_share) = object(s)?;
    let index = field.index("an object", names.objects.iter().map(|o| o.spec.name.as_str()))?;
    let object = &names.objects[index].spec;
    let block_pages = s.or("block", 1, |f| f.pages(1..=MAX_BLOCK))?;
    let (first_page, pages) = part(s, object.pages, block_pages)?;
    let shares =
        [("same", Share::Same), ("split", Share::Split), ("staggered", Share::Staggered), ("queue", Share::Queue)];
    let stream = StreamSpec {
        object: index,
        pattern: pattern(s)?,
        weight: s.or("weight", 1.0, |f| f.float(0.0..=1e9))?,
        via: via(s, object.kind)?,
        write_share,
        block_pages: block_pages as u32,
        random_advice: s.or("advice", false, |f| f.choice(&[("normal", false), ("random", true)]))?,
        first_page,
        pages,
        start_page: s.or("start", 0, |f| f.pages(0..=pages - 1))?,
        share: s.or("share", Share::Same, |f| f.choice(&shares))?,
    };
    if let (true, Some(start)) = (stream.pattern != Pattern::Sequential, s.get("start")) {
        return Err(start.error("only sequential readers have a place to start"));
    }
    let slice = if stream.share == Share::Split { pages / u64::from(count) } else { pages };
    if let (true, Some(start)) = (stream.start_page > 0 && stream.start_page >= slice, s.get("start")) {
        return Err(start.error(format!("is beyond the slice of a copy, {slice} pages")));
    }
    let what = match stream.share {
        Share::Same => return Ok(stream),
        _ if object.private => "the copies have instances of their own; leave it out",
        Share::Staggered | Share::Queue if stream.pattern != Pattern::Sequential => {
            "only sequential readers have a place to start"
        }
        Share::Split if pages / u64::from(count) < block_pages => "the slice of a copy is smaller than a block",
        _ => return Ok(stream),
    };
    Err(s.get("share").map_or_else(|| s.error(what), |f| f.error(what)))
}

/// The object that a stream names in one of three ways, and the share of writes.
fn object<'s>(s: &Section<'s>) -> Result<(Field<'s>, f64)> {
    let mut given = ["read", "write", "object"].iter().filter_map(|key| Some((*key, s.get(key)?)));
    let Some((key, field)) = given.next() else {
        return Err(s.error("no object is named; write read = \"...\", write = \"...\" or object = \"...\""));
    };
    if given.next().is_some() {
        return Err(field.error("a stream has one object; write read, write or object"));
    }
    match (key, s.get("write_share")) {
        ("read", None) => Ok((field, 0.0)),
        ("write", None) => Ok((field, 1.0)),
        ("object", Some(share)) => Ok((field, share.float(0.0..=1.0)?)),
        ("object", None) => {
            Err(field.error("is read or written? write write_share = 0.5, or read or write for object"))
        }
        (_, Some(share)) => Err(share.error(format!("{key} says it already; write object for {key}"))),
        _ => Err(field.error("names no object")),
    }
}

/// The part of an object that is used: its first page and the number of pages.
fn part(s: &Section<'_>, pages: u64, block: u64) -> Result<(u64, u64)> {
    let first = s.or("from", 0, |f| f.pages(0..=MAX_PAGES))?;
    if let (true, Some(from)) = (first >= pages, s.get("from")) {
        return Err(from.bad(&format!("is beyond the end of the object, which has {pages} pages")));
    }
    let rest = pages.saturating_sub(first);
    let used = s.or("size", rest, |f| f.pages(1..=MAX_PAGES))?;
    if let (true, Some(size)) = (used > rest, s.get("size")) {
        return Err(size.bad(&format!("is more than the object has from there, {rest} pages")));
    }
    if let (true, Some(field)) = (used < block, s.get("block")) {
        return Err(field.bad(&format!("is more than what is used of the object, {used} pages")));
    }
    Ok((first, used))
}

fn via(s: &Section<'_>, kind: ObjectKind) -> Result<Via> {
    let default = if kind == ObjectKind::File { Via::Fd } else { Via::Map };
    let via = s.or("via", default, |f| f.choice(&[("fd", Via::Fd), ("map", Via::Map)]))?;
    match (kind, via, s.get("via")) {
        (ObjectKind::Anon, Via::Fd, Some(field)) => Err(field.bad("is for files; anonymous memory is mapped")),
        _ => Ok(via),
    }
}

fn pattern(s: &Section<'_>) -> Result<Pattern> {
    let zipf = Pattern::Zipf { skew: 1.0, permute: true };
    let names = [("sequential", Pattern::Sequential), ("uniform", Pattern::Uniform), ("zipf", zipf)];
    let pattern = s.or("pattern", Pattern::Sequential, |f| f.choice(&names))?;
    if pattern == zipf {
        let skew = s.or("skew", 1.0, |f| f.float(0.0..=32.0))?;
        return Ok(Pattern::Zipf { skew, permute: s.or("permute", true, Field::boolean)? });
    }
    match s.get("skew").or(s.get("permute")) {
        Some(field) => Err(field.error("is only for pattern = \"zipf\"")),
        None => Ok(pattern),
    }
}
