//! refault as functions: what Linux's memory management makes of a trace, of a recording of a
//! kernel, or of a machine in virtual time.
//!
//! | module | functions |
//! |---|---|
//! | [`replay`] | a trace under policies, in sizes of memory; with memory cgroups; by samples |
//! | [`loaded`] | a trace in memory, replayed as users ask for it: what they do not say, a recording says |
//! | [`recording`] | a recording of a kernel on the machine that was recorded |
//! | [`mod@bench`] | published benchmarks: ours beside what was published |
//! | [`report`] | a trace or a recording looked into: curves, windows, objects, groups |
//! | [`runner`] | machines in virtual time, several at once |
//! | [`scenario`] | scenarios under policies |
//! | [`size()`] | the smallest limit with which a target is met, of all three; or costs of sizes |
//! | [`verify()`] | a recording beside the kernel that was recorded: how far the lab is to be trusted |
//! | [`settings`] | settings of the engine, by the names that users give |
//! | [`mod@compare`] | differences between results |
//! | [`mod@explain`] | counters of a kernel at two moments, in sentences |
//! | [`mod@curve`] | misses against memory, and the knee |
//! | [`document`] | results as pages and comparisons have them, of JSON, too |
//! | [`memory_size`], [`time`], [`words`], [`units`], [`names`], [`table`] | sizes, times, numbers and names as people write and read them |
//! | [`mod@whatif`] | a trace or a recording on another kernel, with other lists, with more or less memory |
//! | [`open_metrics`] | numbers as Prometheus reads them |
//! | [`watch`] | progress and cancel |
//!
//! A curve is a call (`examples/curve.rs` is a whole program):
//!
//! ```
//! use refault::replay::curve_sizes;
//!
//! # fn main() -> Result<(), refault::Failure> {
//! # let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sqlite.parquet");
//! # let path = std::path::Path::new(data);
//! let (trace, page_size) = refault::load(path)?;
//! let policies = ["lru".parse()?, "mglru".parse()?];
//! let curves = refault::curve(&trace, page_size, &policies, &curve_sizes(), None)?;
//! let knee = refault::curve::knee(&curves, None);
//! assert!(curves.len() == 2 && knee.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! The size of a trace in memory is another:
//!
//! ```
//! use refault::size::{SizeRequest, Subject};
//!
//! # fn main() -> Result<(), refault::Failure> {
//! # let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sqlite.parquet");
//! let (trace, page_size) = refault::load(data.as_ref())?;
//! let request = SizeRequest { target: Some("hit_rate>95%".parse()?), ..SizeRequest::default() };
//! let subject = Subject::Trace { trace: &trace, page_size };
//! let sizing = refault::size(subject, &request, &refault::Watch::default())?;
//! assert!(sizing.answer().is_some_and(|pages| pages < 4421));
//! # Ok(())
//! # }
//! ```
//!
//! Requests are typed, results are plain data, and nothing here prints: the command `refault`
//! parses and prints, and the Python package converts.

pub mod bench;
pub mod compare;
pub mod curve;
pub mod document;
pub mod explain;
pub mod loaded;
pub mod memory_size;
pub mod names;
pub mod open_metrics;
pub mod recording;
pub mod replay;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod settings;
pub mod size;
pub mod table;
mod threads;
pub mod time;
pub mod units;
pub mod verify;
pub mod watch;
pub mod whatif;
pub mod words;

pub use bench::bench;
pub use compare::compare;
pub use curve::curve;
pub use explain::explain;
pub use scenario::run_scenario;
pub use size::size;
pub use threads::{on_threads, threads};
pub use verify::verify;
pub use watch::Watch;
pub use whatif::whatif;

/// Any error; its text is one line that names the file or the setting, and the place.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Reads a trace of any format into memory: its accesses, and bytes a page.
///
/// # Errors
/// The file cannot be read, or is no trace.
pub fn load(path: &std::path::Path) -> Result<(refault_trace::Trace, u32), Failure> {
    let mut source = refault_trace::open(path, &refault_trace::OpenOptions::default())?;
    let page_size = source.header().page_size;
    Ok((refault_trace::Trace::load(&mut source, &refault_trace::LoadOptions::default())?, page_size))
}
