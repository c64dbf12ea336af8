//! `refault replay SCENARIO...`, from its flags to its output.

use super::outcome::Outcome;
use super::{csv, groups, json, text, tiers};
use crate::flags::memory;
use crate::replay::args::ReplayArgs;
use crate::replay::check::check_different;
use crate::replay::command::{write, write_page};
use crate::replay::policy::{PolicyList, RowPolicy};
use crate::trace_cmd::InputArgs;
use crate::{Failure, Given, Watch, is_same_file, print};
use refault::runner::{Job, Runner, limit, scaled};
use refault_lab::scenario::{PolicySpec, Scenario};
use refault_mm::Kernel;
use refault_trace::AtomicFile;
use std::path::Path;

/// Runs every scenario under every policy.
pub(in crate::replay) fn run(args: &ReplayArgs, given: &Given) -> Result<(), Failure> {
    memory::advise_scenario(given.has("scale"));
    let mut scenarios = Vec::new();
    for path in &args.traces {
        let file = path.display().to_string();
        let mut scenario = Scenario::load(path)?;
        scenario.policy.kernel = args.kernel.unwrap_or(scenario.policy.kernel);
        if let Some(limits) = &args.groups.memcg_limits {
            limit(&mut scenario, limits)?;
        }
        let mut scenario = scaled(&scenario, &file, args.lab.scale)?;
        if given.has("seed") {
            scenario.seed = args.seed;
        }
        scenarios.push((file, scenario));
    }
    run_all(args, given, scenarios)
}

/// Runs scenarios, with what errors call them, under every policy.
pub(super) fn run_all(args: &ReplayArgs, given: &Given, scenarios: Vec<(String, Scenario)>) -> Result<(), Failure> {
    check_outputs(args)?;
    let mut jobs = Vec::new();
    for (file, scenario) in scenarios {
        args.input.note_traces(&scenario);
        for policy in promotions(args, policies(args, given, &scenario)?, &scenario)? {
            jobs.push(Job { name: format!("{file}, {}", policy.policy), scenario: scenario.clone(), policy });
        }
    }
    if args.lab.series.is_some() && jobs.len() != 1 {
        let (scenarios, policies) = (args.traces.len(), jobs.len() / args.traces.len());
        return Err(format!(
            "--series: wants one scenario and one policy, but there are {scenarios} and {policies}; give one of each"
        )
        .into());
    }
    // An output that cannot be written is known before the run; it is made in earnest at the end,
    // so that a run that is interrupted leaves nothing behind.
    for path in [&args.output.output, &args.lab.series, &args.output.html].into_iter().flatten() {
        drop(AtomicFile::create(path)?);
    }
    let done = Runner::new(args.threads, args.lab.check, &args.watch).run("running", &jobs)?;
    let outcome =
        |(job, done): (Job, _)| Outcome { scenario: job.scenario, scale: args.lab.scale, policy: job.policy, done };
    let outcomes: Vec<_> = jobs.into_iter().zip(done).map(outcome).collect();
    let text = render(args, &outcomes)?;
    if let (Some(path), [outcome]) = (&args.lab.series, outcomes.as_slice()) {
        write(path, outcome.result().series.csv().as_bytes())?;
    }
    write_page(args, || json::json(&outcomes, false, true, &args.input.notes()))?;
    match &args.output.output {
        Some(path) => write(path, text.as_bytes()),
        None => print(&text),
    }
}

/// Options of a run of one scenario.
pub(crate) struct Asked<'a> {
    pub(crate) scale: f64,
    /// In the place of the scenario's own.
    pub(crate) policies: Option<&'a PolicyList>,
    /// In the place of the scenario's own.
    pub(crate) kernel: Option<Kernel>,
    /// In the place of the scenario's own.
    pub(crate) seed: Option<u64>,
    /// One a core if not given.
    pub(crate) threads: Option<u16>,
    pub(crate) check: bool,
    pub(crate) watch: &'a Watch,
}

impl ReplayArgs {
    /// Options that these flags give to one scenario.
    pub(crate) fn asked<'a>(&'a self, given: &Given, watch: &'a Watch) -> Asked<'a> {
        Asked {
            scale: self.lab.scale,
            policies: given.has("policy").then_some(&self.policy),
            kernel: self.kernel,
            seed: given.has("seed").then_some(self.seed),
            threads: self.threads,
            check: self.lab.check,
            watch,
        }
    }
}

/// Runs one scenario under its own policy or under others: JSON, and the time series of each run.
pub(crate) fn results(path: &Path, asked: &Asked<'_>) -> Result<(String, Vec<String>), Failure> {
    results_of(&Scenario::load(path)?, &path.display().to_string(), asked)
}

