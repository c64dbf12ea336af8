//! `refault size`: the smallest limit of a group with which a target is met.
//!
//! | file | what is in it |
//! |---|---|
//! | `args`, `target` | the flags; what is to be met |
//! | `command` | from flags to output |
//! | `grid`, `search` | the sizes that may be tried, and which is next |
//! | `scenario`, `trace`, `sample`, `recording` | trying a size: a machine by the `runner`, or a replay |
//! | `near` | how far an answer is to be trusted |
//! | `doubts` | columns that are not as the recorded kernel had them |
//! | `states` | sizes in which multi-gen LRU has two states |
//! | `summary` | without a target: what other sizes cost |
//! | `report`, `text`, `json`, `picture` | what came out |
//!
//! It calls `runner` for machines, `replay` for traces and `recording` for those of a kernel.
//! `main` calls `run`.

mod args;
mod command;
mod doubts;
mod grid;
mod json;
mod near;
mod picture;
mod recording;
mod report;
mod sample;
mod scenario;
mod search;
mod states;
mod summary;
mod target;
mod text;
mod trace;

pub use args::SizeArgs;
pub(crate) use command::result;
pub use command::run;
