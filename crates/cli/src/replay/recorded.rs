//! A recording of a kernel: rows of the machine that was recorded, with its readahead, by the flags
//! of a replay.

use super::args::ReplayArgs;
use super::policy::RowPolicy;
use crate::flags::recorded;
use crate::{Failure, GivenFlags, say};
use refault::loaded::LoadedTrace;
use refault::recording::RecordedMachine;
use refault::replay::{CellResult, Row};
use refault::scenario::is_scenario;
use refault_trace::{RecordSource, Recording};
use std::path::{Path, PathBuf};

/// Flags that a recorded machine cannot do: a recording says it itself, or it has no readahead.
pub(super) const FOREIGN: [&str; 15] = [
    "swap-max",
    "swap",
    "compression",
    "via",
    "thp",
    "swap-map",
    "stream",
    "memcg-column",
    "memcg-limits",
    "sample",
    "sample-unit",
    "salts",
    "tier",
    "access-ns",
    "promotion",
];

/// Refuses what a recorded machine cannot do, and what only a recording has of a trace, before
/// anything is read.
pub(super) fn refuse(args: &ReplayArgs, given: &GivenFlags) -> Result<(), Failure> {
    if args.page_by_page {
        let is_file = |path: &&PathBuf| path.is_file() && !is_scenario(path);
        for path in args.traces.iter().filter(is_file) {
            refuse_page_by_page(args, args.input.open(path)?.header().recording.as_ref(), path)?;
        }
    }
    let request = args.loaded(given);
    if request.foreign.is_none() || args.page_by_page {
        return Ok(());
    }
    for path in args.traces.iter().filter(|path| path.is_file()) {
        let source = args.input.open(path);
        if source.is_ok_and(|source| source.header().recording.is_some()) {
            request.check_foreign(&path.display().to_string())?;
        }
    }
    Ok(())
}

/// Refuses `--page-by-page` for what is replayed so anyway.
pub(super) fn refuse_page_by_page(
    args: &ReplayArgs,
    recording: Option<&Recording>,
    path: &Path,
) -> Result<(), Failure> {
    if !args.page_by_page || recording.is_some() {
        return Ok(());
    }
    let what = "is a trace and no recording, so that it is replayed page by page anyway; leave it out";
    Err(format!("--page-by-page: {} {what}", path.display()).into())
}

/// Replays a recording that was opened.
pub(super) fn replay(
    args: &ReplayArgs,
    given: &GivenFlags,
    mut source: Box<dyn RecordSource>,
) -> Result<Vec<CellResult>, Failure> {
    let request = args.loaded(given);
    if given.has("policy") && args.policy.0.contains(&RowPolicy::Opt) {
        let LoadedTrace { trace, machine, .. } = LoadedTrace::read(source, &args.load_options(false), &args.watch)?;
        let machine = machine.ok_or("is no recording")?;
        note_files(args, &machine);
        return request.run_recorded(&machine, Some(&trace));
    }
    let machine = RecordedMachine::read(&mut source, args.max_accesses)?;
    note_files(args, &machine);
    request.run_recorded(&machine, None)
}

/// Says of what sizes are, for people.
fn note_files(args: &ReplayArgs, machine: &RecordedMachine) {
    if !args.output.is_for_programs() {
        recorded::note_files_only(&machine.about().recording, machine.about().name.as_ref());
    }
}

/// A line that says what a miss is, above the rows of a recording.
pub(super) fn words(args: &ReplayArgs, rows: &[Row]) -> String {
    if args.page_by_page {
        return "page by page, without readahead: a miss is a page that was not in memory\n".to_owned();
    }
    if rows.iter().all(|row| row.reads.is_none()) {
        return String::new();
    }
    let by_page = rows.iter().any(|row| row.reads.is_none());
    let opt = if by_page { "; opt: page by page, without readahead" } else { "" };
    let sampled = rows.iter().any(|row| row.sampling_error.is_some());
    let sample = if sampled { "; a sample of pages, ±: two standard errors of it" } else { "" };
    format!("as recorded, with readahead: a miss is a wait for a page that was not in memory{opt}{sample}\n")
}

/// Says what is to be known of a recording before it is replayed.
pub(super) fn note(recording: Option<&Recording>, path: &Path) {
    if let Some(sample) = recording.and_then(|recording| recording.sample) {
        say(&format!("refault: {}: a sample: {sample}", path.display()));
    }
    recorded::note_cut(recording, path);
    recorded::note_touches(recording, path);
}
