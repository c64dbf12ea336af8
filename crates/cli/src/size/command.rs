//! `refault size`, from its flags to its output.

use super::args::{Limit, SizeArgs};
use super::report::Report;
use super::summary::Summary;
use super::{json, recording, sample, scenario, text, trace};
use crate::flags::memory;
use crate::replay::{check_output, is_scenario, write};
use crate::{Failure, Given, print};
use std::iter;

/// Flags that only traces have.
const OF_TRACES: [&str; 16] = [
    "warm-up",
    "memory",
    "swap-max",
    "swappiness",
    "via",
    "set",
    "sample",
    "sample-unit",
    "salts",
    "format",
    "raw-ids",
    "block-bytes",
    "tick-ns",
    "page-size",
    "instructions",
    "strict",
];

/// Runs `refault size ...`, of whose flags `given` were; false: no size meets the target.
pub fn run(args: &SizeArgs, given: &Given) -> Result<bool, Failure> {
    if let Some(path) = &args.output {
        check_output(iter::once(args.subject.as_path()), path)?;
    }
    let (text, is_met) = answer(args, given)?;
    match &args.output {
        Some(path) => write(path, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(is_met)
}

/// The output, and whether a size meets the target, if there is one.
fn answer(args: &SizeArgs, given: &Given) -> Result<(String, bool), Failure> {
    if args.asked.is_none() {
        let summary = summary(args, given)?;
        return Ok((if args.json { summary.json(&args.trace.input.notes())? } else { summary.text() }, true));
    }
    let report = report(args, given)?;
    let text = if args.json { json::json(&report, &args.trace.input.notes())? } else { text::text(&report) };
    Ok((text, report.answer().is_some()))
}

fn summary(args: &SizeArgs, given: &Given) -> Result<Summary, Failure> {
    if is_scenario(&args.subject) {
        return Err(format!(
            "--target: {} is a scenario: say what must be met, such as p99<5ms",
            args.subject.display()
        )
        .into());
    }
    if args.trace.sample.is_asked_for() {
        return Err("--sample: a summary is of all pages; give a --target, or leave --sample out".into());
    }
    Ok(Summary::new(report(args, given)?))
}

fn report(args: &SizeArgs, given: &Given) -> Result<Report, Failure> {
    let args = &args.resolved();
    if is_scenario(&args.subject) {
        args.refuse_foreign(given, &OF_TRACES, "a trace", "a scenario")?;
        memory::advise_scenario(given.has("scale"));
        return scenario::run(args);
    }
    args.refuse_foreign(given, &["scale"], "a scenario", "a trace")?;
    let mut source = args.trace.input.open(&args.subject)?;
    // Groups of a recording, and what protects them, are a matter of the trace.
    let is_whole = args.group.is_none() && args.memcg_limits.is_none() && args.limit == Limit::Max;
    if source.header().recording.is_some() && is_whole {
        if args.trace.sample.is_asked_for() {
            let file = args.subject.display();
            let what = "is a recording, which is replayed with readahead, and samples have none; leave --sample out";
            return Err(format!("--sample: {file} {what}").into());
        }
        return recording::run(args, given, &mut source);
    }
    if args.trace.sample.is_asked_for() {
        refault_syscalls::advise_when_full("take a smaller --sample");
        return sample::run(args, source);
    }
    if given.has("warm-up") {
        return Err(format!("--warm-up: is for a recording, and {} is a trace", args.subject.display()).into());
    }
    drop(source);
    memory::advise(false, args.asked.is_some() && sample::check(args).is_ok());
    trace::run(args)
}

/// Text that `--json` prints.
pub(crate) fn result(args: &SizeArgs, given: &Given) -> Result<String, Failure> {
    match args.asked {
        Some(_) => json::json(&report(args, given)?, &args.trace.input.notes()),
        None => summary(args, given)?.json(&args.trace.input.notes()),
    }
}
