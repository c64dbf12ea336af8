//! `refault size`: the smallest limit of a group with which a target is met.

mod args;
mod command;
mod grid;
mod json;
mod picture;
mod report;
mod scenario;
mod search;
mod target;
mod text;
mod trace;

pub use args::SizeArgs;
pub use command::run;
