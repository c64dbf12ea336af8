//! Runs several machines of the lab at once, a thread each, and what the subcommands share for it:
//! scale, limits from a file, policies in words.
//!
//! | file | what is in it |
//! |---|---|
//! | `job` | [`Runner`]: runs on threads; what comes out does not depend on how many there are |
//! | `progress` | the bar of all runs |
//! | `scale` | how much smaller than published a scenario runs |
//! | `limits` | limits of groups from a file |
//! | `policy` | policies of scenarios in words |
//!
//! It calls the lab, and `flags` for sizes and settings. `bench`, `replay` and `size` call it.

mod job;
mod limits;
mod policy;
mod progress;
mod scale;

pub(crate) use job::{Done, Job, Runner, ending_name, ending_text};
pub(crate) use limits::limit;
pub(crate) use policy::{Overrides, overrides, policy_text};
pub(crate) use scale::{default_scale, parse_scale, scaled};
