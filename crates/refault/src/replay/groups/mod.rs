//! Traces whose accesses say which memory cgroup they come from.
//!
//! `tree` says which groups there are and with which limits, `cell` replays under them, `plan` does
//! so in several sizes and under several policies, `row` is the result of a group, and `serialise`
//! writes it as `--json` has it.

mod cell;
mod plan;
mod row;
mod serialise;
mod tree;

pub use cell::{GroupCount, Grouped};
pub use plan::feed;
pub use plan::{GroupPlan, load};
pub use row::{GroupRow, GroupedRow, limits, limits_text};
pub use serialise::limits_json;
pub use tree::{Group, Tree};
