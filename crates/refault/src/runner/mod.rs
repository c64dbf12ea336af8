//! Runs several machines of the lab at once, a thread each, and what the subcommands share for it:
//! scale, limits from a file, policies in words.
//!
//! | file | what is in it |
//! |---|---|
//! | `job` | [`Runner`]: runs on threads; what comes out does not depend on how many there are |
//! | `scale` | how much smaller than published a scenario runs |
//! | `limits` | limits of groups from a file |
//! | `policy` | policies of scenarios in words |
//!
//! It calls the lab, and `settings` and `memory_size` for what users write.

mod job;
mod limits;
mod policy;
mod scale;

pub use job::{FinishedRun, Job, Runner, ending_name, ending_text};
pub use limits::limit;
pub use policy::{Overrides, overrides, policy_text};
pub use scale::{default_scale, parse_scale, scaled};
