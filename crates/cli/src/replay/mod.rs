//! `refault replay`: a trace through the engine, with devices that answer at once; or a scenario in
//! virtual time.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the flags |
//! | `check`, `acts` | combinations of them that make no sense; policies and traces that a flag acts on |
//! | `command` | from flags to output: which traces, sizes and policies |
//! | `recorded` | a recording of a kernel, with the flags |
//! | `stream` | a trace that is larger than memory |
//! | `text`, `swap_map` | the result as tables |
//! | `groups/` | the same of a trace with memory cgroups |
//! | `sample/` | estimates by samples of a trace |
//! | `scenario/` | scenarios, by the `runner` |
//!
//! It calls the library, and `flags` and `table`. `main` calls `run`; `size` and `report` share its
//! flags.

mod acts;
mod args;
mod check;
mod command;
pub(crate) mod groups;
mod recorded;
pub mod sample;
mod scenario;
mod stream;
mod swap_map;
mod text;

pub use args::ReplayArgs;
pub(crate) use args::{SwapMax, ViaArg};
pub(crate) use command::{check_output, run, write};
pub(crate) use refault::replay::clocked;
pub(crate) use refault::replay::rules;
pub use refault::replay::{PlugIn, Row, cell, columns, policy};
pub(crate) use refault::scenario::is_scenario;
