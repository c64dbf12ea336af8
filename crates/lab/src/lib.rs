//! The lab: a machine in virtual time around the engine of `refault-mm`.
//!
//! | room | what is in it | calls |
//! |---|---|---|
//! | [`machine`] | the event loop, from a scenario to its results | all others |
//! | `on_cpu` | what a thread does while it has a CPU | `kernel`, `sched`, `task`, and what they change |
//! | `groups`, `programs`, `tiers`, `record` | memory cgroups over time; objects and copies of tasks; marking pages; recorded loops | `kernel`, `task` |
//! | `kernel` | the engine, the hardware below it, what a call costs | `hardware`, `sched`, [`contention`] |
//! | `sched` | virtual time, threads, CPUs, waits, pressure | `task` |
//! | `hardware` | page tables, devices, nodes of memory | [`device`], [`contention`] |
//! | `task` | what a task does next, and what it has done | [`scenario`] |
//! | [`scenario`] | machines and workloads as files | `results`, [`device`], [`contention`] |
//! | `results` | what a run says, and how its numbers are named | [`device`], [`metric`] |
//! | [`contention`] | locks that CPUs wait for, and interrupts that they send each other | nothing here |
//! | [`device`], [`cost`], [`metric`] | block devices; costs of operations; latencies and samples | nothing here |
#![deny(missing_docs)]

pub mod contention;
pub mod cost;
pub mod device;
#[cfg(test)]
mod every_key;
mod groups;
mod hardware;
mod kernel;
pub mod machine;
pub mod metric;
mod on_cpu;
mod programs;
mod record;
mod results;
pub mod scenario;
mod sched;
mod task;
mod tiers;
