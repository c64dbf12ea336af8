//! Hardware that the engine cannot see: page tables, block devices, nodes of memory, and what it
//! asked the machine to do.
//!
//! | file | what is in it |
//! |---|---|
//! | `world` | [`Hardware`]: the engine's `World`; it hands each effect to one of the following |
//! | `page_table` | entries with their bits, a table a program or task and object |
//! | `storage` | devices, swap on them, requests that are collected until the engine is done |
//! | `nodes` | nodes of memory as servers: what an access and a migration cost |
//! | `content` | what pages hold, for those who compress them |
//! | `demand` | what effects need of locks and of other CPUs |
//! | `slice` | until when the thread that calls the engine may go on |
//! | `hottest` | which pages are touched most, for the promotion policy `oracle` |
//!
//! It calls `cost`, `device`, `contention` for what is needed of it, and `scenario` for what pages
//! hold. It knows no task, no CPU and no thread: `kernel` carries out what it was asked for.

mod content;
mod demand;
mod hottest;
mod nodes;
mod page_table;
mod slice;
mod storage;
mod world;

pub(crate) use hottest::Hottest;
pub(crate) use nodes::{NodeUse, Nodes};
pub(crate) use page_table::Extent;
pub(crate) use storage::Submission;
pub(crate) use world::Hardware;
