//! `refault replay` of scenarios: machines in virtual time.
//!
//! `detect` refuses flags that are not for scenarios, `traces` makes scenarios of traces on tiers,
//! `command` has the library run them, and `text`, `csv`, `groups` and `tiers` print. The parent's
//! `command` calls it.

mod command;
mod csv;
mod detect;
mod groups;
mod text;
mod tiers;
mod traces;

pub(super) use command::run;
pub(super) use detect::are_scenarios;
pub(super) use traces::run as run_tiers;
