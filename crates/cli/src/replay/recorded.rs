//! A recording of a kernel: rows of the machine that was recorded, with its readahead.
//!
//! `recording` has that machine, and calls this room; what it can do is said here.

use super::args::ReplayArgs;
use super::cell::MissBits;
use super::command::{self, Loaded};
use super::curve;
use super::policy::RowPolicy;
use super::progress::Progress;
use super::row::Row;
use super::run::{Done, PlugIn};
use crate::flags;
use crate::flags::recorded;
use crate::flags::settings::Set;
use crate::flags::size::Size;
use crate::replay::groups::on_threads;
use crate::{Failure, Given};
use refault_mm::{Engine, Kernel, MemcgId, Policy};
use refault_trace::{CHUNK, Header, Record, RecordSource, Recording, TraceError};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Bytes a page of a recording.
const PAGE_SIZE: u32 = 4096;

/// A machine that was recorded.
pub(crate) trait Recorded: fmt::Debug + Send + Sync {
    /// What is known of it.
    fn about(&self) -> &About;
    /// By object: its pages that exist, which follow one another.
    fn object_pages(&self) -> Vec<u64>;
    /// Runs it once; `after` is told of the engine, the group, and the accesses so far after each
    /// record.
    fn run_watched(&self, cell: &RecordedCell<'_>, after: &mut After<'_>) -> Result<Done, String>;
    /// Runs it once.
    fn run(&self, cell: &RecordedCell<'_>) -> Result<Done, String> {
        self.run_watched(cell, &mut |_, _, _| {})
    }
}

/// Observer of a run.
pub(crate) type After<'a> = dyn FnMut(&Engine, MemcgId, u64) + 'a;

/// What is known of a recorded machine before it runs.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The file.
    pub(crate) name: String,
    pub(crate) recording: Recording,
    /// Accesses of files.
    pub(crate) accesses: u64,
    /// Pages of files that are touched.
    pub(crate) footprint_pages: u64,
    /// The most that the group was charged for besides.
    pub(crate) besides_pages: u64,
}

/// With what it runs.
#[derive(Debug)]
pub(crate) struct RecordedCell<'a> {
    pub(crate) policy: Policy,
    pub(crate) plug_in: Option<&'a PlugIn>,
    pub(crate) memory_pages: u64,
    /// What is not given is as recorded.
    pub(crate) kernel: Option<Kernel>,
    pub(crate) swappiness: Option<u32>,
    pub(crate) set: &'a [Set],
    pub(crate) seed: u64,
    pub(crate) windows: Option<usize>,
    pub(crate) bits: bool,
    pub(crate) lru_gen: bool,
}

/// Makes a recorded machine of a recording, or of its first accesses.
pub(crate) type ReadRecorded = fn(&mut dyn RecordSource, Option<u64>) -> Result<Box<dyn Recorded>, String>;

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

/// Refuses what a recorded machine cannot do, before anything is read.
pub(super) fn refuse(args: &ReplayArgs, given: &Given) -> Result<(), Failure> {
    let Some(flag) = FOREIGN.iter().find(|flag| given.has(flag)).filter(|_| !args.page_by_page) else { return Ok(()) };
    for path in args.traces.iter().filter(|path| path.is_file()) {
        let source = args.input.open(path);
        if source.is_ok_and(|source| source.header().recording.is_some()) {
            return Err(foreign(flag, &path.display().to_string()));
        }
    }
    Ok(())
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
    read: ReadRecorded,
) -> Result<Vec<Done>, Failure> {
    let needs_trace = given.has("policy") && args.policy.0.contains(&RowPolicy::Opt);
    let bits = args.output.miss_bits.is_some();
    if !needs_trace {
        let mut source = source;
        let machine = read(&mut source, args.max_accesses)?;
        return rows(&*machine, args, given, &[], None, bits);
    }
    let (machine, loaded) = load(args, source, read)?;
    rows(&*machine, args, given, &[], Some(&loaded), bits)
}

/// Reads a recording as a machine, and as a trace, too.
pub(crate) fn load(
    args: &ReplayArgs,
    source: Box<dyn RecordSource>,
    read: ReadRecorded,
) -> Result<(Box<dyn Recorded>, Loaded), Failure> {
    let kept = Kept::read(source)?;
    let machine = read(&mut kept.clone(), args.max_accesses)?;
    let loaded = command::load(args, Box::new(kept), false)?;
    Ok((machine, loaded))
}

