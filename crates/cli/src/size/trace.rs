//! Sizes of a group of a trace, or of its whole memory, tried by replaying it.

use super::args::{Limit, SizeArgs};
use super::grid::Grid;
use super::report::{Figure, Point, Report};
use super::target::Metric;
use crate::Failure;
use crate::flags;
use crate::flags::size::{Size, human};
use refault::on_threads;
use refault::replay::groups::{Grouped, Tree, feed, load};
use refault::watch::Progress;
use refault_mm::{Config, Counter};
use refault_trace::{LoadOptions, Trace};

/// A trace, a group of it, and what it is looked at with.
struct Subject<'a> {
    args: &'a SizeArgs,
    trace: Trace,
    tree: Tree,
    page_size: u32,
    /// The group, a place in the tree; 0: all of the trace.
    group: usize,
    cfg: Config,
    /// Pages of all groups together.
    memory_pages: u64,
    swap_max_pages: u64,
    /// From the first to the last access; none if the trace has no times.
    span_s: Option<f64>,
}

pub(super) fn run(args: &SizeArgs) -> Result<Report, Failure> {
    let subject = Subject::new(args)?;
    let grid = subject.grid()?;
    let threads = flags::threads(args.threads);
    let (points, verdict) = args.tried(grid, |sizes| {
        let total = (subject.trace.accesses.len() * sizes.len()) as u64;
        let progress = args.watch.accesses(format!("sizing {}", subject.trace.name), Some(total));
        let done = on_threads(threads, sizes, &|pages| subject.probe(pages, &progress));
        args.watch.check()?;
        done.map_err(|e| Failure::from(format!("{}: {e}", args.subject.display())))
    })?;
    Ok(Report {
        name: subject.trace.name.clone(),
        group: subject.tree.groups[subject.group].path.clone(),
        limit: args.limit.file(),
        target: args.target.clone(),
        policy: subject.policy_text(),
        seed: subject.cfg.seed,
        scale: 1.0,
        page_size: subject.page_size.into(),
        grid,
        points: points.into_values().collect(),
        verdict,
        recorded: None,
        rests_on_others: false,
        baseline: None,
        doubted: Vec::new(),
        notes: Vec::new(),
        sampled: None,
    })
}

