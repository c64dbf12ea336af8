//! `refault bench`: published benchmarks in the lab, numbers of ours beside those that were published.

mod args;
mod builtin;
mod command;
mod json;
mod report;
mod tables;
mod text;

pub use args::BenchArgs;
pub use builtin::BUILTIN;
pub use command::run;
