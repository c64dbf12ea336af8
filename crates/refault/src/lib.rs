//! refault as functions: what Linux's memory management makes of a trace, of a recording of a
//! kernel, or of a machine in virtual time.
//!
//! | module | functions |
//! |---|---|
//! | [`replay`] | a trace under policies, in sizes of memory; with memory cgroups; by samples |
//! | [`recording`] | a recording of a kernel on the machine that was recorded |
//! | [`runner`] | scenarios: machines in virtual time |
//! | [`settings`] | settings of the engine, by the names that users give |
//! | [`memory_size`], [`time`], [`words`] | sizes and times as people write and read them |
//! | [`watch`] | progress and cancel |
//!
//! Requests are typed, results are plain data, and nothing here prints: the command `refault`
//! parses and prints, and the Python package converts.

pub mod memory_size;
pub mod recording;
pub mod replay;
pub mod runner;
pub mod settings;
mod threads;
pub mod time;
pub mod watch;
pub mod words;

pub use threads::{on_threads, threads};
pub use watch::Watch;

/// Any error; its text is one line that names the file or the setting, and the place.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
