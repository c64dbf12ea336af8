//! A trace through the engine, with devices that answer at once.
//!
//! | file | what is in it |
//! |---|---|
//! | `request` | a replay as users ask for it |
//! | `plan` | its cells: a trace, sizes in pages, configurations |
//! | `run` | the cells of a plan on threads |
//! | `prefix` | what cells of several sizes have in common, replayed once |
//! | `cell`, `machine` | one trace, policy and size: the engine, and page tables and devices that cost nothing |
//! | `stream` | the cells of a trace that is larger than memory |
//! | `recorder` | what is kept of misses besides their number |
//! | `policy`, `rules` | policies by name; which rules a table is of |
//! | `clocked` | the source as it is read, with its times |
//! | `swap/` | swap on zram, on zswap, on a disk |
//! | `row`, `columns`, `swap_map`, `metrics`, `drawing` | the result |
//! | `groups/` | the same of a trace with memory cgroups |
//! | `sample/` | estimates by samples of a trace |

pub mod cell;
pub mod clocked;
mod columns;
mod drawing;
pub mod groups;
pub mod machine;
mod metrics;
mod plan;
pub mod policy;
mod prefix;
pub mod recorder;
mod request;
mod row;
pub mod rules;
mod run;
pub mod sample;
mod stream;
pub mod swap;
pub mod swap_map;

pub use columns::columns;
pub use drawing::draw;
pub use metrics::metrics;
pub use plan::{CellResult, Plan, PlugIn};
pub use request::{Replay, curve_sizes, usual_sizes};
pub use row::{DiskReads, EngineFigures, Row};
pub use stream::run_stream;
