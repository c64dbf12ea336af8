//! Scenario once it is read: plain data, names resolved to indices, units in the names of fields.

mod machine;
mod memcg;
mod policy;
mod published;
mod task;
mod watch;

use refault_mm::ZswapConfig;

pub use machine::{DeviceOverrides, DeviceSpec, MachineSpec, NodeSpec, PRESETS, SwapSpec};
pub use memcg::{EventAction, EventSpec, LimitChanges, MemcgSpec};
pub use policy::{PolicySpec, TieringSpec};
pub use published::{
    Band, BandFrom, Better, Calibrated, Parameters, Published, PublishedRatio, PublishedRow, PublishedVariant,
};
pub use task::{
    AccessPattern, Action, Burst, ContentSpec, LoopSpec, ObjectSpec, PhaseLimit, PhaseSpec, Share, StreamSpec, Sync,
    TaskSpec, TraceSpec,
};
pub use watch::{Condition, MemoryAmount, SysctlChanges, Victim, WatchSpec};

/// A machine, what runs on it, and what a publication measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name, for people and for the command line.
    pub name: String,
    /// Description, in a sentence.
    pub about: String,
    /// The publication that it is taken from.
    pub source: Option<String>,
    /// Seed of every random number.
    pub seed: u64,
    /// Latest end of the scenario; without it, the scenario ends with the last task in the
    /// foreground.
    pub end_ns: Option<u64>,
    /// Nanoseconds between two samples of the time series.
    pub sample_ns: u64,
    /// The machine.
    pub machine: MachineSpec,
    /// Its page reclaim.
    pub policy: PolicySpec,
    /// Block devices, in the order of the file.
    pub devices: Vec<DeviceSpec>,
    /// Swap, if there is any.
    pub swap: Vec<SwapSpec>,
    /// Compressed pages in memory in front of swap; `None`: off.
    pub zswap: Option<ZswapConfig>,
    /// Memory cgroups, parents before their children.
    pub memcgs: Vec<MemcgSpec>,
    /// Files and anonymous regions, in the order of the file.
    pub objects: Vec<ObjectSpec>,
    /// Tasks, in the order of the file.
    pub tasks: Vec<TaskSpec>,
    /// Events of the machine and of groups meanwhile, in the order of the file.
    pub events: Vec<EventSpec>,
    /// Numbers that were published.
    pub published: Option<Published>,
    /// Settings of the machine in its file, key and value as they stand there, whatever is changed
    /// afterwards.
    pub settings: Vec<(String, String)>,
    /// Keys of machine and workload in its file, and the line of each, from 1.
    pub lines: Vec<(String, usize)>,
}
