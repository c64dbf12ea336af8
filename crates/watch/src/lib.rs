//! Hit-rate curves of the memory cgroups of a machine, all the time: what each would hit in less
//! and in more memory.
//!
//! The kernel's own filters let through the events of a sample of pages (`refault-record`). Each
//! group has engines of fifteen sizes around its limit, which are fed as events come.
//!
//! | file | what is in it |
//! |---|---|
//! | `host` | a machine: its groups, which come and go, and the events |
//! | `watched` | one of the groups, and its report |
//! | `select` | which groups are watched |
//! | `figures` | what a group has now, as cgroupfs says |
//! | `advice` | what follows from a curve: limits, trust, words |
//! | `metrics` | the same as numbers for Prometheus |
//! | `rate` | the rate of the sample by a budget |
//! | `emit` | the same as settings to review |
//! | `history` | the same over time: a file an hour |
//! | `state` | what is kept of a watcher that ends |
//! | `group` | the curve of one group |
//! | `stream` | events to touches of pages |
//! | `size_engine` | one size: an engine with a sample of its memory |
//! | `units` | units of files, a bounded number |
//! | `counts` | counts of a window of time, and errors |
//!
//! All but `host`, `figures`, `history`, `rate` and `state` are without I/O and clock.
//! The command calls [`Host`].

mod advice;
mod counts;
mod emit;
mod figures;
mod group;
mod history;
mod host;
mod metrics;
mod rate;
mod select;
mod size_engine;
mod state;
mod stream;
mod units;
mod watched;

pub use advice::{CurveTrust, LimitAdvice, SizeChange};
pub use emit::{Emit, emit};
pub use figures::Figures;
pub use group::{AT_LIMIT, Curve, CurvePoint, CurveSettings, GroupCurve, PERCENT, Totals, Touched};
pub use history::{History, append, now_ms};
pub use host::{Host, HostCounts, HostOptions};
pub use metrics::metrics;
pub use rate::{Budget, Taken};
pub use select::Select;
pub use state::State;
pub use stream::{EventTask, PageEvent, PageStream};
pub use watched::GroupReport;
