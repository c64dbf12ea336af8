//! `refault replay` of scenarios: machines in virtual time.
//!
//! `detect` tells scenarios from traces, `traces` makes scenarios of traces on tiers, `command` has
//! the `runner` run them, `outcome` is what came out, and `text`, `csv`, `json`, `groups` and
//! `tiers` print it. The parent's `command` calls it.

mod command;
mod csv;
mod detect;
mod groups;
mod json;
mod outcome;
mod text;
mod tiers;
mod traces;

pub(super) use command::run;
pub(crate) use command::{Asked, results, results_of};
pub(super) use detect::are_scenarios;
pub(crate) use detect::is_scenario;
pub use traces::Tier;
pub(super) use traces::run as run_tiers;
