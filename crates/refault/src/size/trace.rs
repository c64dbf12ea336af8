//! Sizes of a group of a trace, or of its whole memory, tried by replaying it.

use super::grid::Grid;
use super::request::{Limit, SizeRequest};
use super::sizing::{Figure, Point, Sizing};
use super::summary::SizeSummary;
use super::target::{Metric, MetricTarget};
use crate::memory_size::{Size as MemorySize, beyond_footprint, human};
use crate::replay::clocked::Clocked;
use crate::replay::groups::{Grouped, Tree, feed, load};
use crate::replay::swap::{SwapFigures, SwapSetup};
use crate::settings::check_on_trace;
use crate::watch::Progress;
use crate::{Failure, Watch, on_threads};
use refault_mm::{Config, Counter};
use refault_trace::{LoadOptions, RecordSource, Trace};
use std::borrow::Cow;

/// A trace, a group of it, and what it is looked at with.
#[derive(Debug)]
pub(super) struct TraceSubject<'a> {
    request: &'a SizeRequest,
    target: MetricTarget,
    watch: Watch,
    /// Its name in errors.
    file: String,
    trace: Cow<'a, Trace>,
    tree: Tree,
    page_size: u32,
    /// Place of the group in the tree; 0: the whole trace.
    group: usize,
    cfg: Config,
    /// Pages of all groups together.
    memory_pages: u64,
    swap_max_pages: u64,
    /// The kind of swap; none: it is not looked at.
    swap: Option<SwapSetup>,
    /// From the first to the last access; none if the trace has no times.
    span_s: Option<f64>,
}

impl<'a> TraceSubject<'a> {
    /// Reads a trace.
    pub(super) fn read(
        source: &mut dyn RecordSource,
        request: &'a SizeRequest,
        watch: &Watch,
    ) -> Result<Self, Failure> {
        check_metric(request)?;
        let file = source.name().to_owned();
        let header = source.header();
        if let Some(swap) = request.swap_setup()? {
            swap.check_touches(&file, header.seen, header.recording.as_ref())?;
        }
        let keep_time = request.target().metric().is_per_second();
        let options = LoadOptions { default_via: request.via, keep_time, ..LoadOptions::default() };
        let (trace, tree, page_size) = load(Clocked::new(Box::new(source), None, watch), &options)?;
        TraceSubject::new((Cow::Owned(trace), tree, page_size), file, request, watch)
    }

    /// Takes a trace in memory.
    pub(super) fn of(
        trace: &'a Trace,
        page_size: u32,
        request: &'a SizeRequest,
        watch: &Watch,
    ) -> Result<Self, Failure> {
        check_metric(request)?;
        let tree = match trace.memcg {
            Some(_) if trace.groups != ["/0"] => Some(Tree::new(&trace.groups)?),
            _ => None,
        };
        TraceSubject::new((Cow::Borrowed(trace), tree, page_size), trace.name.clone(), request, watch)
    }

