//! Report at the end of a run: a line for people, an object for machines.

use crate::args::RunArgs;
use crate::record::Recorded;
use refault_cli::{Failure, print, say};
use refault_pager::tree::{RunEnd, TreeStats};
use refault_trace::AtomicFile;
use serde::Serialize;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

const PAGE: u64 = 4096;

/// Object that `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    refault: &'static str,
    command: Vec<String>,
    exit_status: Option<i32>,
    signal: Option<i32>,
    served: bool,
    wall_s: f64,
    memory_max_bytes: u64,
    overhead_beside: bool,
    peak_bytes: u64,
    peak_resident_bytes: u64,
    peak_taken_bytes: u64,
    peak_shared_bytes: u64,
    peak_huge_bytes: u64,
    peak_unserved_bytes: u64,
    peak_swap_bytes: u64,
    peak_pool_bytes: u64,
    pool_limit_bytes: u64,
    pool_shrunk: u64,
    pool_grown: u64,
    peak_file_bytes: u64,
    swap_directory: Option<String>,
    manager_bytes: u64,
    processes: u64,
    processes_uncaught: u64,
    mappings_asked_about: u64,
    unanswered: u64,
    forks: u64,
    processes_killed: u64,
    processes_unserved: u64,
    faults: u64,
    first_touches: u64,
    swapped_in: u64,
    swapped_out: u64,
    rescued: u64,
    refaults: u64,
    stall_s: f64,
    stall_some_s: f64,
    stall_some_share: f64,
    stall_full_s: f64,
    stall_full_share: f64,
    throttled: u64,
    throttled_s: f64,
    awake_s: f64,
    pages_that_could_not_be_moved: u64,
    read_errors: u64,
    write_errors: u64,
    lost_pages: u64,
    undecided: u64,
    /// With `--record`.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<&'a Recorded>,
}

/// Time that was lost to waiting for memory, as pressure-stall information has it.
struct Stall {
    seconds: f64,
    /// Part of the run's time, 0 to 1.
    share: f64,
}

impl Stall {
    fn of(o: &RunEnd, us: u64) -> Stall {
        let seconds = (us as f64 / 1e6).min(o.wall.as_secs_f64());
        Stall { seconds, share: seconds / o.wall.as_secs_f64().max(1e-9) }
    }
}

fn refaults(s: &TreeStats) -> u64 {
    s.vmstat.iter().find(|(name, _)| *name == "workingset_refault_anon").map_or(0, |&(_, n)| n)
}

