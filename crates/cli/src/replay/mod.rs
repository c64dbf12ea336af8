//! `refault replay`: a trace through the engine, with devices that answer at once; or a scenario in
//! virtual time.
//!
//! | file | what is in it |
//! |---|---|
//! | `args`, `policy` | the flags |
//! | `check` | what makes no sense among them |
//! | `command` | from flags to output: which traces, sizes and policies |
//! | `cell`, `machine` | one trace, policy and size: the engine, and page tables and devices that cost nothing |
//! | `recorded` | a recording of a kernel: what is wanted of the machine that `recording` has |
//! | `run`, `recorder` | cells on threads; what is recorded on the way |
//! | `alike` | what cells of several sizes have in common, once |
//! | `stream` | the cells of a trace that is larger than memory |
//! | `clocked`, `progress` | the source as it is read, with its times; the bar |
//! | `rules` | which rules a table is of, if not the default ones |
//! | `row`, `text`, `curve`, `swap_map`, `metrics` | what came out, as tables, JSON, pictures and metrics |
//! | `columns` | a row as the columns of a table |
//! | `groups/` | the same of a trace with memory cgroups |
//! | `sample/` | estimates by samples of a trace |
//! | `scenario/` | scenarios, by the `runner` |
//!
//! It calls the engine, `runner` for machines, and `flags`, `table` and `terminal`. `main` calls
//! `run`, `size` and `report` replay with it.

mod alike;
mod args;
pub mod cell;
mod check;
pub(crate) mod clocked;
mod columns;
mod command;
mod curve;
pub(crate) mod groups;
pub(crate) mod machine;
mod metrics;
pub mod policy;
pub(crate) mod progress;
mod recorded;
mod recorder;
mod row;
mod rules;
mod run;
pub mod sample;
mod scenario;
mod stream;
mod swap_map;
mod text;

pub use args::ReplayArgs;
pub(crate) use args::{SwapMax, ViaArg};
pub use columns::columns;
pub(crate) use command::run;
pub use command::{Loaded, Machine};
pub(crate) use command::{check_output, load, replay_loaded, write};
pub(crate) use curve::sizes as curve_sizes;
pub(crate) use recorded::{About, After, Recorded, RecordedCell, load as load_recorded};
pub use row::Row;
pub(crate) use row::{DiskReads, EngineFigures};
pub(crate) use rules::words as rules_in_words;
pub(crate) use run::Plan;
pub use run::PlugIn;
pub(crate) use scenario::{Asked, is_scenario, results as scenario_results, results_of as scenario_results_of};
