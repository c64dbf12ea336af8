//! Sizes of a group of a scenario, tried in virtual time.

use super::grid::Grid;
use super::request::SizeRequest;
use super::search::search;
use super::sizing::{Figure, Point, Sizing};
use super::target::{Metric, MetricTarget};
use crate::memory_size::{Size as MemorySize, human};
use crate::runner::{FinishedRun, Job, Runner, limit, policy_text, scaled};
use crate::{Failure, Watch};
use refault_lab::machine::{Ending, MemcgResult};
use refault_lab::scenario::{EventAction, EventSpec, PolicySpec, Scenario};

/// A group, and what it is looked at with.
#[derive(Debug)]
pub(super) struct ScenarioSubject<'a> {
    request: &'a SizeRequest,
    target: MetricTarget,
    watch: Watch,
    file: String,
    scenario: Scenario,
    policy: PolicySpec,
    /// The group, an index.
    memcg: usize,
}

/// Pages: bytes of one.
const PAGE: u32 = 4096;

impl<'a> ScenarioSubject<'a> {
    pub(super) fn new(
        scenario: &Scenario,
        file: &str,
        request: &'a SizeRequest,
        watch: &Watch,
    ) -> Result<Self, Failure> {
        let (mut scenario, target) = (scenario.clone(), request.target());
        if let Some(limits) = &request.memcg_limits {
            limit(&mut scenario, limits)?;
        }
        let mut scenario = scaled(&scenario, file, request.scale)?;
        scenario.seed = request.seed.unwrap_or(scenario.seed);
        let mut policy = scenario.policy.clone();
        policy.kernel = request.kernel.unwrap_or(policy.kernel);
        if let Some(named) = request.policy {
            policy.policy = named;
            policy.config().check().map_err(|e| format!("--policy {named}: {e}"))?;
        }
        scenario.check_acts(file, std::slice::from_ref(&policy))?;
        target.metric().check_counted(policy.policy)?;
        let memcg = find(&scenario, file, request.group.as_deref())?;
        check(&scenario, file, memcg, request)?;
        Ok(ScenarioSubject { request, target, watch: watch.clone(), file: file.to_owned(), scenario, policy, memcg })
    }

    /// Tries sizes.
    pub(super) fn run(self) -> Result<Sizing, Failure> {
        let grid = self.grid()?;
        let runner = Runner::new(self.request.threads, false, &self.watch);
        let (points, verdict) = search(grid, |sizes| self.probe(&runner, sizes))?;
        Ok(Sizing {
            name: self.scenario.name.clone(),
            group: self.scenario.memcgs[self.memcg].path.clone(),
            limit: self.request.limit,
            target: self.target,
            policy: policy_text(&self.policy),
            seed: self.scenario.seed,
            scale: self.request.scale,
            page_size: PAGE.into(),
            grid,
            points: points.into_values().collect(),
            verdict,
            summary: None,
            recorded: None,
            rests_on_others: false,
            baseline: None,
            doubted: Vec::new(),
            notes: Vec::new(),
            sampled: None,
        })
    }

    /// The sizes to try.
    fn grid(&self) -> Result<Grid, Failure> {
        let s = &self.scenario;
        let own: u64 = (s.objects.iter().enumerate())
            .filter(|(_, o)| is_inside(s, o.memcg, self.memcg))
            .map(|(n, o)| o.pages * self.copies(n))
            .sum();
        // Page tables and tree nodes are charged, too; and pages ahead of need, of each CPU.
        let whole = own + own / 32 + 256;
        let usable = s.machine.memory_pages - s.machine.kernel_pages;
        let above = std::iter::successors(s.memcgs[self.memcg].parent, |&m| s.memcgs[m].parent);
        let most = above.map(|m| s.memcgs[m].limits.max).fold(usable, u64::min);
        let pages = |size: &MemorySize| size.pages(PAGE, s.machine.memory_pages);
        self.request.grid(&pages, whole, most, human(most * u64::from(PAGE)))
    }

    /// Number of copies of an object: one for each copy of the task if it is private.
    fn copies(&self, object: usize) -> u64 {
        if !self.scenario.objects[object].private {
            return 1;
        }
        let uses =
            |t: &&refault_lab::scenario::TaskSpec| t.phases.iter().flat_map(|p| &p.streams).any(|s| s.object == object);
        self.scenario.tasks.iter().find(uses).map_or(1, |t| t.count.into())
    }

    /// Runs the scenario with each of these sizes.
    fn probe(&self, runner: &Runner, sizes: &[u64]) -> Result<Vec<Point>, Failure> {
        let job = |&pages: &u64| {
            let mut scenario = self.scenario.clone();
            self.request.limit.set(&mut scenario.memcgs[self.memcg].limits, pages);
            let name = format!("{}, {} {}", self.file, self.request.limit.file(), human(pages * u64::from(PAGE)));
            Job { name, scenario, policy: self.policy.clone() }
        };
        let jobs: Vec<_> = sizes.iter().map(job).collect();
        let done = runner.run("sizing", &jobs)?;
        sizes.iter().zip(&done).map(|(&pages, done)| self.point(pages, done)).collect()
    }

    fn point(&self, pages: u64, done: &FinishedRun) -> Result<Point, Failure> {
        let result = &done.result;
        let group = &result.memcgs[self.memcg + 1];
        let failed = match result.ending {
            _ if group.tasks.oom_kills > 0 => Some("killed for lack of memory"),
            _ if group.tasks.killed > 0 => Some("killed by an event"),
            Ending::Stuck => Some("stuck"),
            Ending::TasksDone | Ending::Time => None,
        };
        let metric = self.target.metric();
        let seconds = group.lived_seconds(result.seconds);
        let value = group_value(metric, group, seconds);
        if value.is_none() && failed.is_none() {
            let what = format!("tasks of {} measure no operation, so that there is no {}", group.path, metric.name());
            return Err(format!("{}: {what}; see measured in docs/reference/scenario-keys.md", self.file).into());
        }
        let met = failed.is_none() && value.is_some_and(|value| self.target.is_met(value));
        Ok(Point { pages, value, failed, met, bounds: None, beside: beside(group, seconds) })
    }
}