impl<'a> Subject<'a> {
    fn new(args: &'a SizeArgs) -> Result<Subject<'a>, Failure> {
        let file = args.subject.display();
        let metric = args.target.metric();
        if metric.needs_machine() {
            return Err(format!(
                "--target {}: devices of a replay answer at once, so a trace has no {}; it has {}, or write a scenario \
                 that replays the trace (docs/reference/scenario-keys.md)",
                args.target,
                metric.name(),
                Metric::names(|metric| !metric.needs_machine() && !metric.is_of_disks()),
            )
            .into());
        }
        metric.check_counted(args.policy_of_trace())?;
        let t = &args.trace;
        let options =
            LoadOptions { default_via: t.via.into(), keep_time: metric.is_per_second(), ..LoadOptions::default() };
        let (trace, tree, page_size) = load(t.input.open(&args.subject)?, &options)?;
        let span_s = trace.time_ns.as_ref().and_then(|times| {
            let span = times.last()?.saturating_sub(*times.first()?);
            (span > 0).then_some(span as f64 / 1e9)
        });
        if metric.is_of_disks() {
            return Err(format!(
                "--target {}: {file} is no recording of a kernel, so that it has no {}; refault record makes one",
                args.target,
                metric.name(),
            )
            .into());
        }
        if metric.is_per_second() && span_s.is_none() {
            let instead = metric.name().replace("_per_s", "_per_access");
            return Err(format!("--target {}: {file} has no times; ask for {instead}", args.target).into());
        }
        let footprint = u64::from(trace.footprint_pages());
        let tree = match (&args.memcg_limits, tree) {
            (Some(limits), Some(tree)) => tree.with_limits(limits, page_size, footprint)?,
            (Some(_), None) => return Err(format!("--memcg-limits: {file} says nothing of memory cgroups").into()),
            (None, tree) => tree.unwrap_or_else(Tree::whole),
        };
        let path = args.group.as_deref().unwrap_or("/");
        let group = tree.find(path).ok_or_else(|| {
            format!("{file}: --group {path:?} is not a group of the trace, which has {}", tree.listed())
        })?;
        let cfg = args.config()?;
        let memory_pages = t.memory.as_ref().map_or(u64::MAX, |size| size.pages(page_size, footprint));
        let swap_max_pages = t.swap_max.pages(page_size, footprint);
        let subject = Subject { args, trace, tree, page_size, group, cfg, memory_pages, swap_max_pages, span_s };
        subject.check()?;
        Ok(subject)
    }

    /// Fails on flags that make no sense together.
    fn check(&self) -> Result<(), Failure> {
        let Some(size) = &self.args.trace.memory else {
            if self.args.limit.protects() {
                let what = "without a limit of all groups together there is nothing to protect from; give --memory";
                return Err(format!("--limit {}: {what}", self.args.limit.name()).into());
            }
            if self.group == 0 && self.args.limit != Limit::Max {
                return Err(format!(
                    "--limit {}: all of the trace has only max; name a --group",
                    self.args.limit.name()
                )
                .into());
            }
            return Ok(());
        };
        if self.memory_pages == 0 {
            return Err(format!("--memory {size}: is less than one page").into());
        }
        if self.group == 0 {
            return Err(format!("--memory {size}: is what is looked for, as there is no --group; leave one out").into());
        }
        Ok(())
    }

    /// The sizes to try.
    fn grid(&self) -> Result<Grid, Failure> {
        let footprint = u64::from(self.trace.footprint_pages());
        let most = self.memory_pages.min(self.above());
        let own: u64 = (self.trace.objects.iter())
            .filter(|o| self.tree.chain(self.tree.of_trace[usize::from(o.group)]).any(|g| g == self.group))
            .map(|o| o.indices.len() as u64)
            .sum();
        // Page tables and tree nodes are charged, too.
        let whole = own + own / 32 + 64;
        let pages = |size: &Size| size.pages(self.page_size, footprint);
        self.args.grid(&pages, whole, most, human(most.saturating_mul(self.page_size.into())))
    }

    /// The smallest limit of the groups above.
    fn above(&self) -> u64 {
        let above = self.tree.chain(self.group).skip(1);
        above.map(|g| self.tree.groups[g].limits.max).fold(u64::MAX, u64::min)
    }

    fn policy_text(&self) -> String {
        let all = match self.memory_pages {
            u64::MAX => String::new(),
            pages => format!(", {} for all groups", human(pages * u64::from(self.page_size))),
        };
        format!("{}{all}", self.args.policy_of_trace_text(&self.cfg))
    }

    /// Replays the trace with one size.
    fn probe(&self, pages: u64, progress: &Progress) -> Result<Point, String> {
        let mut tree = self.tree.clone();
        let mut memory_pages = self.memory_pages;
        match self.group {
            0 => memory_pages = pages,
            group => self.args.limit.set(&mut tree.groups[group].limits, pages),
        }
        let mut cell = Grouped::new(&self.trace, &tree, self.cfg.clone(), memory_pages, self.swap_max_pages)?;
        feed(&mut cell, &self.trace, progress, &self.args.watch);
        let count = cell.totals()[self.group];
        let killed = |g: usize| cell.counts[g].killed_at.is_some() && tree.chain(g).any(|above| above == self.group);
        let kills = (0..tree.groups.len()).filter(|&g| killed(g)).count() as u64;
        let stats = cell.cell.engine.memcg_tree_stats(cell.cell.groups[self.group]);
        let refaults = stats.get(Counter::WorkingsetRefaultAnon) + stats.get(Counter::WorkingsetRefaultFile);
        let (hits, swap_ins) = (count.accesses - count.misses, stats.get(Counter::Pswpin));
        let an_access = |n: u64| n as f64 / count.accesses.max(1) as f64;
        let a_second = |n: u64| self.span_s.map(|span| n as f64 / span);
        let failed = match cell.cell.oom_at {
            Some(_) => Some("out of memory"),
            None => (kills > 0).then_some("killed for lack of memory"),
        };
        let value = match self.args.target.metric() {
            Metric::HitRate => Some(an_access(hits)),
            Metric::RefaultsPerAccess => Some(an_access(refaults)),
            Metric::SwapInsPerAccess => Some(an_access(swap_ins)),
            Metric::RefaultsPerS => a_second(refaults),
            Metric::SwapInsPerS => a_second(swap_ins),
            Metric::Misses => Some(count.misses as f64),
            Metric::ReadBytes | Metric::ReadBytesPerS | Metric::ReadsPerS => None,
            Metric::Pressure(..) | Metric::OpsPerS | Metric::Latency(_) => None,
        };
        let met = failed.is_none() && value.is_some_and(|value| self.args.target.is_met(value));
        let beside = vec![
            ("hit_rate", Figure::Share(an_access(hits))),
            ("misses", Figure::Count(count.misses)),
            ("refaults", Figure::Count(refaults)),
            ("swap_ins", Figure::Count(swap_ins)),
            ("oom_kills", Figure::Count(kills)),
        ];
        Ok(Point { pages, value, failed, met, bounds: None, beside })
    }
}
