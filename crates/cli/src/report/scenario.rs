//! A scenario, run.

use super::args::ReportArgs;
use crate::trace_cmd::InputArgs;
use crate::{Failure, Given};
use refault::document::Document;
use refault::document::scenario::ScenarioDocument;
use refault::run_scenario;
use refault::scenario::ScenarioRequest;
use std::path::Path;

/// Runs a scenario under its own policy, or under those of the flags.
pub(super) fn read(args: &ReportArgs, given: &Given, path: &Path) -> Result<Document, Failure> {
    let request = ScenarioRequest {
        scale: args.scale,
        policies: given.has("policy").then(|| args.policy.0.clone()),
        kernel: args.kernel,
        seed: given.has("seed").then_some(args.seed),
        threads: args.threads,
        ..ScenarioRequest::default()
    };
    let runs = run_scenario(&request.with_file(path)?, &args.watch)?;
    // Flags of how a trace is read are not of those of a scenario.
    let input = InputArgs::default();
    runs.iter().for_each(|run| input.note_traces(&run.scenario));
    Ok(Document::Scenario(Box::new(ScenarioDocument::of(&runs, input.notes()))))
}
