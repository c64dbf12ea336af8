//! `refault replay` of scenarios: machines in virtual time.

mod command;
mod csv;
mod detect;
mod groups;
mod json;
mod outcome;
mod text;

pub(super) use command::run;
pub(super) use detect::are_scenarios;
pub(crate) use detect::is_scenario;
