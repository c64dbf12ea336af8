//! `refault replay SCENARIO...`, from its flags to its output.

use super::{csv, groups, text, tiers};
use crate::flags::memory;
use crate::given::{GivenFlags, GivenSettings};
use crate::replay::args::ReplayArgs;
use crate::replay::check::check_different;
use crate::replay::command::{json_of_lines, page_notes, write, write_page};
use crate::{Failure, is_same_file, print};
use refault::document::Document;
use refault::document::scenario::ScenarioDocument;
use refault::scenario::{NamedScenario, ScenarioRequest, ScenarioRun};
use refault::settings::check_on_policies;
use refault_trace::AtomicFile;

/// Runs every scenario under every policy.
pub(in crate::replay) fn run(args: &ReplayArgs, given: &GivenFlags) -> Result<(), Failure> {
    memory::advise_scenario(given.has("scale"));
    let mut request = args.scenario_request(given);
    for path in &args.traces {
        request = request.with_file(path)?;
    }
    let prepared = request.prepared()?;
    run_all(args, &request, &prepared, &given.settings(&OF_RUNS))
}

/// Flags that each run says.
pub(super) const OF_RUNS: [&str; 1] = ["policy"];
/// Flags that a table says in its caption and its heads.
const OF_CAPTION: [&str; 3] = ["scale", "seed", "promotion"];

/// Runs scenarios under every policy.
pub(super) fn run_all(
    args: &ReplayArgs,
    request: &ScenarioRequest,
    all: &[NamedScenario],
    settings: &GivenSettings,
) -> Result<(), Failure> {
    check_outputs(args)?;
    let mut jobs = Vec::new();
    for one in all {
        args.input.note_traces(&one.scenario);
        jobs.extend(request.jobs(std::slice::from_ref(one))?);
    }
    if args.output.lru_gen {
        let configs: Vec<_> = jobs.iter().map(|job| (job.policy.policy.name(), job.policy.config())).collect();
        check_on_policies(&["lru-gen"], configs.iter().map(|(policy, config)| (*policy, Some(config))))?;
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
    let runs = request.run(jobs, &args.watch)?;
    let text = render(args, &runs, settings)?;
    if let (Some(path), [run]) = (&args.lab.series, runs.as_slice()) {
        write(path, run.result().series.csv().as_bytes())?;
    }
    write_page(args, || Document::Scenario(Box::new(ScenarioDocument::of(&runs, page_notes(args, settings)))))?;
    match &args.output.output {
        Some(path) => write(path, text.as_bytes()),
        None => print(&text),
    }
}

impl ReplayArgs {
    /// The request of the library, without scenarios.
    pub(crate) fn scenario_request(&self, given: &GivenFlags) -> ScenarioRequest {
        ScenarioRequest {
            scenarios: Vec::new(),
            scale: self.lab.scale,
            policies: given.has("policy").then(|| self.policy.0.clone()),
            promotion: self.lab.promotion.clone(),
            kernel: self.kernel,
            seed: given.has("seed").then_some(self.seed),
            limits: self.groups.memcg_limits.clone(),
            threads: self.threads,
            check: self.lab.check,
            lru_gen: self.output.lru_gen,
            swap_map: self.output.swap_map,
        }
    }
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

/// The output as it was asked for.
fn render(args: &ReplayArgs, runs: &[ScenarioRun], settings: &GivenSettings) -> Result<String, Failure> {
    let out = &args.output;
    if out.json {
        return json_of_lines("runs", runs, settings, &args.input.notes());
    }
    if out.csv {
        return Ok(csv::csv(runs, settings, out.vmstat));
    }
    let mut all = String::new();
    for (n, run) in runs.iter().enumerate() {
        if n == 0 || runs[n - 1].scenario != run.scenario {
            all += if n > 0 { "\n" } else { "" };
            all += &text::caption(run);
            all += &settings.line(&OF_CAPTION);
        }
        all.push('\n');
        all += &text::tasks(run);
        all += &text::killed(run);
        all += &groups::table(run);
        all += &groups::timeline(run);
        all += &tiers::table(run);
        all += &text::machine(run);
        all += &text::zswap(run);
        all += &text::cpu(run);
        all += &text::waits(run);
        if !out.swap_map && !out.vmstat {
            all += &text::swaps(run);
        }
        if out.vmstat {
            all += &text::vmstat(run);
        }
        if out.lru_gen {
            all += &text::lru_gen(run);
        }
        if out.swap_map {
            all += &text::swap_map(run);
        }
    }
    Ok(all)
}
