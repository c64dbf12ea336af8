//! `refault replay --memcg-column`, from its flags to its output.

use super::cell::Grouped;
use super::row::{GroupRow, Row};
use super::tree::Tree;
use super::{json, text};
use crate::flags;
use crate::replay::args::ReplayArgs;
use crate::replay::check::check;
use crate::replay::command::{sizes, write, write_page};
use crate::replay::policy::RowPolicy;
use crate::replay::progress::Progress;
use crate::replay::rules;
use crate::trace_cmd::InputArgs;
use crate::{Failure, Given, Stop, print};
use refault_mm::Config;
use refault_trace::{AtomicFile, LoadOptions, Trace};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Flags of traces that have no meaning with groups, and what there is instead.
const NOT_HERE: [(&str, &str); 6] = [
    ("swap-map", "leave --memcg-column out"),
    ("curve", "`refault size` draws the curve of a group"),
    ("windows", "it is of one hit rate, and here are several"),
    ("miss-bits", "leave --memcg-column out"),
    ("metrics", "--json has all of it"),
    ("lru-gen", "--vmstat has the sizes of every group"),
];

/// Accesses between two steps of the progress bar.
const STEP: usize = 1 << 16;

/// Replays every trace.
pub(in crate::replay) fn run(
    args: &ReplayArgs,
    given: &Given,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<(), Failure> {
    given.refuse(&NOT_HERE, "--memcg-column")?;
    let policies = linux(policies, given)?;
    check(args)?;
    for path in [&args.output.output, &args.output.html].into_iter().flatten() {
        drop(AtomicFile::create(path)?);
    }
    let mut rows = Vec::new();
    for path in &args.traces {
        rows.push(replay(args, path, &policies)?);
    }
    let rules = rules::line(args.kernel.unwrap_or_default(), policies.iter().copied());
    let text = render(args, &rows, &rules)?;
    write_page(args, || json::json(&rows.concat(), &args.input.notes()))?;
    match &args.output.output {
        Some(path) => write(path, text.as_bytes()),
        None => print(&text),
    }
}

/// The policies that the engine runs; OPT only by default, or by `all`, is left out.
fn linux<'a>(
    policies: &'a [(RowPolicy, Option<Config>)],
    given: &Given,
) -> Result<Vec<(RowPolicy, &'a Config)>, Failure> {
    let every = policies.len() == RowPolicy::all().count();
    let named = given.has("policy") && !every;
    if named && policies.iter().any(|(policy, _)| *policy == RowPolicy::Opt) {
        return Err("--policy opt: knows no groups; leave it out with --memcg-column".into());
    }
    Ok(policies.iter().filter_map(|(policy, cfg)| Some((*policy, cfg.as_ref()?))).collect())
}

/// A trace, the tree of its groups if it says anything of them, and bytes a page.
pub(crate) fn load(path: &Path, input: &InputArgs, load: &LoadOptions) -> Result<(Trace, Option<Tree>, u32), Failure> {
    let mut source = input.open(path)?;
    let trace = Trace::load(&mut source, &LoadOptions { keep_memcg: true, ..load.clone() })?;
    let header = source.header();
    if header.memcgs.is_empty() && trace.groups == ["/0"] {
        return Ok((trace, None, header.page_size));
    }
    let tree = Tree::new(&trace.groups).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok((trace, Some(tree), header.page_size))
}

