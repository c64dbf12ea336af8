//! A trace: its curves, and what the policies do with it at one size.

use super::detail;
use super::evidence::evidence;
use super::recorded::MachineReplay;
use super::request::ReportRequest;
use super::survey::{Survey, survey};
use crate::curve::{knee, main_curve, miss_ratio, of_rows};
use crate::document::trace::{CurveFacts, TraceDetail, TraceDocument, TraceFacts};
use crate::memory_size::{Size, beyond_footprint, human};
use crate::names::shown;
use crate::replay::policy::RowPolicy;
use crate::replay::{Plan, Row, curve_sizes};
use crate::settings::{self, kernel_of, policy_of, swappiness_of};
use crate::{Failure, on_threads};
use refault_mm::opt::next_uses;
use refault_mm::{Config, Kernel, Policy};
use refault_trace::{Header, Recording, Trace};

/// Windows of time at most.
const WINDOWS: u64 = 200;
/// Alignment of windows, in accesses: they begin where a replay looks at its clock, and so change
/// nothing.
const ALIGN: u64 = 64;
/// Memory a little below and above, in percent: how far misses spread says how stable a policy is.
const NEAR: [i64; 4] = [-2, -1, 1, 2];
/// The same of a long trace.
const NEAR_OF_LONG: [i64; 2] = [-2, 2];
/// Accesses that the replays of all curves may have together: a long trace gets fewer points, so
/// that nobody waits for minutes, but at least [`LEAST_POINTS`].
const MOST_REPLAYED: u64 = 1_800_000_000;
/// Points of a curve at least.
const LEAST_POINTS: u64 = 6;

pub(super) type Policies = Vec<(RowPolicy, Option<Config>)>;

/// Where windows begin, and the end.
pub(super) fn windows(accesses: u64) -> Vec<u64> {
    let step = accesses.div_ceil(WINDOWS).next_multiple_of(ALIGN);
    (0..accesses).step_by(step as usize).chain([accesses]).collect()
}

/// Rules that the engine follows: what no flag says, a recording does, as in `refault replay`.
#[derive(Debug)]
pub(super) struct EngineRules {
    kernel: Option<Kernel>,
    swappiness: Option<u32>,
    /// Policy of the recorded kernel.
    policy: Option<Policy>,
}

impl EngineRules {
    pub(super) fn of(request: &ReportRequest, recording: Option<&Recording>) -> EngineRules {
        EngineRules {
            kernel: request.kernel.or(recording.map(kernel_of)),
            swappiness: recording.and_then(swappiness_of),
            policy: recording.map(policy_of),
        }
    }

    pub(super) fn policies(&self, request: &ReportRequest) -> Result<Policies, Failure> {
        let config = |policy: RowPolicy| -> Result<Option<Config>, Failure> {
            let RowPolicy::Linux(linux) = policy else { return Ok(None) };
            let mut cfg = settings::config(self.kernel, linux);
            cfg.seed = request.seed;
            cfg.swappiness = self.swappiness.unwrap_or(cfg.swappiness);
            cfg.check()?;
            Ok(Some(cfg))
        };
        request.policies.iter().map(|&policy| Ok((policy, config(policy)?))).collect()
    }
}

/// A trace, and what is asked of it.
pub(super) struct Work<'a> {
    pub(super) request: &'a ReportRequest,
    pub(super) trace: &'a Trace,
    pub(super) page_size: u32,
    pub(super) rules: EngineRules,
    pub(super) policies: &'a Policies,
    /// Machine that was recorded; none: it is no recording.
    pub(super) machine: Option<MachineReplay<'a>>,
}

