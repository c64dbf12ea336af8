//! The machine: CPUs on which tasks, kswapd and the flusher take turns, around one engine.
//!
//! A thread gets a CPU for a quantum at most. All work in that time is decided when the time
//! begins, and other threads see it from then on; a request reaches its device at the moment it is
//! made. So events of different CPUs are out of their true order by at most a quantum. Everything
//! follows from the scenario and its seed: there is no thread and no clock of the real machine
//! here.
//!
//! | file | what is in it |
//! |---|---|
//! | `state` | [`Machine`]: its parts, each with a room of its own |
//! | `build`, `load` | from a scenario to a machine at time 0: parts, then objects and traces |
//! | `run` | the event loop: who runs when, who wakes whom |
//! | `io`, `requests` | what devices bring back; what is under way between them and the machine |
//! | `events`, `watch` | what an administrator does, by the scenario; conditions that it waits for |
//! | `sample`, `check` | rows of the time series; what must hold at each |
//! | `progress`, `report` | how far a run is; what it says in the end |
//!
//! It calls every other room and is called by none: it alone knows when something happens and on
//! which CPU. A scenario comes in, a [`RunResult`] comes out.

mod build;
mod check;
mod events;
mod io;
mod load;
mod progress;
mod report;
mod requests;
mod run;
mod sample;
mod state;
mod watch;

pub use crate::results::{
    ContentionResult, CpuResult, DeviceResult, Ending, EventResult, GroupTasks, KthreadResult, LockResult, LoopResult,
    MemcgResult, NodeResult, OomVictim, RunResult, SwapResult, TaskResult, TierResult, TiersResult, ZoneResult,
};
#[cfg(test)]
pub(crate) use build::config;
pub use run::ProgressFn;
pub use state::Machine;
