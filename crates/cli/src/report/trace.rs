//! A trace: its curves, and what the policies do with it at one size.

use super::args::ReportArgs;
use super::recorded::{Machine, OfFiles, read_pages};
use super::survey::{Survey, survey};
use super::{detail, groups};
use crate::Failure;
use crate::flags::kernel;
use crate::flags::recorded;
use crate::flags::size::Size;
use crate::page::command_line;
use crate::replay::clocked::Clocked;
use crate::replay::policy::RowPolicy;
use crate::replay::{Plan, Row, curve_sizes};
use refault::on_threads;
use refault_mm::opt::next_uses;
use refault_mm::{Config, Kernel, Policy};
use refault_report::document::trace::{Curve, Detail, TraceDocument, TraceFacts};
use refault_report::document::verify::VerifyDocument;
use refault_report::names::shown;
use refault_report::{Document, knee, main_curve};
use refault_trace::{Header, LoadOptions, Recording, Trace};
use std::path::Path;

/// Windows of time at most.
const WINDOWS: u64 = 200;
/// Windows begin where the clock of a replay is looked at, so that they change nothing.
const ALIGN: u64 = 64;
/// Memory a little below and above, in percent: how far misses spread says how stable a policy is.
const NEAR: [i64; 4] = [-2, -1, 1, 2];
/// The same of a long trace.
const NEAR_OF_LONG: [i64; 2] = [-2, 2];
/// Accesses that the replays of the curves have together, if the fewest points are not more: the
/// curves of a long trace have fewer points, so that nobody waits for minutes.
const MOST_REPLAYED: u64 = 1_800_000_000;
/// Points of a curve at least.
const LEAST_POINTS: u64 = 6;

pub(super) type Policies = Vec<(RowPolicy, Option<Config>)>;

/// Replays a trace as often as the pages need.
pub(super) fn read(args: &ReportArgs, path: &Path) -> Result<Document, Failure> {
    let source = args.input.open(path)?;
    let machine = source.header().recording.is_some().then(|| Machine::read(args, path)).transpose()?;
    let mut source = Clocked::new(Box::new(OfFiles(source)), args.max_accesses, &args.watch);
    let opts = LoadOptions { default_via: args.via.into(), max_accesses: args.max_accesses, ..LoadOptions::default() };
    let trace = Trace::load(&mut source, &opts)?;
    let windows = windows(trace.accesses.len() as u64);
    let header = refault_trace::RecordSource::header(&source).clone();
    let seconds = source.seconds(&windows);
    let has_groups = source.has_groups();
    drop(source);
    if let (Some(file), false) = (&args.memcg_limits, has_groups) {
        let (file, path) = (file.display(), path.display());
        return Err(format!("--memcg-limits {file}: {path} says nothing of memory cgroups").into());
    }
    let verified = match &header.recording {
        // The kernel is compared with the whole recording only.
        Some(_) if args.max_accesses.is_none() => Some(verified(path, args.kernel)?),
        _ => None,
    };
    let rules = Rules::of(args, header.recording.as_ref());
    let mut policies = rules.policies(args)?;
    if machine.is_some() {
        // OPT knows pages only: beside readahead its misses say nothing.
        policies.retain(|(policy, _)| *policy != RowPolicy::Opt);
        if policies.is_empty() {
            return Err(format!(
                "--policy opt: {} is a recording, which is replayed with readahead, and opt has none; \
                                refault replay --page-by-page has it",
                path.display()
            )
            .into());
        }
    }
    let work = Work { args, trace: &trace, page_size: header.page_size, rules, policies, machine };
    let document = work.document(&header, windows, seconds).map_err(|e| format!("{}: {e}", path.display()))?;
    // Groups are page by page: of a recording that would be another question.
    let groups = match has_groups && work.machine.is_none() {
        true => groups::read(args, path, &work.policies, &document.windows, document.detail_pages)?,
        false => Vec::new(),
    };
    Ok(Document::Trace(Box::new(TraceDocument { verify: verified, groups, ..document })))
}

