//! A recording of a kernel on the engine: what `verify` compares, `size` tries sizes with, and
//! `replay` and `report` have rows of.
//!
//! | file | what is in it |
//! |---|---|
//! | `load` | a recording in memory: its records, its files, what was in memory when it began |
//! | `settings` | limit, policy, kernel and readahead, as the recording says |
//! | `run` | the engine, fed with the recording as the kernel was |
//! | `cache` | what the kernel has in memory, and what it passes over when it drops or reads a range |
//! | `length` | how long files are as they grow: readahead stops there |
//! | `reads` | what both read from disks: pages and requests |
//! | `rows` | rows of `refault replay` |
//! | `count` | hits and misses of both, by window and by object |
//!
//! It replays with `replay`'s cell.

mod cache;
mod count;
mod length;
mod load;
mod reads;
mod rows;
mod run;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use count::Compared;
pub(crate) use load::Loaded;
pub(crate) use rows::read;
pub(crate) use run::run;
pub(crate) use settings::Settings;
