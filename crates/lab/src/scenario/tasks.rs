//! Tasks, their phases and loops.

use super::objects::{DeclaredObject, memcg};
use super::read::{Field, Result, Section};
use super::streams::{STREAM_KEYS, streams};
use super::types::{
    Burst, DeviceSpec, LoopSpec, MemcgSpec, PhaseLimit, PhaseSpec, Share, StreamSpec, TaskSpec, TraceSpec,
};
use super::units::MAX_TIME_NS;
use super::{MAX_RECORDED, MAX_TASKS};
use refault_mm::AccessAdvice;

const TASK_KEYS: [&str; 12] = [
    "name",
    "count",
    "memcg",
    "start",
    "stagger",
    "after",
    "phase",
    "trace",
    "threads",
    "background",
    "oom_score_adj",
    "cache_ext_hint",
];
const UNTIL_KEYS: [&str; 6] = ["accesses", "amount", "ops", "passes", "duration", "until"];
const PACE_KEYS: [&str; 6] = ["think", "cpu", "lines", "accesses_per_op", "rate", "burst"];
const PHASE_KEYS: [&str; 3] = ["name", "measured", "stream"];
const LOOP_KEYS: [&str; 3] = ["repeat", "step", "record"];
const MAX_PHASES: usize = 256;
/// Most accesses of a phase.
const MAX_ACCESSES: u64 = 1 << 53;

/// Everything that tasks refer to.
pub(super) struct Names<'a, 's> {
    tasks: Vec<String>,
    objects: &'a [DeclaredObject<'s>],
    memcgs: &'a [MemcgSpec],
    devices: &'a [DeviceSpec],
}

pub(super) fn tasks<'s>(
    field: &Field<'s>,
    objects: &[DeclaredObject<'s>],
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
    let trace = s.opt("trace", |f| trace(f, names.devices))?;
    let (phases, loops) = match (&trace, s.get("phase")) {
        (Some(_), Some(field)) => return Err(field.error("a task replays a trace or has phases, not both")),
        (Some(_), None) => (vec![whole_trace()], Vec::new()),
        (None, _) => phases(&s.need("phase", "[[task.phase]]")?, count, names)?,
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
        loops,
        threads: s.opt("threads", Field::boolean)?,
        background: s.or("background", false, Field::boolean)?,
        oom_score_adj: s.or("oom_score_adj", 0, |f| f.int(-1000..=1000))?,
        cache_ext_hint: s.or("cache_ext_hint", 0, |f| f.int(0..=255))?,
    })
}

/// The trace that a task replays.
fn trace(field: &Field<'_>, devices: &[DeviceSpec]) -> Result<TraceSpec> {
    let s = field.section(&["file", "device", "timed", "advice", "mincore"])?;
    Ok(TraceSpec {
        path: s.need("file", "trace = { file = \"...\" }")?.text()?.into(),
        device: s.opt("device", |f| f.index("a device", devices.iter().map(|d| d.name.as_str())))?,
        timed: s.or("timed", false, Field::boolean)?,
        advice: s.or("advice", AccessAdvice::Normal, |f| f.choice(&AccessAdvice::ALL))?,
        mincore: s.or("mincore", false, Field::boolean)?,
    })
}

/// The phase of a task that replays a trace: all of it.
fn whole_trace() -> PhaseSpec {
    PhaseSpec {
        name: None,
        streams: Vec::new(),
        until: PhaseLimit::End,
        measured: true,
        think_ns: 0,
        cpu_ns: 0,
        lines: 1,
        accesses_per_op: 1,
        rate_per_s: None,
        burst: None,
    }
}

