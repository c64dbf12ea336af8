//! The smallest limit of a memory cgroup with which a target is met, or costs of several sizes.
//!
//! | file | what is in it |
//! |---|---|
//! | `request`, `target` | a search as users ask for it; the condition that must hold |
//! | `flags` | flags that belong to one kind of input |
//! | `prepared` | what is sized, checked and loaded, before any size is tried |
//! | `grid`, `search` | the sizes that may be tried, and which is next |
//! | `scenario`, `trace`, `sample`, `recording` | trying a size: a machine by the `runner`, or a replay |
//! | `remarks` | what a recording leaves open, in words |
//! | `near` | how far an answer is to be trusted |
//! | `doubts` | columns that are not as the recorded kernel had them |
//! | `mapped` | mapped pages, which may be in use |
//! | `states` | sizes in which multi-gen LRU has two states |
//! | `summary` | without a target: beyond which size memory is not worth its price, and what can be cut |
//! | `sizing`, `serialize` | the result, and its form for programs |
//!
//! It calls `runner` for machines, `replay` for traces and `recording` for those of a kernel.

mod doubts;
mod flags;
mod grid;
mod mapped;
mod near;
mod prepared;
mod recording;
mod remarks;
mod request;
mod sample;
mod scenario;
mod search;
mod serialize;
mod sizing;
mod states;
mod summary;
mod target;
mod trace;

pub use flags::{FlagsOf, SAID_BY_RESULT, check_flags};
pub use grid::Grid;
pub(crate) use near::trust;
pub use prepared::{Prepared, SizeKind, Subject};
pub(crate) use recording::counts_faults;
pub use request::{Limit, SizeRange, SizeRequest, policy_of_groups};
pub(crate) use scenario::group_value;
pub use search::SizeVerdict;
pub use sizing::{Baseline, Change, Confidence, Figure, Point, Recorded, Sampled, SizedObject, Sizing};
pub use summary::SizeSummary;
pub use target::{Metric, MetricTarget};

use crate::{Failure, Watch};

/// Finds the smallest limit that meets the target of a request, or, without a target, says what
/// sizes cost.
///
/// # Errors
/// An input that cannot be read, a request that the input cannot answer, or cancel.
pub fn size<'a>(subject: Subject<'a>, request: &'a SizeRequest, watch: &Watch) -> Result<Sizing, Failure> {
    Prepared::new(subject, request, watch)?.run()
}
