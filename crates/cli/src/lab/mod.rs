//! The lab on the command line: runs of scenarios in virtual time, some at once.

mod job;
mod limits;
mod policy;
mod progress;
mod scale;

pub(crate) use job::{Done, Job, Runner, ending_name, ending_text};
pub(crate) use limits::limit;
pub(crate) use policy::{Overrides, overrides, policy_text};
pub(crate) use scale::{default_scale, parse_scale, scaled};