/// The same of a scenario that was read; `file` is what errors call it.
pub(crate) fn results_of(scenario: &Scenario, file: &str, asked: &Asked<'_>) -> Result<(String, Vec<String>), Failure> {
    let scale = asked.scale;
    let mut scenario = scaled(scenario, file, scale)?;
    scenario.seed = asked.seed.unwrap_or(scenario.seed);
    scenario.policy.kernel = asked.kernel.unwrap_or(scenario.policy.kernel);
    let specs = match asked.policies {
        Some(list) => listed(list, &scenario)?,
        None => vec![scenario.policy.clone()],
    };
    let job =
        |policy: PolicySpec| Job { name: format!("{file}, {}", policy.policy), scenario: scenario.clone(), policy };
    let jobs: Vec<_> = specs.into_iter().map(job).collect();
    let done = Runner::new(asked.threads, asked.check, asked.watch).run("running", &jobs)?;
    let outcome = |(job, done): (Job, _)| Outcome { scenario: job.scenario, scale, policy: job.policy, done };
    let outcomes: Vec<_> = jobs.into_iter().zip(done).map(outcome).collect();
    let series = outcomes.iter().map(|outcome| outcome.result().series.csv()).collect();
    let input = InputArgs::default();
    input.note_traces(&scenario);
    Ok((json::json(&outcomes, false, true, &input.notes())?, series))
}

/// No output is an input or another output.
fn check_outputs(args: &ReplayArgs) -> Result<(), Failure> {
    let outputs = [("--output", &args.output.output), ("--series", &args.lab.series), ("--html", &args.output.html)];
    for (flag, path) in outputs {
        let Some(path) = path else { continue };
        if args.traces.iter().any(|scenario| is_same_file(scenario, path)) {
            return Err(format!("{}: is a scenario to read; give {flag} another name", path.display()).into());
        }
    }
    check_different(&outputs)
}

/// Policies of the flags, with the scenario's settings for its own; or the scenario's alone.
fn policies(args: &ReplayArgs, given: &Given, scenario: &Scenario) -> Result<Vec<PolicySpec>, Failure> {
    if !given.has("policy") {
        return Ok(vec![scenario.policy.clone()]);
    }
    listed(&args.policy, scenario)
}

/// Policies by their names, with what the scenario says about its own.
fn listed(policies: &PolicyList, scenario: &Scenario) -> Result<Vec<PolicySpec>, Failure> {
    let every = policies.0.len() == RowPolicy::all().count();
    let mut list = Vec::new();
    for &policy in &policies.0 {
        match policy {
            RowPolicy::Linux(policy) => {
                let spec = PolicySpec { policy, ..scenario.policy.clone() };
                spec.config().check().map_err(|e| format!("--policy {policy}: {e}"))?;
                list.push(spec);
            }
            // All means all that there are here.
            RowPolicy::Opt if every => {}
            RowPolicy::Opt => {
                return Err(
                    "--policy opt: knows the accesses to come, as a trace has them; in a scenario they depend on \
                            how long everything takes"
                        .into(),
                );
            }
        }
    }
    Ok(list)
}

/// Each of these with each of the policies of `--promotion`.
fn promotions(args: &ReplayArgs, policies: Vec<PolicySpec>, scenario: &Scenario) -> Result<Vec<PolicySpec>, Failure> {
    if args.lab.promotion.is_empty() {
        return Ok(policies);
    }
    if scenario.machine.nodes.is_empty() {
        return Err(format!("--promotion: {} has one node; write [node.NAME] for tiers", scenario.name).into());
    }
    let with = |policy: &PolicySpec, promotion| {
        let mut policy = policy.clone();
        policy.tiering.promotion = Some(promotion);
        policy.tiering.sysctls.entry("numa_balancing".to_owned()).or_insert(2);
        policy
    };
    Ok(policies.iter().flat_map(|policy| args.lab.promotion.iter().map(move |&p| with(policy, p))).collect())
}

/// The output as it was asked for.
fn render(args: &ReplayArgs, outcomes: &[Outcome]) -> Result<String, Failure> {
    let out = &args.output;
    if out.json {
        return json::json(outcomes, out.lru_gen, out.swap_map, &args.input.notes());
    }
    if out.csv {
        return Ok(csv::csv(outcomes, out.vmstat));
    }
    let mut all = String::new();
    for (n, outcome) in outcomes.iter().enumerate() {
        if n == 0 || outcomes[n - 1].scenario != outcome.scenario {
            all += if n > 0 { "\n" } else { "" };
            all += &text::caption(outcome);
        }
        all.push('\n');
        all += &text::tasks(outcome);
        all += &text::killed(outcome);
        all += &groups::table(outcome);
        all += &groups::timeline(outcome);
        all += &tiers::table(outcome);
        all += &text::machine(outcome);
        all += &text::cpu(outcome);
        all += &text::waits(outcome);
        if !out.swap_map && !out.vmstat {
            all += &text::swaps(outcome);
        }
        if out.vmstat {
            all += &text::vmstat(outcome);
        }
        if out.lru_gen {
            all += &text::lru_gen(outcome);
        }
        if out.swap_map {
            all += &text::swap_map(outcome);
        }
    }
    Ok(all)
}
