//! Time and CPUs: what happens next, which thread runs where, and who waits for what.
//!
//! | file | what is in it |
//! |---|---|
//! | `event` | [`Clock`]: virtual time and the queue of events |
//! | `thread` | [`Thread`]: what it does, how it stops, what it waits for |
//! | `threads` | [`Threads`]: all of them, CPUs, the run queue, waits |
//! | `threads/eevdf` | who was served least, and the worker of `vmpressure` |
//! | `ticks` | when a thread loses its CPU to another one |
//! | `usage` | CPU time of the threads of the kernel, and the most of it between two samples |
//! | `pressure` | who counts as stalled and as productive, in every group |
//!
//! It calls `task`, which a thread holds, `hardware` for requests that are announced, and
//! `scenario` for how many threads there are. It decides nothing about memory. `kernel` and
//! `on_cpu` put threads to sleep, `machine` wakes them and hands out CPUs.

mod event;
mod pressure;
mod thread;
mod threads;
mod ticks;
mod usage;

pub(crate) use event::{Clock, Event};
pub(crate) use pressure::{PsiState, Resource};
pub(crate) use thread::{Stop, Thread, ThreadState, ThreadWork, Wait};
pub(crate) use threads::{ANY_WAIT, Place, TICK_NS, Threads};
pub(crate) use usage::Usage;
