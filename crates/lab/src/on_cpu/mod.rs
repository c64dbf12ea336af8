//! Work of a thread while it has a CPU: from the moment at which it gets it to the one at which it
//! stops.
//!
//! Work in that time is decided when the time begins, and others see it from then on; requests to
//! devices reach them at the moment at which they are made.
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