/// The rows that the flags ask for: by size, then by policy; plug-ins at the end.
pub(super) fn rows(
    machine: &dyn Recorded,
    args: &ReplayArgs,
    given: &Given,
    plug_ins: &[PlugIn],
    trace: Option<&Loaded>,
    bits: bool,
) -> Result<Vec<Done>, Failure> {
    let about = machine.about();
    if let Some(flag) = FOREIGN.iter().find(|flag| given.has(flag)) {
        return Err(foreign(flag, &about.name));
    }
    if !args.output.is_for_programs() {
        recorded::note_files_only(&about.recording, about.name.as_ref());
    }
    let sizes = sizes(args, about)?;
    let own = [RowPolicy::Linux(recorded::policy(&about.recording))];
    let policies: &[RowPolicy] = match given.has("policy") {
        true => &args.policy.0,
        false if plug_ins.is_empty() => &own,
        false => &[],
    };
    let cell = |memory_pages, policy, plug_in| RecordedCell {
        policy,
        plug_in,
        memory_pages,
        kernel: args.kernel,
        swappiness: given.has("swappiness").then_some(args.swappiness),
        set: &args.set,
        seed: args.seed,
        windows: args.output.windows.map(|n| n as usize),
        bits,
        lru_gen: args.output.lru_gen,
    };
    let mut cells = Vec::new();
    for &pages in &sizes {
        for &policy in policies {
            cells.push(match policy {
                RowPolicy::Linux(policy) => Some(cell(pages, policy, None)),
                RowPolicy::Opt => None,
            });
        }
        cells.extend(plug_ins.iter().map(|plug_in| Some(cell(pages, Policy::Lru, Some(plug_in)))));
    }
    let jobs: Vec<&RecordedCell<'_>> = cells.iter().flatten().collect();
    let progress = Progress::new(format!("replaying {}", about.name), Some(about.accesses * jobs.len() as u64));
    let one = |cell: &RecordedCell<'_>| {
        args.stop.check()?;
        let done = machine.run(cell)?;
        progress.add(about.accesses);
        Ok(done)
    };
    let done = on_threads(flags::threads(args.threads), &jobs, &one);
    args.stop.check()?;
    let mut done = done.map_err(|e| format!("{}: {e}", about.name))?.into_iter();
    let mut opt = opt(args, trace, sizes, cells.iter().any(Option::is_none), bits)?.into_iter();
    let in_order = cells.iter().filter_map(|cell| if cell.is_some() { done.next() } else { opt.next() });
    Ok(in_order.collect())
}

/// Rows of OPT, which knows pages only.
fn opt(
    args: &ReplayArgs,
    trace: Option<&Loaded>,
    sizes: Vec<u64>,
    is_wanted: bool,
    bits: bool,
) -> Result<Vec<(Row, Option<MissBits>)>, Failure> {
    let Some(loaded) = trace.filter(|_| is_wanted) else { return Ok(Vec::new()) };
    let policies = [(RowPolicy::Opt, None)];
    let plan = command::plan_of_sizes(args, &policies, &[], loaded, sizes, bits);
    Ok(plan.run()?)
}

/// The sizes in pages, each once: those that are given, or the recorded limit.
fn sizes(args: &ReplayArgs, about: &About) -> Result<Vec<u64>, Failure> {
    let limit = about.recording.memory_max.map(|bytes| bytes / u64::from(PAGE_SIZE)).filter(|&pages| pages > 0);
    let shares = || [10.0, 25.0, 50.0].map(Size::percent).to_vec();
    // A share of the files comes on top of what is not of files.
    let on_top = |sizes: Vec<Size>| -> Vec<u64> {
        let share = |size: &Size| about.besides_pages + size.pages(PAGE_SIZE, about.footprint_pages).max(1);
        sizes.iter().map(share).collect()
    };
    let mut sizes = match (args.memory.as_slice(), args.output.curve, limit) {
        ([], true, _) => on_top(curve::sizes()),
        ([], false, Some(limit)) => vec![limit],
        ([], false, None) => on_top(shares()),
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

/// The records of a recording, to be read several times.
#[derive(Clone, Debug)]
struct Kept {
    name: String,
    header: Header,
    records: Arc<Vec<Record>>,
    at: usize,
}

impl Kept {
    fn read(mut source: Box<dyn RecordSource>) -> Result<Kept, Failure> {
        let (mut records, mut chunk) = (Vec::new(), Vec::with_capacity(CHUNK));
        while source.next_chunk(&mut chunk)? {
            records.extend_from_slice(&chunk);
        }
        let (name, header) = (source.name().to_owned(), source.header().clone());
        Ok(Kept { name, header, records: Arc::new(records), at: 0 })
    }
}

impl RecordSource for Kept {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        out.clear();
        let end = (self.at + CHUNK).min(self.records.len());
        out.extend_from_slice(&self.records[self.at..end]);
        self.at = end;
        Ok(!out.is_empty())
    }
}

/// Says what is to be known of a recording before it is replayed.
pub(super) fn note(recording: Option<&Recording>, path: &Path) {
    recorded::note_cut(recording, path);
    recorded::note_touches(recording, path);
}
