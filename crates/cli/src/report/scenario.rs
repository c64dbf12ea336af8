//! A scenario, run.

use super::args::ReportArgs;
use crate::trace_cmd::InputArgs;
use crate::{Failure, GivenFlags};
use refault::document::Document;
use refault::report::of_scenario;
use refault::scenario::{ScenarioRequest, ScenarioRun};
use std::path::Path;

/// Runs a scenario under its own policy, or under those of the flags.
pub(super) fn read(args: &ReportArgs, given: &GivenFlags, path: &Path) -> Result<Document, Failure> {
    let request = ScenarioRequest {
        scale: args.scale,
        policies: given.has("policy").then(|| args.policy.0.clone()),
        kernel: args.kernel,
        seed: given.has("seed").then_some(args.seed),
        threads: args.threads,
        ..ScenarioRequest::default()
    };
    let notes = |runs: &[ScenarioRun]| {
        // Flags of how a trace is read are not of those of a scenario.
        let input = InputArgs::default();
        runs.iter().for_each(|run| input.note_traces(&run.scenario));
        input.notes()
    };
    Ok(Document::Scenario(Box::new(of_scenario(&request, path, &args.watch, notes)?)))
}
