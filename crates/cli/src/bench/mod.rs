//! `refault bench`: published benchmarks in the lab, before and after.

mod args;
mod builtin;
mod command;
mod json;
mod report;
mod text;

pub use args::BenchArgs;
pub use builtin::BUILTIN;
pub use command::run;
