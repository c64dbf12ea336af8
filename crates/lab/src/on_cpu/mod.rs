//! Work of a thread while it has a CPU: from the moment it gets the CPU until it stops.
//!
//! All that work is decided when the time begins, and other threads see it from then on; a request
//! reaches its device at the moment it is made.
//!
//! | file | what is in it |
//! |---|---|
//! | `context` | [`OnCpu`]: the parts of the machine that a thread with a CPU may change |
//! | `task` | turns and phases of a task |
//! | `hits` | accesses in a row that are plain hits |
//! | `access` | one access of a page |
//! | `oom` | who is killed for lack of memory; what is free then |
//! | `admin` | what reclaims for an event of the scenario |
//! | `worker` | kswapd, the flusher, the worker of zswap |
//!
//! It calls `kernel` for the engine, `sched` to wait, and `task`, `programs`, `groups`, `tiers` and
//! `record` for what they own. `machine` calls it, and hands out the CPU.

mod access;
mod admin;
mod context;
mod direct;
mod hits;
mod kill;
mod oom;
mod task;
mod worker;

pub(crate) use admin::{EventProgress, event_results};
pub(crate) use context::OnCpu;
pub(crate) use worker::zswap;
