//! Results of a run in the end: plain numbers, and the names by which scenarios ask for them.
//!
//! | file | what is in it |
//! |---|---|
//! | `run` | a run as a whole, and `metric`, which finds any number by its name |
//! | `task`, `memcg`, `device`, `tiers` | what tasks, groups, devices and nodes of memory did |
//! | `cpu` | who had CPU time |
//! | `contention` | locks that CPUs waited for, and interrupts between them |
//! | `loops`, `event` | what each time through a recorded loop changed; what came of the scenario's events |
//!
//! It calls `metric` and `device` for their figures. `machine` fills it in; `scenario` checks names
//! of numbers against it.

mod contention;
mod cpu;
mod device;
mod event;
mod loops;
mod memcg;
mod run;
mod task;
mod tiers;

pub use contention::{ContentionResult, LockResult};
pub use cpu::{CpuResult, KthreadResult};
pub use device::{DeviceResult, NodeResult, SwapResult, ZoneResult};
pub use event::{EventResult, OomVictim};
pub use loops::LoopResult;
pub use memcg::MemcgResult;
pub use run::{Ending, RunResult};
pub use task::{GroupTasks, TaskResult};
pub use tiers::{TierResult, TiersResult};