    fn new(
        (trace, tree, page_size): (Cow<'a, Trace>, Option<Tree>, u32),
        file: String,
        request: &'a SizeRequest,
        watch: &Watch,
    ) -> Result<Self, Failure> {
        check_on_trace(&request.flags, &trace, &file)?;
        let target = request.target();
        let metric = target.metric();
        let span_s = trace.time_ns.as_ref().and_then(|times| {
            let span = times.last()?.saturating_sub(*times.first()?);
            (span > 0).then_some(span as f64 / 1e9)
        });
        if metric.is_of_disks() {
            return Err(format!(
                "--target {target}: {file} is no recording of a kernel, so that it has no {}; refault record makes one",
                metric.name(),
            )
            .into());
        }
        if metric.is_per_second() && span_s.is_none() {
            let instead = metric.name().replace("_per_s", "_per_access");
            return Err(format!("--target {target}: {file} has no times; ask for {instead}").into());
        }
        let footprint = u64::from(trace.footprint_pages());
        let tree = match (&request.memcg_limits, tree) {
            (Some(limits), Some(tree)) => tree.with_limits(limits, page_size, footprint)?,
            (Some(_), None) => return Err(format!("--memcg-limits: {file} says nothing of memory cgroups").into()),
            (None, tree) => tree.unwrap_or_else(Tree::whole),
        };
        let path = request.group.as_deref().unwrap_or("/");
        let group = tree.find(path).ok_or_else(|| {
            format!("{file}: --group {path:?} is not a group of the trace, which has {}", tree.listed())
        })?;
        let cfg = request.config()?;
        let swap = request.swap_setup()?;
        swap.as_ref().map_or(Ok(()), |swap| swap.check_page_size(page_size))?;
        let memory_pages = request.memory.as_ref().map_or(u64::MAX, |size| size.pages(page_size, footprint));
        let swap_max_pages = request.swap_max_pages(page_size, footprint);
        let watch = watch.clone();
        let subject = TraceSubject {
            request,
            target,
            watch,
            file,
            trace,
            tree,
            page_size,
            group,
            cfg,
            memory_pages,
            swap_max_pages,
            swap,
            span_s,
        };
        subject.check()?;
        Ok(subject)
    }

    /// Tries sizes.
    pub(super) fn run(self) -> Result<Sizing, Failure> {
        let grid = self.grid()?;
        let threads = self.request.threads();
        let (points, verdict) = self.request.tried(grid, |sizes| {
            let total = (self.trace.accesses.len() * sizes.len()) as u64;
            let progress = self.watch.accesses(format!("sizing {}", self.trace.name), Some(total));
            let done = on_threads(threads, sizes, &|pages| self.probe(pages, &progress));
            self.watch.check()?;
            done.map_err(|e| Failure::from(format!("{}: {e}", self.file)))
        })?;
        let points: Vec<_> = points.into_values().collect();
        let summary = self.request.target.is_none().then(|| SizeSummary::of(&points, None));
        Ok(Sizing {
            name: self.trace.name.clone(),
            group: self.tree.groups[self.group].path.clone(),
            limit: self.request.limit,
            policy: self.policy_text(),
            seed: self.cfg.seed,
            scale: 1.0,
            page_size: self.page_size.into(),
            grid,
            points,
            verdict,
            summary,
            recorded: None,
            rests_on_others: false,
            baseline: None,
            doubted: Vec::new(),
            notes: self.beyond().into_iter().collect(),
            sampled: None,
            target: self.target,
        })
    }

    /// Remark on sizes that hold everything.
    fn beyond(&self) -> Option<String> {
        let (range, footprint) = (self.request.range.as_ref()?, u64::from(self.trace.footprint_pages()));
        let high = range.high.pages(self.page_size, footprint);
        beyond_footprint(&format!("--range {}..{}", range.low, range.high), high, footprint, self.page_size.into())
    }

    /// Fails on flags that make no sense together.
    fn check(&self) -> Result<(), Failure> {
        let Some(size) = &self.request.memory else {
            if self.request.limit.protects() {
                let what = "without a limit of all groups together there is nothing to protect from; give --memory";
                return Err(format!("--limit {}: {what}", self.request.limit.name()).into());
            }
            if self.group == 0 && self.request.limit != Limit::Max {
                return Err(format!(
                    "--limit {}: all of the trace has only max; name a --group",
                    self.request.limit.name()
                )
                .into());
            }
            return Ok(());
        };
        if self.memory_pages == 0 {
            return Err(format!("--memory {size}: is less than one page").into());
        }
        if self.group == 0 {
            let what = "is of all groups together, and without a --group that is what is looked for";
            return Err(format!("--memory {size}: {what}; leave --memory out, or add --group").into());
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
        let pages = |size: &MemorySize| size.pages(self.page_size, footprint);
        self.request.grid(&pages, whole, most, human(most.saturating_mul(self.page_size.into())))
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
        format!("{}{all}", self.request.policy_of_trace_text(&self.cfg))
    }

    /// Replays the trace with one size.
    fn probe(&self, pages: u64, progress: &Progress) -> Result<Point, String> {
        let mut tree = self.tree.clone();
        let mut memory_pages = self.memory_pages;
        match self.group {
            0 => memory_pages = pages,
            group => self.request.limit.set(&mut tree.groups[group].limits, pages),
        }
        // Only what is counted by the second needs the times: a trace in memory may have them
        // anyway.
        let times = self.trace.time_ns.as_deref().filter(|_| self.target.metric().is_per_second());
        let mut cell = Grouped::new(&self.trace, &tree, self.cfg.clone(), memory_pages, self.swap_max_pages)?;
        let accesses = self.trace.accesses.len() as u64;
        cell.cell.machine.swap = self.swap.as_ref().map(|swap| Box::new(swap.pool(self.cfg.seed, accesses)));
        feed(&mut cell, &self.trace, times, progress, &self.watch);
        let count = cell.totals()[self.group];
        let killed = |g: usize| cell.counts[g].killed_at.is_some() && tree.chain(g).any(|above| above == self.group);
        let kills = (0..tree.groups.len()).filter(|&g| killed(g)).count() as u64;
        let stats = cell.cell.engine.memcg_tree_stats(cell.cell.groups[self.group]);
        let refaults = stats.get(Counter::WorkingsetRefaultAnon) + stats.get(Counter::WorkingsetRefaultFile);
        let pool = cell.cell.machine.swap.take().map(|swap| swap.figures(&cell.cell.engine));
        let swap_ins = pool.as_ref().map_or(stats.get(Counter::Pswpin), SwapFigures::swap_ins);
        let hits = count.accesses - count.misses;
        let an_access = |n: u64| n as f64 / count.accesses.max(1) as f64;
        let a_second = |n: u64| self.span_s.map(|span| n as f64 / span);
        let failed = match cell.cell.oom_at {
            Some(_) => Some("out of memory"),
            None => (kills > 0).then_some("killed for lack of memory"),
        };
        let value = match self.target.metric() {
            Metric::HitRate => Some(an_access(hits)),
            Metric::RefaultsPerAccess => Some(an_access(refaults)),
            Metric::SwapInsPerAccess => Some(an_access(swap_ins)),
            Metric::RefaultsPerS => a_second(refaults),
            Metric::SwapInsPerS => a_second(swap_ins),
            Metric::Misses => Some(count.misses as f64),
            Metric::ReadBytes | Metric::ReadBytesPerS | Metric::ReadsPerS => None,
            Metric::Pressure(..) | Metric::OpsPerS | Metric::Latency(_) => None,
        };
        let met = failed.is_none() && value.is_some_and(|value| self.target.is_met(value));
        let mut beside = vec![
            ("hit_rate", Figure::Share(an_access(hits))),
            ("misses", Figure::Count(count.misses)),
            ("refaults", Figure::Count(refaults)),
            ("swap_ins", Figure::Count(swap_ins)),
            ("oom_kills", Figure::Count(kills)),
        ];
        beside.extend(pool.iter().flat_map(of_pool));
        Ok(Point { pages, value, failed, met, bounds: None, beside })
    }
}

/// Figures of swap beside the metric.
fn of_pool(swap: &SwapFigures) -> Vec<(&'static str, Figure)> {
    let disk = (swap.disk_ins > 0).then_some(("disk_ins", Figure::Count(swap.disk_ins)));
    let pool = swap.setup.swap.kind.compresses().then_some([
        ("pool_ins", Figure::Count(swap.pool_ins)),
        ("pool_peak_bytes", Figure::Bytes(swap.pool_peak_bytes)),
        ("codec_ns", Figure::Nanoseconds(swap.codec_ns)),
    ]);
    pool.into_iter().flatten().chain(disk).collect()
}

/// Fails on metrics that no trace has, before it is read.
fn check_metric(request: &SizeRequest) -> Result<(), String> {
    let target = request.target();
    let metric = target.metric();
    if metric.needs_machine() {
        return Err(format!(
            "--target {target}: devices of a replay answer at once, so a trace has no {}; it has {}, or write a scenario \
             that replays the trace (docs/reference/scenario-keys.md)",
            metric.name(),
            Metric::names(|metric| !metric.needs_machine() && !metric.is_of_disks()),
        ));
    }
    metric.check_counted(request.policy_of_trace())
}
