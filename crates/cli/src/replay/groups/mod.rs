//! `refault replay --memcg-column`: a trace whose accesses say which memory cgroup they come from.

mod cell;
mod command;
mod json;
mod row;
mod text;
mod tree;

pub(crate) use cell::{GroupCount, Grouped};
pub(super) use command::run;
pub(crate) use tree::Tree;