/// A recording of a kernel, beside what that kernel did.
fn verified(path: &Path, kernel: Option<Kernel>) -> Result<VerifyDocument, Failure> {
    match Document::from_json(&crate::verify::json(path, kernel)?)? {
        Document::Verify(verified) => Ok(*verified),
        _ => Err(format!("{}: what refault verify says of it is not known", path.display()).into()),
    }
}

/// Where windows begin, and the end.
fn windows(accesses: u64) -> Vec<u64> {
    let step = accesses.div_ceil(WINDOWS).next_multiple_of(ALIGN);
    (0..accesses).step_by(step as usize).chain([accesses]).collect()
}

/// Rules that the engine follows: what no flag says, a recording does, as in `refault replay`.
struct Rules {
    kernel: Option<Kernel>,
    swappiness: Option<u32>,
    /// Policy of the recorded kernel.
    policy: Option<Policy>,
}

impl Rules {
    fn of(args: &ReportArgs, recording: Option<&Recording>) -> Rules {
        Rules {
            kernel: args.kernel.or(recording.map(recorded::kernel)),
            swappiness: recording.and_then(recorded::swappiness),
            policy: recording.map(recorded::policy),
        }
    }

    fn policies(&self, args: &ReportArgs) -> Result<Policies, Failure> {
        let config = |policy: RowPolicy| -> Result<Option<Config>, Failure> {
            let RowPolicy::Linux(linux) = policy else { return Ok(None) };
            let mut cfg = kernel::config(self.kernel, linux);
            cfg.seed = args.seed;
            cfg.swappiness = self.swappiness.unwrap_or(cfg.swappiness);
            cfg.check()?;
            Ok(Some(cfg))
        };
        args.policy.0.iter().map(|&policy| Ok((policy, config(policy)?))).collect()
    }
}

