//! `refault bench`: published benchmarks in the lab, numbers of ours beside those that were
//! published.
//!
//! `command` has `benchmark` say what is run, `runner` run it, `report` compare, `misses` say which
//! of what is missed was known, and `text`, `summary` or `json` print. Each calls only those before
//! it; `main` calls `run`. `vary` does the same with other values of a scenario.

mod args;
mod benchmark;
mod builtin;
mod command;
mod json;
mod misses;
mod report;
mod summary;
mod tables;
mod text;
mod vary;

pub use args::BenchArgs;
pub use builtin::BUILTIN;
pub(crate) use command::result;
pub use command::run;
pub use misses::{KNOWN, Missing};
