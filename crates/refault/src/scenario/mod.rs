//! Scenarios: machines in virtual time, under one policy or several.
//!
//! | file | what is in it |
//! |---|---|
//! | `request` | [`ScenarioRequest`]: scenarios, and what of them is to be otherwise |
//! | `run` | [`ScenarioRun`]: a run that is over |
//! | `serialise` | a run as `--json` has it |
//! | `tiers` | a trace as the one task of a machine with nodes of memory |
//! | `detect` | which files are scenarios |
//!
//! It calls the `runner`.

mod detect;
mod request;
mod run;
mod serialise;
mod tiers;

pub use detect::is_scenario;
pub use refault_lab::scenario::{COLUMNS, counts_events, group_column, is_size, series_columns, task_column};
pub use request::{NamedScenario, ScenarioRequest};
pub use run::{ScenarioRun, bytes, per_second};
pub use serialise::{device_numbers, points};
pub use tiers::{ACCESS_NS, Tier, TieredTrace};

use crate::{Failure, Watch};

/// Runs every scenario of a request under every policy; runs are by scenario, then by policy.
///
/// # Errors
/// A scenario, a limit or a policy that is impossible, a run that fails, or cancel.
pub fn run_scenario(request: &ScenarioRequest, watch: &Watch) -> Result<Vec<ScenarioRun>, Failure> {
    request.run(request.jobs(&request.prepared()?)?, watch)
}
