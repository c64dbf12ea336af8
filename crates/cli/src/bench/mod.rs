//! `refault bench`: published benchmarks in the lab, numbers of ours beside those that were
//! published.
//!
//! `command` has `benchmark` say what is run, `runner` run it, `report` compare, and `text` or
//! `json` print. Each calls only those before it; `main` calls `run`.

mod args;
mod benchmark;
mod builtin;
mod command;
mod json;
mod report;
mod tables;
mod text;

pub use args::BenchArgs;
pub use builtin::BUILTIN;
pub use command::run;
