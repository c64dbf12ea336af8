//! A scenario, run.

use super::args::ReportArgs;
use crate::replay::{Asked, scenario_results};
use crate::{Failure, Given};
use refault_report::Document;
use std::path::Path;

/// Runs a scenario under its own policy, or under those of the flags.
pub(super) fn read(args: &ReportArgs, given: &Given, path: &Path) -> Result<Document, Failure> {
    let policies = given.has("policy").then_some(&args.policy);
    let seed = given.has("seed").then_some(args.seed);
    let asked = Asked {
        scale: args.scale,
        policies,
        kernel: args.kernel,
        seed,
        threads: args.threads,
        check: false,
        watch: &args.watch,
    };
    Ok(Document::from_json(&scenario_results(path, &asked)?.0)?)
}
