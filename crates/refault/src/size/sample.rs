//! Sizes of a trace as a whole, tried on samples of its pages.

use super::request::SizeRequest;
use super::search::search;
use super::sizing::{Figure, Point, STANDARD_ERROR, Sampled, Sizing};
use super::target::MetricTarget;
use crate::replay::clocked::Clocked;
use crate::replay::policy::RowPolicy;
use crate::replay::sample::{OneIn, Question, SampledBy, SampledEstimate, estimate};
use crate::settings::check_on_sample;
use crate::{Failure, Watch};
use refault_mm::Config;
use refault_trace::{LoadOptions, RecordSource, SampleUnit, Samples};

/// Samples of a trace, and the request.
#[derive(Debug)]
pub(super) struct SampleSubject<'a> {
    request: &'a SizeRequest,
    target: MetricTarget,
    watch: Watch,
    /// Its name in errors.
    file: String,
    sampling: SampledBy,
    samples: Samples,
    page_size: u32,
    cfg: Config,
}

impl<'a> SampleSubject<'a> {
    /// Reads the samples.
    pub(super) fn read(
        source: &mut dyn RecordSource,
        request: &'a SizeRequest,
        watch: &Watch,
    ) -> Result<Self, Failure> {
        request.check_samples()?;
        let all = SampledBy { one_in: OneIn(1), unit: SampleUnit::Page, salts: 1 };
        let sampling = request.sampling.unwrap_or(all);
        let (file, page_size) = (source.name().to_owned(), source.header().page_size);
        let options = LoadOptions { default_via: request.via, ..LoadOptions::default() };
        let mut source = Clocked::new(Box::new(source), None, watch);
        let samples = Samples::load(&mut source, &options, &sampling.samples(request.seed.unwrap_or(0)))?;
        check_on_sample(&request.flags, &samples.traces[0], &file)?;
        let (cfg, target) = (request.config()?, request.target());
        target.metric().check_counted(request.policy_of_trace())?;
        Ok(SampleSubject { request, target, watch: watch.clone(), file, sampling, samples, page_size, cfg })
    }

    /// Looks for the smallest size with a hit rate.
    pub(super) fn run(self) -> Result<Sizing, Failure> {
        let (request, page_size, footprint) = (self.request, self.page_size, self.samples.footprint_pages);
        let policy = request.policy_of_trace_text(&self.cfg);
        let policies = [(RowPolicy::Linux(request.policy_of_trace()), Some(self.cfg))];
        // Page tables and tree nodes are charged, too.
        let whole = footprint + footprint / 32 + 64;
        let grid = request.grid(&|size| size.pages(page_size, footprint), whole, u64::MAX, String::new())?;
        let (points, verdict) = search(grid, |sizes| {
            let question = Question {
                one_in: self.sampling.one_in,
                page_size,
                sizes,
                kernel: request.kernel.unwrap_or_default(),
                policies: &policies,
                swap_max_pages: request.swap_max_pages(page_size, footprint),
                threads: request.threads(),
                watch: self.watch.clone(),
            };
            let estimates = estimate(&self.samples, &question);
            let estimates = estimates.map_err(|e| Failure::from(format!("{}: {e}", self.file)))?;
            Ok::<_, Failure>(estimates.iter().map(|estimate| point(&self.target, estimate)).collect())
        })?;
        Ok(Sizing {
            name: self.samples.traces[0].name.clone(),
            group: "/".into(),
            limit: request.limit,
            target: self.target,
            policy,
            seed: request.seed.unwrap_or(0),
            scale: 1.0,
            page_size: page_size.into(),
            grid,
            points: points.into_values().collect(),
            verdict,
            summary: None,
            recorded: None,
            rests_on_others: false,
            baseline: None,
            doubted: Vec::new(),
            notes: Vec::new(),
            sampled: Some(Sampled { one_in: self.sampling.one_in, samples: self.sampling.salts }),
        })
    }
}

fn point(target: &MetricTarget, estimate: &SampledEstimate) -> Point {
    let failed = (estimate.out_of_memory() > 0).then_some("out of memory");
    let (value, (lowest, highest)) = (estimate.hit_rate(), estimate.range());
    let mut beside = vec![("misses", Figure::Count(estimate.misses()))];
    beside.extend(estimate.error().map(|error| (STANDARD_ERROR, Figure::Share(error))));
    beside.extend([("lowest", Figure::Share(lowest)), ("highest", Figure::Share(highest))]);
    Point {
        pages: estimate.memory_pages,
        value: Some(value),
        failed,
        met: failed.is_none() && target.is_met(value),
        bounds: None,
        beside,
    }
}