fn replay(args: &ReplayArgs, path: &Path, policies: &[(RowPolicy, &Config)]) -> Result<Vec<Row>, Failure> {
    let options =
        LoadOptions { default_via: args.via.into(), max_accesses: args.max_accesses, ..LoadOptions::default() };
    let (trace, tree, page_size) = load(path, &args.input, &options)?;
    let Some(mut tree) = tree else {
        let what =
            "says nothing of memory cgroups; the native format has a column for them (docs/reference/formats.md)";
        return Err(format!("{}: {what}", path.display()).into());
    };
    let footprint = u64::from(trace.footprint_pages());
    if let Some(file) = &args.groups.memcg_limits {
        tree = tree.with_limits(file, page_size, footprint)?;
    }
    let own = args.memory.is_empty() && tree.is_limited();
    let sizes = match own {
        // The file says the limits: nothing else has one.
        true => vec![u64::MAX],
        false => sizes(args, &trace.name, page_size, footprint)?,
    };
    let cells: Vec<_> = sizes.iter().flat_map(|&pages| policies.iter().map(move |policy| (pages, *policy))).collect();
    let swap = args.swap_max.pages(page_size, footprint);
    let total = trace.accesses.len() as u64 * cells.len() as u64;
    let progress = Progress::new(format!("replaying {}", trace.name), Some(total));
    let threads = flags::threads(args.threads);
    let one = |(pages, (policy, cfg)): (u64, (RowPolicy, &Config))| -> Result<Row, String> {
        let started = Instant::now();
        let mut cell = Grouped::new(&trace, &tree, cfg.clone(), pages, swap)?;
        feed(&mut cell, &trace, &progress, &args.stop);
        Ok(Row {
            trace: trace.name.clone(),
            policy,
            kernel: args.kernel.unwrap_or_default(),
            memory_pages: pages,
            page_size: page_size.into(),
            footprint_pages: footprint,
            trace_accesses: trace.accesses.len() as u64,
            seed: args.seed,
            oom_at: cell.cell.oom_at,
            seconds: started.elapsed().as_secs_f64(),
            groups: group_rows(&cell, &tree),
        })
    };
    let rows = on_threads(threads, &cells, &one);
    args.stop.check()?;
    rows.map_err(|e| format!("{}: {e}", path.display()).into())
}

/// Replays the whole trace.
pub(crate) fn feed(cell: &mut Grouped<'_>, trace: &Trace, progress: &Progress, stop: &Stop) {
    let times = trace.time_ns.as_deref().filter(|t| t.last().is_some_and(|&last| last > 0));
    for start in (0..trace.accesses.len()).step_by(STEP) {
        let end = (start + STEP).min(trace.accesses.len());
        if stop.is_set() || !cell.run(trace, start..end, times) {
            break;
        }
        progress.add((end - start) as u64);
    }
}

/// Does every job on some threads; results are in the order of the jobs.
pub(crate) fn on_threads<J: Copy + Sync, R: Send>(
    threads: usize,
    jobs: &[J],
    one: &(dyn Fn(J) -> Result<R, String> + Sync),
) -> Result<Vec<R>, String> {
    let taken = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<R, String>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(|| {
                while let Some((at, &job)) = {
                    let at = taken.fetch_add(1, Ordering::Relaxed);
                    jobs.get(at).map(|job| (at, job))
                } {
                    let result = one(job);
                    if let Ok(mut done) = done.lock() {
                        done[at] = Some(result);
                    }
                }
            });
        }
    });
    // A thread that panicked ended the scope with its panic: every job has a result.
    done.into_inner().unwrap_or_default().into_iter().flatten().collect()
}

fn group_rows(grouped: &Grouped<'_>, tree: &Tree) -> Vec<GroupRow> {
    let engine = &grouped.cell.engine;
    let row = |((group, count), &id): ((&super::tree::Group, _), _)| GroupRow {
        path: group.path.clone(),
        limits: group.limits,
        count,
        counters: engine.memcg_tree_stats(id),
        gauges: engine.memcg_tree_gauges(id),
        events: engine.memcg_events(id).iter().collect(),
        swap_events: engine.memcg_events(id).swap_iter().collect(),
    };
    tree.groups.iter().zip(grouped.totals()).zip(&grouped.cell.groups).map(row).collect()
}

/// The output as it was asked for; `rules` is a line of those that are not the default ones.
fn render(args: &ReplayArgs, traces: &[Vec<Row>], rules: &str) -> Result<String, Failure> {
    let out = &args.output;
    let all = || traces.iter().flatten().cloned().collect::<Vec<_>>();
    if out.json {
        return json::json(&all(), &args.input.notes());
    }
    if out.csv {
        return Ok(text::csv(&all(), out.vmstat));
    }
    let mut shown = String::new();
    for rows in traces {
        shown += if shown.is_empty() { "" } else { "\n" };
        shown += &text::table(rows, rules);
        if out.vmstat {
            shown.extend(rows.iter().map(text::vmstat));
        }
    }
    Ok(shown)
}
