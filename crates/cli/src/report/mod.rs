//! `refault report`: results as a page of HTML that people look at.
//!
//! | file | what is in it |
//! |---|---|
//! | `args`, `command` | the flags; from flags to the file |
//! | `applies` | flags that are of no input |
//! | `input` | what an input is: a trace, a scenario, JSON of a command, an old report |
//! | `trace` | a trace: its curves, and what the policies do with it at one size |
//! | `survey` | one walk over the accesses: objects, the heat map, working sets |
//! | `detail` | one policy at one size, window by window |
//! | `recorded` | a recording: the machine that was recorded |
//! | `groups` | a trace with memory cgroups, group by group |
//! | `scenario` | a scenario, run |
//!
//! It replays with `replay` and `recording`; `page` writes what `refault_report` makes. `main`
//! calls `run`.

mod applies;
mod args;
mod command;
mod detail;
mod folders;
mod groups;
mod input;
mod recorded;
mod scenario;
mod survey;
mod trace;

pub use args::ReportArgs;
pub use command::run;
pub(crate) use command::write;
