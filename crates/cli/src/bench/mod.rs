//! `refault bench`: published benchmarks in the lab, numbers of ours beside those that were
//! published.
//!
//! `args` are the flags, `command` has the library run and compare, and `text`, `tables`, `summary`
//! and `vary` print. `main` calls `run`.

mod args;
mod command;
mod summary;
mod tables;
mod text;
mod vary;

pub use args::BenchArgs;
pub use command::run;
