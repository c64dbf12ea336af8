//! Runs several machines of the lab at once, a thread each, and what the subcommands share for it: scale, limits from a
//! file, policies in words.

mod job;
mod limits;
mod policy;
mod progress;
mod scale;

pub(crate) use job::{Done, Job, Runner, ending_name, ending_text};
pub(crate) use limits::limit;
pub(crate) use policy::{Overrides, overrides, policy_text};
pub(crate) use scale::{default_scale, parse_scale, scaled};