impl<'a> Json<'a> {
    fn of(args: &RunArgs, o: &RunEnd, recorded: Option<&'a Recorded>) -> Json<'a> {
        let (s, c) = (&o.stats, &o.stats.counts);
        let (wall_s, stall_s) = (o.wall.as_secs_f64(), s.stall_ns as f64 / 1e9);
        let (some, full) = (Stall::of(o, s.stall_some_us), Stall::of(o, s.stall_full_us));
        Json {
            refault: env!("CARGO_PKG_VERSION"),
            command: args.said_words(),
            exit_status: o.status.code(),
            signal: o.status.signal(),
            served: o.was_served,
            wall_s,
            memory_max_bytes: s.max_pages * PAGE,
            overhead_beside: args.overhead_beside,
            peak_bytes: s.peak_pages * PAGE,
            peak_resident_bytes: s.peak_resident_pages * PAGE,
            peak_taken_bytes: s.peak_taken_pages * PAGE,
            peak_shared_bytes: s.peak_shared_bytes,
            peak_huge_bytes: s.peak_huge_bytes,
            peak_unserved_bytes: s.peak_unserved_bytes,
            peak_swap_bytes: s.peak_swap_pages * PAGE,
            peak_pool_bytes: s.peak_pool_bytes,
            pool_limit_bytes: s.area.usage.pool_limit_bytes,
            pool_shrunk: s.area.usage.pool_moves.0,
            pool_grown: s.area.usage.pool_moves.1,
            peak_file_bytes: s.peak_file_pages * PAGE,
            swap_directory: args.swap_directory().map(|dir| dir.display().to_string()),
            manager_bytes: s.own_bytes,
            processes: s.processes,
            processes_uncaught: s.uncaught,
            mappings_asked_about: s.asks,
            unanswered: s.unanswered,
            forks: s.forks,
            processes_killed: s.killed,
            processes_unserved: s.unserved,
            faults: c.faults,
            first_touches: c.first_touches,
            swapped_in: c.swapped_in,
            swapped_out: c.swapped_out,
            rescued: c.rescued,
            refaults: refaults(s),
            stall_s,
            stall_some_s: some.seconds,
            stall_some_share: some.share,
            stall_full_s: full.seconds,
            stall_full_share: full.share,
            throttled: c.throttled,
            throttled_s: c.throttled_ns as f64 / 1e9,
            awake_s: s.awake.ns as f64 / 1e9,
            pages_that_could_not_be_moved: c.busy,
            read_errors: c.read_errors,
            write_errors: c.write_errors,
            lost_pages: c.poisoned + s.strays,
            undecided: s.undecided,
            recorded,
        }
    }
}

/// Where the figures go.
pub(crate) enum Sink {
    Stdout,
    File(Box<AtomicFile>),
}

/// Says before the run what would fail at its end.
pub(crate) fn start(args: &RunArgs) -> Result<Option<Sink>, Failure> {
    let Some(path) = &args.json else { return Ok(None) };
    if path == Path::new("-") {
        return Ok(Some(Sink::Stdout));
    }
    if args.record.as_ref().is_some_and(|record| std::path::absolute(record).ok() == std::path::absolute(path).ok()) {
        return Err(format!("--json {}: the trace of --record is to be there", path.display()).into());
    }
    let file = AtomicFile::create(path).map_err(|e| format!("--json {e}"))?;
    Ok(Some(Sink::File(Box::new(file))))
}

pub(crate) fn give(
    args: &RunArgs,
    json: Option<Sink>,
    outcome: &RunEnd,
    recorded: Option<&Recorded>,
) -> Result<(), Failure> {
    if !args.quiet {
        say(&line(args, outcome));
        if let (Some(recorded), Some(path)) = (recorded, &args.record) {
            say(&recorded.line(path, args.policy));
        }
    } else if let Some(unsaid) = not_limited(&outcome.stats).strip_prefix("; ") {
        // A limit that did not hold is no matter of taste.
        say(&format!("refault: warning: {unsaid}"));
    }
    let Some(sink) = json else { return Ok(()) };
    let text = serde_json::to_string_pretty(&Json::of(args, outcome, recorded))? + "\n";
    match sink {
        Sink::Stdout => print(&text),
        Sink::File(mut file) => {
            file.write_all(text.as_bytes()).map_err(|e| format!("--json: {e}"))?;
            Ok(file.commit().map_err(|e| format!("--json {e}"))?)
        }
    }
}

fn mib(pages: u64) -> String {
    format!("{:.0} MiB", (pages * PAGE) as f64 / f64::from(1 << 20))
}

/// Memory that was not limited, and processes that were ended: nothing of it is in the other
/// figures.
fn not_limited(s: &TreeStats) -> String {
    let processes = |n: u64| format!("{n} process{}", if n == 1 { " was" } else { "es were" });
    let mut all = String::new();
    for (what, bytes) in [("shared memory", s.peak_shared_bytes), ("huge pages", s.peak_huge_bytes)] {
        if bytes >= 1 << 20 {
            all += &format!("; not limited: {} of {what}", mib(bytes / PAGE));
        }
    }
    if s.unserved > 0 {
        all += &format!("; not limited: {} not served, {}", processes(s.unserved), mib(s.peak_unserved_bytes / PAGE));
    }
    if s.killed > 0 {
        all += &format!("; {} killed for want of memory", processes(s.killed));
    }
    all
}

fn line(args: &RunArgs, o: &RunEnd) -> String {
    let (s, c) = (&o.stats, &o.stats.counts);
    if !o.was_served {
        return "refault: the program ended before its memory could be served".into();
    }
    let throttled = match c.throttled {
        0 => String::new(),
        n => format!(", and {n} faults waited for {:.1} s because of --memory-high", c.throttled_ns as f64 / 1e9),
    };
    let beyond = match (args.overhead_beside, s.peak_taken_pages > s.max_pages + s.max_pages / 20) {
        (true, _) => format!(", {} with what is beside it", mib(s.peak_taken_pages)),
        // Memory that is found when it is there already, as after a fork.
        (false, true) => format!(", {} for a moment with what was found late", mib(s.peak_taken_pages)),
        (false, false) => String::new(),
    };
    let (some, full) = (Stall::of(o, s.stall_some_us), Stall::of(o, s.stall_full_us));
    format!(
        "refault: {:.2} s; peak {} of {}{beyond} (processes {}, pool {}), swapped {} at most, {}; {} faults, {} read back, {} refaults; stalled: some {:.1} %, full \
         {:.1} % of the time{}{}",
        o.wall.as_secs_f64(),
        mib(s.peak_pages),
        mib(s.max_pages),
        mib(s.peak_resident_pages),
        mib(s.peak_pool_bytes.div_ceil(PAGE)),
        mib(s.peak_swap_pages),
        args.swap_directory().map_or("without a swap file".into(), |dir| {
            format!("{} of it in a file in {}", mib(s.peak_file_pages), dir.display())
        }),
        c.faults,
        c.swapped_in,
        refaults(s),
        some.share * 100.0,
        full.share * 100.0,
        throttled,
        not_limited(s),
    )
}
