//! `refault replay --memcg-column`: a trace whose accesses say which memory cgroup they come from.
//!
//! `command` goes from flags to output, `text` prints the rows of the library.

mod command;
mod text;

pub(super) use command::run;
pub(crate) use text::{EVENT_HEADS, EVENTS};
