//! Sizes of a trace as a whole, tried on samples of its pages.

use super::args::{Limit, SizeArgs};
use super::report::{Figure, Point, Report, STANDARD_ERROR, Sampled};
use super::search::search;
use super::target::Metric;
use crate::Failure;
use crate::flags;
use crate::replay::clocked::Clocked;
use crate::replay::policy::RowPolicy;
use crate::replay::sample::{Question, SampledEstimate, estimate};
use refault_trace::{LoadOptions, RecordSource, Samples};

/// Looks for the smallest size with a hit rate.
pub(super) fn run(args: &SizeArgs, source: Box<dyn RecordSource>) -> Result<Report, Failure> {
    check(args)?;
    let page_size = source.header().page_size;
    let (seed, options) =
        (args.seed.unwrap_or(0), LoadOptions { default_via: args.trace.via.into(), ..Default::default() });
    let mut source = Clocked::new(source, None, &args.watch);
    let samples = Samples::load(&mut source, &options, &args.trace.sample.samples(seed))?;
    let footprint = samples.footprint_pages;
    let cfg = args.config()?;
    args.target.metric().check_counted(args.policy_of_trace())?;
    let policy = args.policy_of_trace_text(&cfg);
    let policies = [(RowPolicy::Linux(args.policy_of_trace()), Some(cfg))];
    // Page tables and tree nodes are charged, too.
    let whole = footprint + footprint / 32 + 64;
    let grid = args.grid(&|size| size.pages(page_size, footprint), whole, u64::MAX, String::new())?;
    let (points, verdict) = search(grid, |sizes| {
        let question = Question {
            one_in: args.trace.sample.one_in(),
            page_size,
            sizes,
            kernel: args.kernel.unwrap_or_default(),
            policies: &policies,
            swap_max_pages: args.trace.swap_max.pages(page_size, footprint),
            threads: flags::threads(args.threads),
            watch: args.watch.clone(),
        };
        let estimates = estimate(&samples, &question);
        let estimates = estimates.map_err(|e| Failure::from(format!("{}: {e}", args.subject.display())))?;
        Ok::<_, Failure>(estimates.iter().map(|estimate| point(args, estimate)).collect())
    })?;
    Ok(Report {
        name: samples.traces[0].name.clone(),
        group: "/".into(),
        limit: args.limit.file(),
        target: args.target.clone(),
        policy,
        seed,
        scale: 1.0,
        page_size: page_size.into(),
        grid,
        points: points.into_values().collect(),
        verdict,
        recorded: None,
        rests_on_others: false,
        baseline: None,
        doubted: Vec::new(),
        notes: Vec::new(),
        sampled: Some(Sampled { one_in: args.trace.sample.one_in(), samples: args.trace.sample.salts() }),
    })
}

/// Fails on flags that ask for what a sample cannot tell.
pub(super) fn check(args: &SizeArgs) -> Result<(), Failure> {
    if args.target.metric() != Metric::HitRate {
        return Err(format!("--target {}: samples estimate hit_rate alone; leave --sample out", args.target).into());
    }
    let groups = [
        ("--group", args.group.is_some()),
        ("--memcg-limits", args.memcg_limits.is_some()),
        ("--memory", args.trace.memory.is_some()),
        ("--limit", args.limit != Limit::Max),
    ];
    match groups.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(format!("{flag}: the groups of a trace are replayed whole; leave --sample out").into()),
        None => Ok(()),
    }
}

fn point(args: &SizeArgs, estimate: &SampledEstimate) -> Point {
    let failed = (estimate.out_of_memory() > 0).then_some("out of memory");
    let (value, (lowest, highest)) = (estimate.hit_rate(), estimate.range());
    let mut beside = vec![("misses", Figure::Count(estimate.misses()))];
    beside.extend(estimate.error().map(|error| (STANDARD_ERROR, Figure::Share(error))));
    beside.extend([("lowest", Figure::Share(lowest)), ("highest", Figure::Share(highest))]);
    Point {
        pages: estimate.memory_pages,
        value: Some(value),
        failed,
        met: failed.is_none() && args.target.is_met(value),
        bounds: None,
        beside,
    }
}
