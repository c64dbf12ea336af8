//! A trace or a recording looked into: curves, what each policy does with one size window by
//! window, objects, groups.
//!
//! | file | what is in it |
//! |---|---|
//! | `input` | the results of an input: a trace, a scenario, JSON; flags that are of no input |
//! | `request` | [`ReportRequest`]: what is asked of a trace, with the defaults of the command |
//! | `subject` | [`ReportSubject`]: the trace in memory, and the machine if it is a recording |
//! | `trace` | its curves, and what the policies do with it at one size |
//! | `survey` | one walk over the accesses: objects, the heat map, working sets |
//! | `evidence` | what its figures rest on, in words |
//! | `folders` | objects of which there are too many to name each |
//! | `detail` | one policy at one size, window by window |
//! | `recorded` | a recording: the machine that was recorded |
//! | `groups` | a trace with memory cgroups, group by group |
//!
//! It replays with `replay`, `recording` and `scenario`; the result is a `document`.

mod detail;
mod evidence;
mod folders;
mod groups;
mod input;
mod recorded;
mod request;
mod subject;
mod survey;
mod trace;

pub use input::{check_flags, of_json, of_scenario, of_trace};
pub use request::ReportRequest;
pub use subject::ReportSubject;
