//! Traces whose accesses say which memory cgroup they come from.
//!
//! `tree` says which groups there are and with which limits, `cell` replays under them, `plan` does
//! so in several sizes and under several policies, and `row` is the result of a group.

mod cell;
mod plan;
mod row;
mod tree;

pub use cell::{GroupCount, Grouped};
pub use plan::feed;
pub use plan::{GroupPlan, load};
pub use row::{GroupRow, GroupedRow, limits, limits_text};
pub use tree::{Group, Tree};
