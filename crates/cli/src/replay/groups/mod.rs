//! `refault replay --memcg-column`: a trace whose accesses say which memory cgroup they come from.

mod cell;
mod command;
mod json;
mod row;
mod text;
mod tree;

pub(crate) use cell::Grouped;
pub(super) use command::run;
pub(crate) use command::{feed, load, on_threads};
pub(crate) use json::limits_json;
pub(crate) use row::limits_text;
pub(crate) use text::{EVENT_HEADS, EVENTS};
pub(crate) use tree::Tree;
