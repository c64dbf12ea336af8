//! Hit-rate curves of the memory cgroups of a machine, all the time: what each would hit in less
//! and in more memory.
//!
//! The kernel's own filters let through the events of a sample of pages (`refault-record`). Each
//! group has engines of twelve sizes around its limit, which are fed as events come.
//!
//! | file | what is in it |
//! |---|---|
//! | `host` | a machine: its groups, which come and go, and the events |
//! | `figures` | what a group has now, as cgroupfs says |
//! | `advice` | what follows from a curve: limits, trust, words |
//! | `emit` | the same as settings to review |
//! | `state` | what is kept of a watcher that ends |
//! | `group` | the curve of one group |
//! | `stream` | events to touches of pages |
//! | `size_engine` | one size: an engine with a sample of its memory |
//! | `units` | units of files, a bounded number |
//! | `counts` | counts of a window of time, and errors |
//!
//! All but `host`, `figures` and `state` are without I/O and clock. The command calls [`Host`].

mod advice;
mod counts;
mod emit;
mod figures;
mod group;
mod host;
mod size_engine;
mod state;
mod stream;
mod units;

pub use advice::{CurveTrust, LimitAdvice, SizeChange};
pub use emit::{Emit, emit};
pub use figures::Figures;
pub use group::{AT_LIMIT, Curve, CurvePoint, CurveSettings, GroupCurve, PERCENT, Totals, Touched};
pub use host::{GroupReport, Host, HostCounts, HostOptions, Select};
pub use state::State;
pub use stream::{EventTask, PageEvent, PageStream};
