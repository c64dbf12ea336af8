//! `refault replay --memcg-column`: a trace whose accesses say which memory cgroup they come from.
//!
//! `tree` says which groups there are and with which limits, `cell` replays under them, `row` is
//! what came of a group, `text` and `json` print it. It calls its parent for cells and sizes; the
//! parent's `command` and `size` call it.

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