/// All phases, steps of loops among them, and the loops.
fn phases(field: &Field<'_>, count: u32, names: &Names<'_, '_>) -> Result<(Vec<PhaseSpec>, Vec<LoopSpec>)> {
    let step_keys: Vec<_> = [&PHASE_KEYS[..], &STREAM_KEYS, &UNTIL_KEYS, &PACE_KEYS].concat();
    let keys = [&step_keys[..], &LOOP_KEYS].concat();
    let sections = field.sections(&keys, MAX_PHASES)?;
    if sections.is_empty() {
        return Err(field.error("there is no phase; write [[task.phase]]"));
    }
    let (mut all, mut loops): (Vec<PhaseSpec>, Vec<LoopSpec>) = Default::default();
    for s in &sections {
        let Some(steps) = s.get("step") else {
            if let Some(field) = s.get("repeat").or(s.get("record")) {
                return Err(field.error("what is repeated are steps; write [[task.phase.step]]"));
            }
            all.push(phase(s, count, names)?);
            continue;
        };
        if let Some(other) = step_keys.iter().filter(|key| **key != "name").find_map(|key| s.get(key)) {
            return Err(other.error("the phase has steps; write this in one of them"));
        }
        let first = all.len();
        for step in steps.sections(&step_keys, MAX_PHASES)? {
            all.push(phase(&step, count, names)?);
            if all.last().is_some_and(|phase| phase.until == PhaseLimit::End) {
                return Err(step.error("a step has an end; write passes, accesses or duration"));
            }
        }
        let repeat = s.need("repeat", "repeat = 100")?;
        let times = repeat.int(1..=MAX_ACCESSES)?;
        let record = s.or("record", false, Field::boolean)?;
        if let (true, Some(field)) = (record, s.get("record")) {
            let what = match () {
                _ if count > 1 => "only a task of one copy is recorded",
                _ if loops.iter().any(|other| other.record) => "the task records a loop already",
                _ if times > MAX_RECORDED => "there are too many times to record; at most 10000 are possible",
                _ => "",
            };
            if !what.is_empty() {
                return Err(field.error(what));
            }
        }
        if all.len() == first {
            return Err(steps.error("there is no step; write [[task.phase.step]]"));
        }
        loops.push(LoopSpec { phases: first..all.len(), times, record });
    }
    if all.len() > MAX_PHASES {
        return Err(field.error(format!("there are {}, steps counted; at most {MAX_PHASES} are possible", all.len())));
    }
    Ok((all, loops))
}

fn phase(s: &Section<'_>, count: u32, names: &Names<'_, '_>) -> Result<PhaseSpec> {
    let streams = streams(s, count, names.objects)?;
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
        lines: s.or("lines", 1, |f| f.int(1..=64))?,
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

fn until(s: &Section<'_>, streams: &[StreamSpec], count: u32, accesses_per_op: u32) -> Result<PhaseLimit> {
    let mut given = UNTIL_KEYS.iter().filter_map(|key| Some((*key, s.get(key)?)));
    let Some((key, field)) = given.next() else {
        return Ok(PhaseLimit::End);
    };
    if let Some((other, _)) = given.next() {
        return Err(field.error(format!("a phase ends in one way; write {key} or {other}")));
    }
    Ok(match key {
        "accesses" => PhaseLimit::Accesses(field.int(1..=MAX_ACCESSES)?),
        "amount" => PhaseLimit::Accesses(field.pages(1..=MAX_ACCESSES)?),
        "ops" => {
            let ops = field.int(1..=MAX_ACCESSES)?;
            let accesses = ops.checked_mul(accesses_per_op.into()).filter(|n| *n <= MAX_ACCESSES);
            PhaseLimit::Accesses(accesses.ok_or_else(|| field.bad("operations are more than 2^53 accesses"))?)
        }
        "passes" => passes(&field, streams, count)?,
        "duration" => PhaseLimit::Duration(field.time(1..=MAX_TIME_NS)?),
        _ => match field.text() {
            Ok("end") => PhaseLimit::End,
            _ => PhaseLimit::Time(field.time(1..=MAX_TIME_NS)?),
        },
    })
}

fn passes(field: &Field<'_>, streams: &[StreamSpec], count: u32) -> Result<PhaseLimit> {
    let [stream] = streams else {
        return Err(field.error("passes are of one object; with several streams write accesses, ops or duration"));
    };
    let passes = field.float(1e-6..=1e9)?;
    let parts = if matches!(stream.share, Share::Split | Share::Queue) { f64::from(count) } else { 1.0 };
    let accesses = (passes * stream.pages as f64 / parts).round().max(1.0);
    match accesses <= MAX_ACCESSES as f64 {
        true if stream.least_pages < stream.pages => Ok(PhaseLimit::Passes(passes)),
        true => Ok(PhaseLimit::Accesses(accesses as u64)),
        false => Err(field.bad("passes are more than 2^53 accesses")),
    }
}