/// The place of a group.
fn find(scenario: &Scenario, file: &str, group: Option<&str>) -> Result<usize, String> {
    let paths: Vec<_> = scenario.memcgs.iter().map(|m| m.path.as_str()).collect();
    let known = || match paths.is_empty() {
        true => "it has none; write [memcg.\"/...\"] and place tasks in it".to_owned(),
        false => format!("it has {}", paths.join(", ")),
    };
    let Some(path) = group else {
        return Err(format!("{file}: --group PATH is missing: a group of the scenario; {}", known()));
    };
    let place = paths.iter().position(|known| *known == path);
    place.ok_or_else(|| format!("{file}: --group {path:?} is not a group of the scenario; {}", known()))
}

/// Fails where a group cannot have the target, or a limit that is tried.
fn check(scenario: &Scenario, file: &str, memcg: usize, request: &SizeRequest) -> Result<(), String> {
    let (path, target) = (&scenario.memcgs[memcg].path, request.target());
    let metric = target.metric();
    let moves = |e: &EventSpec| match e.action {
        EventAction::Move { to, .. } => is_inside(scenario, to, memcg),
        _ => false,
    };
    let has_tasks =
        scenario.tasks.iter().any(|t| is_inside(scenario, t.memcg, memcg)) || scenario.events.iter().any(moves);
    let sets = |e: &EventSpec| match e.action {
        EventAction::Set { memcg: of, limits } => of == memcg && request.limit.get(&limits).is_some(),
        _ => false,
    };
    if let Some(n) = scenario.events.iter().position(sets) {
        let (limit, n) = (request.limit.file(), n + 1);
        let what = format!("event[{n}] sets {limit} of {path}, which is what --group and --limit try sizes of");
        return Err(format!("{file}: {what}; leave the event out"));
    }
    if metric.is_of_disks() {
        let what = format!("a scenario has no {}, which is of recordings", metric.name());
        return Err(format!("--target {target}: {what}; ask for refaults_per_s or hit_rate"));
    }
    if metric.needs_operations() && !has_tasks {
        let what = format!("no task runs in {path}, so that it has no {}", metric.name());
        return Err(format!("{file}: {what}; place one in it by memcg = \"...\""));
    }
    Ok(())
}

/// Whether a task or an object of that group is charged to this one.
fn is_inside(scenario: &Scenario, memcg: Option<usize>, group: usize) -> bool {
    std::iter::successors(memcg, |&m| scenario.memcgs[m].parent).any(|m| m == group)
}

fn refaults(group: &MemcgResult) -> u64 {
    group.counter("workingset_refault_anon") + group.counter("workingset_refault_file")
}

/// The metric of a group; none if nothing was measured that it is of.
pub(crate) fn group_value(metric: Metric, group: &MemcgResult, seconds: f64) -> Option<f64> {
    if metric.needs_operations() && group.tasks.accesses == 0 {
        return None;
    }
    let a_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
    let an_access = |n: u64| n as f64 / group.tasks.accesses as f64;
    let latency = &group.tasks.latency;
    Some(match metric {
        Metric::Pressure(kind, Some(window)) => group.psi_peaks[kind][window],
        Metric::Pressure(kind, None) => a_second(group.psi[kind].total_us) / 1e4,
        Metric::RefaultsPerS => a_second(refaults(group)),
        Metric::RefaultsPerAccess => an_access(refaults(group)),
        Metric::SwapInsPerS => a_second(group.counter("pswpin")),
        Metric::SwapInsPerAccess => an_access(group.counter("pswpin")),
        Metric::HitRate => group.tasks.hit_rate(),
        Metric::Misses => (group.tasks.accesses - group.tasks.hits) as f64,
        // Refused before anything runs.
        Metric::ReadBytes | Metric::ReadBytesPerS | Metric::ReadsPerS => return None,
        Metric::OpsPerS => group.tasks.ops_per_s,
        Metric::Latency(500) => latency.p50_ns as f64,
        Metric::Latency(900) => latency.p90_ns as f64,
        Metric::Latency(990) => latency.p99_ns as f64,
        Metric::Latency(999) => latency.p999_ns as f64,
        Metric::Latency(_) => latency.max_ns as f64,
    })
}

/// Figures beside the metric, under the names of metrics where they are the same.
fn beside(group: &MemcgResult, seconds: f64) -> Vec<(&'static str, Figure)> {
    let a_second = |n: u64| Figure::Number(if seconds > 0.0 { n as f64 / seconds } else { 0.0 });
    let mut all = Vec::new();
    if group.tasks.accesses > 0 {
        all.push(("hit_rate", Figure::Share(group.tasks.hit_rate())));
        all.push(("ops_per_s", Figure::Number(group.tasks.ops_per_s)));
        all.push(("p99", Figure::Nanoseconds(group.tasks.latency.p99_ns)));
    }
    all.push(("refaults_per_s", a_second(refaults(group))));
    all.push(("swap_ins_per_s", a_second(group.counter("pswpin"))));
    all.push(("some.avg60", Figure::Percent(group.psi_peaks[0][1])));
    all.push(("oom_kills", Figure::Count(group.tasks.oom_kills)));
    all
}
