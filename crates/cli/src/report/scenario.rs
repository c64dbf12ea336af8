//! A scenario, run.

use super::args::ReportArgs;
use crate::replay::scenario_results;
use crate::{Failure, Given};
use refault::document::Document;
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
        swap_map: true,
        ..ScenarioRequest::default()
    };
    Ok(Document::from_json(&scenario_results(&request.with_file(path)?, &args.watch)?.0)?)
}
