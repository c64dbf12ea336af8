//! `refault report`: results as a page of HTML that people look at.
//!
//! | file | what is in it |
//! |---|---|
//! | `args`, `command` | the flags; from flags to the file |
//! | `input` | what an input is: a trace, a scenario, JSON of a command, an old report |
//! | `trace` | a trace or a recording, looked into by the library |
//! | `scenario` | a scenario, run |
//!
//! `page` writes what `refault_report` makes. `main` calls `run`.

mod args;
mod command;
mod input;
mod scenario;
mod trace;

pub use args::ReportArgs;
pub use command::run;