impl Work<'_> {
    fn footprint(&self) -> u64 {
        u64::from(self.trace.footprint_pages())
    }

    fn pages(&self, flag: &str, size: &Size) -> Result<u64, String> {
        match size.pages(self.page_size, self.footprint()) {
            0 => Err(format!("{flag} {size}: is less than one page")),
            // A recorded group has more than files.
            pages if self.machine.is_some() => Ok(pages),
            pages => Ok(pages.min(self.footprint())),
        }
    }

    /// The limit under which a recording was made.
    fn recorded_limit(&self, header: &Header) -> Option<u64> {
        let bytes = header.recording.as_ref()?.memory_max?;
        Some(bytes / u64::from(self.page_size)).filter(|&pages| pages > 0)
    }

    /// Remark on `--at` where it holds everything.
    fn beyond(&self) -> Option<String> {
        // A recorded group has more than files.
        let at = self.request.at.as_ref().filter(|_| self.machine.is_none())?;
        let pages = at.pages(self.page_size, self.footprint());
        beyond_footprint(&format!("--at {at}"), pages, self.footprint(), self.page_size.into())
    }

    /// Rate of a sample that was recorded, and the bar at the limit, or where all of it fits.
    fn of_sample(&self, limit: Option<u64>) -> Result<Option<String>, String> {
        let sample = self.machine.as_ref().and_then(|machine| machine.about().recording.sample);
        let Some(sample) = sample else { return Ok(None) };
        let pages = limit.unwrap_or_else(|| self.footprint());
        let rows = self.rows(vec![pages], self.policies)?;
        let error = rows.iter().filter_map(|row| row.sampling_error).fold(0.0, f64::max);
        let size = human(pages * u64::from(self.page_size));
        Ok(Some(format!(
            "a sample of 1 in {} of the pages: the hit rate in {size} is ± {:.2} points, two standard errors of the choice \
             of pages",
            sample.one_in,
            200.0 * error
        )))
    }

    pub(super) fn document(
        &self,
        header: &Header,
        windows: Vec<u64>,
        window_s: Option<Vec<f64>>,
    ) -> Result<TraceDocument, String> {
        let limit_pages = match &self.request.limit {
            Some(size) => Some(self.pages("--limit", size)?),
            None => self.recorded_limit(header),
        };
        let asked = self.request.at.as_ref().map(|size| self.pages("--at", size)).transpose()?;
        let curves = self.curves(limit_pages)?;
        // A recording is told of by the policy that its kernel had.
        let main = self.rules.policy.map(|policy| policy.name().to_owned());
        let (detail_pages, detail_why) = match (asked, limit_pages) {
            (Some(pages), _) => (pages, "given"),
            (None, Some(pages)) => (pages, "limit"),
            (None, None) => (knee(&curves, main.as_deref()).unwrap_or(self.footprint().div_ceil(4)), "knee"),
        };
        let tenths = self.tenths(&curves, limit_pages, main.as_deref())?;
        let survey = survey(self.trace, &windows);
        let details = self.details(&survey, &windows, detail_pages)?;
        Ok(TraceDocument {
            refault: env!("CARGO_PKG_VERSION").into(),
            command: String::new(),
            seed: self.request.seed,
            kernel: self.rules.kernel.unwrap_or_default().name().into(),
            recorded_policy: main,
            as_recorded: self.machine.is_some(),
            trace: TraceFacts {
                name: shown(&self.trace.name),
                format: header.format.to_string(),
                source: header.source.as_deref().map(shown),
                recorded_on: header.recorded_on.as_deref().map(shown),
                page_size: u64::from(self.page_size),
                accesses: self.trace.accesses.len() as u64,
                writes: survey.writes,
                footprint_pages: self.footprint(),
                objects: self.trace.objects.iter().filter(|o| !o.indices.is_empty()).count() as u64,
                duration_s: window_s.as_ref().and_then(|all| all.last().copied()),
            },
            notes: self.beyond().into_iter().chain(self.of_sample(limit_pages)?).collect(),
            rests_on: evidence(self.request, header, self.trace.accesses.len() as u64, survey.writes),
            limit_pages,
            detail_pages,
            detail_why: detail_why.into(),
            curves,
            tenths,
            details,
            windows,
            window_s,
            objects: survey.objects,
            heat: survey.heat,
            working_set: survey.working_set,
            groups: Vec::new(),
            verify: None,
        })
    }

    fn plan<'p>(&'p self, sizes: Vec<u64>, policies: &'p Policies) -> Plan<'p> {
        Plan {
            plug_ins: &[],
            trace: self.trace,
            accesses: self.trace.accesses.len() as u64,
            page_size: self.page_size,
            sizes,
            policies,
            swap_max_pages: self.request.swap_max_pages(self.page_size, self.footprint()),
            swap: None,
            kernel: self.rules.kernel.unwrap_or_default(),
            seed: self.request.seed,
            windows: None,
            bits: false,
            lru_gen: false,
            swap_map: false,
            threads: self.request.threads(),
            watch: self.request.watch.clone(),
        }
    }

    /// Rows of these sizes: of the recorded machine, or of the trace.
    fn rows(&self, sizes: Vec<u64>, policies: &Policies) -> Result<Vec<Row>, String> {
        match &self.machine {
            Some(machine) => machine.rows(&sizes, policies),
            None => Ok(self.plan(sizes, policies).run()?.into_iter().map(|(row, _)| row).collect()),
        }
    }

    /// Number of points of a curve without `--memory`, at most `most`.
    fn points(&self, most: usize) -> usize {
        let replayed = self.trace.accesses.len() as u64 * self.policies.len() as u64;
        (MOST_REPLAYED / replayed.max(1)).clamp(LEAST_POINTS, most as u64) as usize
    }

    /// Sizes of a curve; for a long trace, an even choice of them.
    fn default_sizes(&self) -> Vec<Size> {
        let all = curve_sizes();
        let points = self.points(all.len());
        (0..points).map(|n| all[n * (all.len() - 1) / (points - 1)].clone()).collect()
    }

    /// Misses by memory.
    fn curves(&self, limit: Option<u64>) -> Result<Vec<CurveFacts>, String> {
        let given = if self.request.memory.is_empty() { self.default_sizes() } else { self.request.memory.clone() };
        let mut sizes = Vec::new();
        // Shares of the files come on top of what is not of files.
        let besides = self.machine.as_ref().filter(|_| self.request.memory.is_empty());
        let besides = besides.map_or(0, |machine| machine.about().besides_pages);
        for size in &given {
            // Small shares of a small trace are less than a page.
            match self.pages("--memory", size) {
                Err(_) if self.request.memory.is_empty() => {}
                pages => sizes.push(pages? + besides),
            }
        }
        sizes.extend(limit);
        sizes.sort_unstable();
        sizes.dedup();
        let rows = self.rows(sizes, self.policies)?;
        Ok(self.policies.iter().map(|(policy, _)| of_rows(&rows, *policy)).collect())
    }

    /// Misses with a tenth less and more memory than at the knee and at today's limit, under the
    /// policy that pages tell most of: replayed, as curves may do anything between two points.
    fn tenths(
        &self,
        curves: &[CurveFacts],
        limit: Option<u64>,
        main: Option<&str>,
    ) -> Result<Option<CurveFacts>, String> {
        let Some(curve) = main_curve(curves, main) else { return Ok(None) };
        let near = |pages: u64| [pages - pages / 10, pages + pages / 10];
        let mut sizes: Vec<u64> = knee(curves, main).into_iter().chain(limit).flat_map(near).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.retain(|&pages| pages > 0);
        let of = |(policy, _): &&(RowPolicy, Option<Config>)| policy.name() == curve.policy;
        let policies: Policies = self.policies.iter().filter(of).cloned().collect();
        let rows = self.rows(sizes, &policies)?;
        Ok(Some(CurveFacts {
            policy: curve.policy.clone(),
            pages: rows.iter().map(|row| row.memory_pages).collect(),
            miss_ratio: rows.iter().map(miss_ratio).collect(),
            read_pages: Vec::new(),
        }))
    }

    /// Results of each policy with that memory, and its misses with a little less and more.
    fn details(&self, survey: &Survey, windows: &[u64], pages: u64) -> Result<Vec<TraceDetail>, String> {
        let objects = (survey.object_of.as_slice(), survey.objects.len());
        let swap_max_pages = self.request.swap_max_pages(self.page_size, self.footprint());
        let total = self.trace.accesses.len() as u64 * self.policies.len() as u64;
        let progress = self.request.watch.accesses(format!("looking into {}", self.trace.name), Some(total));
        let one = |(policy, cfg): &(RowPolicy, Option<Config>)| -> Result<TraceDetail, String> {
            let mut detail = match (cfg, &self.machine, policy) {
                (Some(cfg), Some(machine), RowPolicy::Linux(linux)) => {
                    machine.detail(self.trace, windows, objects, (*linux, cfg), pages)?
                }
                (Some(cfg), ..) => {
                    detail::linux(self.trace, windows, objects, cfg, (pages, swap_max_pages), &progress)?
                }
                (None, ..) => {
                    let ids = self.trace.accesses.iter().map(|a| a.page());
                    let next = next_uses(ids, self.trace.footprint_pages() as usize)?;
                    detail::opt(self.trace, windows, objects, (&next, pages), &progress)
                }
            };
            detail.policy = policy.name().into();
            Ok(detail)
        };
        let jobs: Vec<_> = self.policies.iter().collect();
        let mut details = on_threads(self.request.threads(), &jobs, &one)?;
        drop(progress);
        let linux: Policies = self.policies.iter().filter(|(_, cfg)| cfg.is_some()).cloned().collect();
        let is_long = self.request.memory.is_empty() && self.points(curve_sizes().len()) < curve_sizes().len();
        let all: &[i64] = if is_long { &NEAR_OF_LONG } else { &NEAR };
        let near = |percent: &i64| (pages as i64 + pages as i64 * percent / 100).max(1) as u64;
        let mut sizes: Vec<u64> = all.iter().map(near).filter(|&near| near != pages).collect();
        sizes.dedup();
        for row in self.rows(sizes, &linux)? {
            if let Some(detail) = details.iter_mut().find(|d| d.policy == row.policy.name() && row.oom_at.is_none()) {
                detail.near.push((row.memory_pages, row.misses));
            }
        }
        Ok(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_the_trace_and_begin_where_the_clock_is_read() {
        for accesses in [1, 63, 64, 65, 12_800, 12_801, 1_000_003] {
            let all = windows(accesses);
            assert_eq!((all[0], *all.last().unwrap()), (0, accesses));
            assert!(all.windows(2).all(|w| w[0] < w[1]), "{accesses}");
            assert!(all[..all.len() - 1].iter().all(|at| at.is_multiple_of(ALIGN)));
            assert!(all.len() as u64 <= WINDOWS + 1);
        }
    }
}