struct Work<'a> {
    args: &'a ReportArgs,
    trace: &'a Trace,
    page_size: u32,
    rules: Rules,
    policies: Policies,
    /// Machine that was recorded; none: it is no recording.
    machine: Option<Machine>,
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

    fn document(
        &self,
        header: &Header,
        windows: Vec<u64>,
        window_s: Option<Vec<f64>>,
    ) -> Result<TraceDocument, String> {
        let limit_pages = match &self.args.limit {
            Some(size) => Some(self.pages("--limit", size)?),
            None => self.recorded_limit(header),
        };
        let asked = self.args.at.as_ref().map(|size| self.pages("--at", size)).transpose()?;
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
            command: shown(&command_line()),
            seed: self.args.seed,
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
            notes: self.args.input.notes(),
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
            swap_max_pages: self.args.swap_max.pages(self.page_size, self.footprint()),
            kernel: self.rules.kernel.unwrap_or_default(),
            seed: self.args.seed,
            windows: None,
            bits: false,
            lru_gen: false,
            swap_map: false,
            threads: self.args.threads(),
            watch: self.args.watch.clone(),
        }
    }

    /// Rows of these sizes: of the recorded machine, or of the trace.
    fn rows(&self, sizes: Vec<u64>, policies: &Policies) -> Result<Vec<Row>, String> {
        match &self.machine {
            Some(machine) => machine.rows(&sizes, policies),
            None => Ok(self.plan(sizes, policies).run()?.into_iter().map(|(row, _)| row).collect()),
        }
    }

    /// How many points a curve has without `--memory`, of so many that there could be.
    fn points(&self, most: usize) -> usize {
        let replayed = self.trace.accesses.len() as u64 * self.policies.len() as u64;
        (MOST_REPLAYED / replayed.max(1)).clamp(LEAST_POINTS, most as u64) as usize
    }

    /// The sizes of a curve, of a long trace evenly chosen ones of them.
    fn default_sizes(&self) -> Vec<Size> {
        let all = curve_sizes();
        let points = self.points(all.len());
        (0..points).map(|n| all[n * (all.len() - 1) / (points - 1)].clone()).collect()
    }

    /// Misses by memory.
    fn curves(&self, limit: Option<u64>) -> Result<Vec<Curve>, String> {
        let given = if self.args.memory.is_empty() { self.default_sizes() } else { self.args.memory.clone() };
        let mut sizes = Vec::new();
        // Shares of the files come on top of what is not of files.
        let besides = self.machine.as_ref().filter(|_| self.args.memory.is_empty());
        let besides = besides.map_or(0, |machine| machine.about().besides_pages);
        for size in &given {
            // Small shares of a small trace are less than a page.
            match self.pages("--memory", size) {
                Err(_) if self.args.memory.is_empty() => {}
                pages => sizes.push(pages? + besides),
            }
        }
        sizes.extend(limit);
        sizes.sort_unstable();
        sizes.dedup();
        let rows = self.rows(sizes, &self.policies)?;
        let curve = |policy: RowPolicy| {
            let of = || rows.iter().filter(move |row| row.policy == policy);
            Curve {
                policy: policy.name().into(),
                pages: of().map(|row| row.memory_pages).collect(),
                miss_ratio: of().map(detail::miss_ratio).collect(),
                read_pages: match of().any(|row| row.reads.is_some()) {
                    true => of().map(read_pages).collect(),
                    false => Vec::new(),
                },
            }
        };
        Ok(self.policies.iter().map(|(policy, _)| curve(*policy)).collect())
    }

    /// Misses with a tenth less and more memory than at the knee and at today's limit, under the
    /// policy that pages tell most of: replayed, as curves may do anything between two points.
    fn tenths(&self, curves: &[Curve], limit: Option<u64>, main: Option<&str>) -> Result<Option<Curve>, String> {
        let Some(curve) = main_curve(curves, main) else { return Ok(None) };
        let near = |pages: u64| [pages - pages / 10, pages + pages / 10];
        let mut sizes: Vec<u64> = knee(curves, main).into_iter().chain(limit).flat_map(near).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.retain(|&pages| pages > 0);
        let of = |(policy, _): &&(RowPolicy, Option<Config>)| policy.name() == curve.policy;
        let policies: Policies = self.policies.iter().filter(of).cloned().collect();
        let rows = self.rows(sizes, &policies)?;
        Ok(Some(Curve {
            policy: curve.policy.clone(),
            pages: rows.iter().map(|row| row.memory_pages).collect(),
            miss_ratio: rows.iter().map(detail::miss_ratio).collect(),
            read_pages: Vec::new(),
        }))
    }

    /// Results of each policy with that memory, and its misses with a little less and more.
    fn details(&self, survey: &Survey, windows: &[u64], pages: u64) -> Result<Vec<Detail>, String> {
        let objects = (survey.object_of.as_slice(), survey.objects.len());
        let swap_max_pages = self.args.swap_max.pages(self.page_size, self.footprint());
        let total = self.trace.accesses.len() as u64 * self.policies.len() as u64;
        let progress = self.args.watch.accesses(format!("looking into {}", self.trace.name), Some(total));
        let one = |(policy, cfg): &(RowPolicy, Option<Config>)| -> Result<Detail, String> {
            let mut detail = match cfg {
                Some(cfg) if let (Some(machine), RowPolicy::Linux(linux)) = (&self.machine, policy) => {
                    machine.detail(self.trace, windows, objects, (*linux, cfg), pages)?
                }
                Some(cfg) => detail::linux(self.trace, windows, objects, cfg, (pages, swap_max_pages), &progress)?,
                None => {
                    let ids = self.trace.accesses.iter().map(|a| a.page());
                    let next = next_uses(ids, self.trace.footprint_pages() as usize)?;
                    detail::opt(self.trace, windows, objects, (&next, pages), &progress)
                }
            };
            detail.policy = policy.name().into();
            Ok(detail)
        };
        let jobs: Vec<_> = self.policies.iter().collect();
        let mut details = on_threads(self.args.threads(), &jobs, &one)?;
        drop(progress);
        let linux: Policies = self.policies.iter().filter(|(_, cfg)| cfg.is_some()).cloned().collect();
        let is_long = self.args.memory.is_empty() && self.points(curve_sizes().len()) < curve_sizes().len();
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
