//! A recording of a kernel: rows of the machine that was recorded, with its readahead, by the flags
//! of a replay.

use super::args::ReplayArgs;
use super::command::{self, LoadedTrace};
use super::policy::RowPolicy;
use crate::flags;
use crate::flags::recorded;
use crate::flags::size::Size;
use crate::{Failure, Given};
use refault::recording::{About, CellSettings, PAGE_SIZE, RecordedMachine, RecordedPlan};
use refault::replay::{CellResult, PlugIn, Row, curve_sizes, usual_sizes};
use refault::scenario::is_scenario;
use refault_trace::{RecordSource, Recording, Records};
use std::path::{Path, PathBuf};

/// Flags that a recorded machine cannot do: a recording says it itself, or it has no readahead.
const FOREIGN: [&str; 13] = [
    "swap-max",
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
pub(super) fn refuse(args: &ReplayArgs, given: &Given) -> Result<(), Failure> {
    if args.page_by_page {
        let is_file = |path: &&PathBuf| path.is_file() && !is_scenario(path);
        for path in args.traces.iter().filter(is_file) {
            refuse_page_by_page(args, args.input.open(path)?.header().recording.as_ref(), path)?;
        }
    }
    let Some(flag) = FOREIGN.iter().find(|flag| given.has(flag)).filter(|_| !args.page_by_page) else { return Ok(()) };
    for path in args.traces.iter().filter(|path| path.is_file()) {
        let source = args.input.open(path);
        if source.is_ok_and(|source| source.header().recording.is_some()) {
            return Err(foreign(flag, &path.display().to_string()));
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

fn foreign(flag: &str, file: &str) -> Failure {
    let what = "is a recording, which is replayed with its own settings and readahead";
    format!("--{flag}: {file} {what}; add --page-by-page to replay its pages").into()
}

/// Replays a recording that was opened.
pub(super) fn replay(
    args: &ReplayArgs,
    given: &Given,
    source: Box<dyn RecordSource>,
) -> Result<Vec<CellResult>, Failure> {
    let needs_trace = given.has("policy") && args.policy.0.contains(&RowPolicy::Opt);
    let bits = args.output.miss_bits.is_some();
    if !needs_trace {
        let mut source = source;
        let machine = RecordedMachine::read(&mut source, args.max_accesses)?;
        return rows(&machine, args, given, &[], None, bits);
    }
    let (machine, loaded) = load(args, source)?;
    rows(&machine, args, given, &[], Some(&loaded), bits)
}

/// Reads a recording as a machine, and as a trace, too.
pub(crate) fn load(
    args: &ReplayArgs,
    mut source: Box<dyn RecordSource>,
) -> Result<(RecordedMachine, LoadedTrace), Failure> {
    let kept = Records::read(&mut source)?;
    drop(source);
    let machine = RecordedMachine::read(&mut kept.clone(), args.max_accesses)?;
    let loaded = command::load(args, Box::new(kept), false)?;
    Ok((machine, loaded))
}

/// The rows that the flags ask for: by size, then by policy; plug-ins at the end.
pub(super) fn rows(
    machine: &RecordedMachine,
    args: &ReplayArgs,
    given: &Given,
    plug_ins: &[PlugIn],
    trace: Option<&LoadedTrace>,
    bits: bool,
) -> Result<Vec<CellResult>, Failure> {
    let about = machine.about();
    if let Some(flag) = FOREIGN.iter().find(|flag| given.has(flag)) {
        return Err(foreign(flag, &about.name));
    }
    if !args.output.is_for_programs() {
        recorded::note_files_only(&about.recording, about.name.as_ref());
    }
    let own = [RowPolicy::Linux(recorded::policy(&about.recording))];
    let plan = RecordedPlan {
        machine,
        trace: trace.map(|loaded| &loaded.trace),
        sizes: sizes(args, about)?,
        policies: match given.has("policy") {
            true => &args.policy.0,
            false if plug_ins.is_empty() => &own,
            false => &[],
        },
        plug_ins,
        settings: CellSettings {
            kernel: args.kernel,
            swappiness: given.has("swappiness").then_some(args.swappiness),
            set: &args.set,
            seed: args.seed,
            windows: args.output.windows.map(|n| n as usize),
            bits,
            lru_gen: args.output.lru_gen,
        },
        threads: flags::threads(args.threads),
        watch: args.watch.clone(),
    };
    Ok(plan.run()?)
}

/// The sizes in pages, each once: those that are given, or the recorded limit.
fn sizes(args: &ReplayArgs, about: &About) -> Result<Vec<u64>, Failure> {
    let limit = about.recording.memory_max.map(|bytes| bytes / u64::from(PAGE_SIZE)).filter(|&pages| pages > 0);
    // A share of the files comes on top of what is not of files.
    let on_top = |sizes: Vec<Size>| -> Vec<u64> {
        let share = |size: &Size| about.besides_pages + size.pages(PAGE_SIZE, about.footprint_pages).max(1);
        sizes.iter().map(share).collect()
    };
    let mut sizes = match (args.memory.as_slice(), args.output.curve, limit) {
        ([], true, _) => on_top(curve_sizes()),
        ([], false, Some(limit)) => vec![limit],
        ([], false, None) => on_top(usual_sizes()),
        (given, _, _) => {
            let pages = |size: &Size| match size.pages(PAGE_SIZE, about.footprint_pages) {
                0 => Err(format!("--memory {size}: is less than one page of {PAGE_SIZE} bytes; give at least 1p")),
                _ if size.is_max() => {
                    Err("--memory max: with no limit nothing is reclaimed; refault verify compares that".to_owned())
                }
                pages => Ok(pages),
            };
            given.iter().map(pages).collect::<Result<_, _>>()?
        }
    };
    let mut seen = std::collections::HashSet::new();
    sizes.retain(|&pages| seen.insert(pages));
    Ok(sizes)
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
    format!("as recorded, with readahead: a miss is a wait for a page that was not in memory{opt}\n")
}

/// Says what is to be known of a recording before it is replayed.
pub(super) fn note(recording: Option<&Recording>, path: &Path) {
    recorded::note_cut(recording, path);
    recorded::note_touches(recording, path);
}
