//! `--stream`: a trace that is larger than memory. Its pages are numbered in a first reading; in a
//! second one every cell takes the accesses piece by piece, all cells the same piece.

use super::args::ReplayArgs;
use super::clocked::Clocked;
use super::command::{Loaded, note_idle, plan, wants_time};
use super::policy::RowPolicy;
use super::run::{Done, Plan, Running};
use crate::{Failure, Given};
use refault_mm::Config;
use refault_trace::{LoadOptions, PageNumbers, Piece, Pieces, RecordSource, TraceError};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Accesses of a piece: long enough that the cells of a piece are worth their threads, and little
/// memory (4 bytes each, two pieces at a time). A multiple of the steps of a replay, so that the
/// clock is read at the same accesses.
const PIECE: usize = 1 << 20;

/// What can be read only once.
fn read_once(args: &ReplayArgs) -> Option<&PathBuf> {
    args.traces.iter().find(|path| path.as_os_str() == "-" || (path.exists() && !path.is_file()))
}

/// Whether the same command line may have `--stream`, for it replays the same traces in less
/// memory.
pub(super) fn is_possible(args: &ReplayArgs, given: &Given) -> bool {
    read_once(args).is_none() && !(given.has("policy") && args.policy.0.contains(&RowPolicy::Opt))
}

/// Refuses what can be read only once.
pub(super) fn check(args: &ReplayArgs) -> Result<(), Failure> {
    match read_once(args).filter(|_| args.stream) {
        Some(path) => {
            let file = path.display();
            Err(format!("{file}: --stream reads a trace twice, so it wants a file; this can be read once").into())
        }
        None => Ok(()),
    }
}

/// Replays one trace. `source` is `path`, opened.
pub(super) fn replay(
    args: &ReplayArgs,
    given: &Given,
    source: Box<dyn RecordSource>,
    path: &Path,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<Vec<Done>, Failure> {
    let policies = without_opt(given, policies)?;
    let opts = LoadOptions {
        default_via: args.via.into(),
        keep_time: wants_time(args, &policies),
        max_accesses: args.max_accesses,
        ..LoadOptions::default()
    };
    let page_size = source.header().page_size;
    let recording = source.header().recording.clone();
    let numbers = PageNumbers::read(&mut Clocked::new(source, args.max_accesses, &args.stop), &opts)?;
    let (accesses, has_times) = (numbers.accesses(), numbers.has_times());
    let (trace, pieces) = numbers.pieces(args.input.open(path)?);
    note_idle(&policies, &trace, path);
    let loaded = Loaded { trace, page_size, recording, machine: None };
    let mut plan = plan(args, &policies, &[], &loaded, args.output.miss_bits.is_some())?;
    plan.accesses = accesses;
    Replay { plan: &plan, pieces, has_times, file: path.display().to_string() }.run()
}

/// The policies but OPT, which is an error only if it was asked for.
fn without_opt(
    given: &Given,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<Vec<(RowPolicy, Option<Config>)>, Failure> {
    let mut policies = policies.to_vec();
    let all = policies.len();
    policies.retain(|(policy, _)| *policy != RowPolicy::Opt);
    if policies.len() < all && given.has("policy") {
        return Err("--stream: the policy opt must know the future, which a stream does not hold; leave opt out of \
                    --policy, or leave out --stream"
            .into());
    }
    Ok(policies)
}

/// The second reading.
struct Replay<'a> {
    plan: &'a Plan<'a>,
    pieces: Pieces,
    has_times: bool,
    file: String,
}

impl Replay<'_> {
    fn run(mut self) -> Result<Vec<Done>, Failure> {
        let plan = self.plan;
        let begun = plan.cells().into_iter().filter_map(|(pages, decides)| plan.begin(decides, pages));
        let cells: Result<Vec<_>, _> = begun.map(|cell| cell.map(Mutex::new)).collect();
        let cells = cells.map_err(|e| format!("{}: {e}", self.file))?;
        let progress = plan.progress(cells.len());
        let feed = |cell: &Mutex<Running<'_>>, piece: &Piece| {
            // Nobody else holds the cell: a lock is poisoned only by a panic, which ends the scope.
            if let Ok(mut cell) = cell.lock() {
                let times = piece.time_ns.as_deref().filter(|_| self.has_times);
                plan.feed(&mut cell, &piece.accesses, times, &progress);
            }
        };
        let (mut now, mut next) = (Piece::default(), Piece::default());
        self.pieces.next(&mut now, PIECE)?;
        while !now.accesses.is_empty() {
            overlap(&mut self.pieces, &mut next, plan.threads, &cells, |cell| feed(cell, &now))?;
            plan.stop.check()?;
            std::mem::swap(&mut now, &mut next);
        }
        Ok(cells.into_iter().filter_map(|cell| cell.into_inner().ok()).map(|cell| plan.end(cell)).collect())
    }
}

/// Decodes the next piece in this thread while others do a piece of work for each cell; then it
/// helps them.
fn overlap<C: Sync>(
    pieces: &mut Pieces,
    next: &mut Piece,
    threads: usize,
    cells: &[C],
    work: impl Fn(&C) + Sync,
) -> Result<(), TraceError> {
    let taken = AtomicUsize::new(0);
    let help = || {
        while let Some(cell) = cells.get(taken.fetch_add(1, Ordering::Relaxed)) {
            work(cell);
        }
    };
    std::thread::scope(|scope| {
        (1..threads.min(cells.len() + 1)).for_each(|_| _ = scope.spawn(help));
        let decoded = pieces.next(next, PIECE);
        help();
        decoded
    })
}
