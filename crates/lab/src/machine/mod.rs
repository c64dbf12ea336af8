//! The machine: CPUs on which tasks, kswapd and the flusher take turns, around one engine.
//!
//! A thread gets a CPU for a quantum at most. What it does in that time is decided when the time begins, and others see it from
//! then on; what it asks of devices reaches them at the moment at which it asks. So events of different CPUs are apart from
//! their true order by a quantum at most. Everything follows from the scenario and its seed: there is no thread and no clock
//! of the real machine here.

mod admin;
mod build;
mod burst;
mod check;
mod content;
mod event;
mod groups;
mod hardware;
mod hottest;
mod memory;
mod pressure;
mod progress;
mod record;
mod result;
mod run;
mod stream;
mod task;
mod tiers;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use refault_mm::{Engine, MappingId, NodeId, PageId, SwapWork, ThrottleReason};

use crate::cost::Costs;
use crate::device::Completion;
use crate::metric::Series;
use crate::scenario::{PolicySpec, Scenario};
use admin::Doing;
use event::Events;
use groups::{Groups, Owner};
use hardware::Hardware;
use pressure::{Mood, Pressure};
use record::Record;
use task::Task;
use tiers::Tiering;

pub use admin::EventResult;
pub(crate) use build::preset_with_overrides;
pub use record::LoopResult;
pub use result::{DeviceResult, GroupTasks, MemcgResult, NodeResult, RunResult, SwapResult, TaskResult};
pub use tiers::{TierResult, TiersResult};

/// Why a thread stops running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Its quantum is over.
    Preempted,
    /// Until that time.
    Sleep(u64),
    /// Until someone wakes it; as what it waits meanwhile.
    Blocked(Mood),
    /// For good.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not started, or ended.
    Off,
    Queued,
    Running,
    Blocked,
}

#[derive(Debug)]
enum Work {
    Task(Box<Task>),
    Kswapd(NodeId),
    Flusher,
    /// The worker that writes back what zswap holds.
    Zswap,
    /// What reclaims for an event of the scenario, an index.
    Admin(usize),
}

#[derive(Debug)]
struct Thread {
    /// Away while it runs.
    work: Option<Work>,
    state: State,
    mood: Mood,
    /// The groups whose pressure it is part of.
    groups: Vec<usize>,
    /// Number of its last wait: a wake-up for another one comes too late.
    wait: u64,
    /// Woken before its burst was over.
    woken: bool,
    killed: bool,
    /// The read that it waited for failed.
    read_failed: bool,
    /// The throttling that it waits for.
    throttled: Option<ThrottleReason>,
    /// Reclaim that it must still pay for with CPU time, before it stops.
    debt_ns: u64,
    stop: Stop,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    running: Option<usize>,
    last: Option<usize>,
}

/// An object instance: what of it the engine knows.
#[derive(Clone, Copy, Debug)]
struct Instance {
    mapping: MappingId,
    anon: bool,
    of: Owner,
    /// Who is charged: a group of the scenario, or the root. While the group is not there, the one above it.
    memcg: Option<usize>,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every task that counts has ended.
    TasksDone,
    /// At the end that the scenario sets.
    Time,
    /// Nothing can happen any more although tasks wait: a device is stuck for ever, or memory is out and nobody may be killed.
    Stuck,
}

/// A machine on its way through a scenario.
pub struct Machine {
    spec: Rc<Scenario>,
    costs: Costs,
    engine: Engine,
    hw: Hardware,
    events: Events,
    now_ns: u64,
    threads: Vec<Thread>,
    /// Of the first node; those of the others follow.
    kswapd: usize,
    flusher: usize,
    zswap: usize,
    /// Of the first event; those of the others follow.
    admin: usize,
    cpus: Vec<Cpu>,
    queue: VecDeque<usize>,
    /// Where the copies of a task are that take turns: by task, phase and stream; not started: the largest number.
    positions: HashMap<(usize, usize, usize), Rc<Cell<u64>>>,
    /// By task specification: its loop that is recorded.
    records: BTreeMap<usize, Record>,
    /// Tasks that wait for room in the queue of a swap device, by the number of their wait.
    queued: VecDeque<(usize, u64)>,
    /// Tasks that wait for a page.
    waiters: HashMap<PageId, Vec<usize>>,
    /// The folios of requests under way, by their number: first page and length.
    in_flight: HashMap<u64, Vec<(PageId, u32)>>,
    /// When each device was last announced to have something to do.
    announced: Vec<Option<u64>>,
    completions: Vec<Completion>,
    instances: Vec<Instance>,
    /// By object: its first instance.
    first_instance: Vec<usize>,
    groups: Groups,
    /// By event of the scenario.
    doing: Vec<Doing>,
    pressure: Pressure,
    series: Series,
    /// Where there are nodes with latency and bandwidth.
    tiering: Option<Tiering>,
    /// Tasks that count and have not ended.
    alive: usize,
    /// By task specification: copies that have not ended.
    copies_left: Vec<u32>,
    oom_kills: u64,
    /// What the swap allocator did that was paid for.
    swap_paid: SwapWork,
    events_handled: u64,
    completed: u64,
    ending: Option<Ending>,
    /// The swap devices when the last task that counts had done its work, before its memory was free.
    last_swap: Option<Vec<SwapResult>>,
    check: bool,
}

impl Machine {
    /// Builds the machine of a scenario, with the reclaim of `policy` (the scenario's own, or a variant).
    pub fn new(spec: &Scenario, policy: &PolicySpec) -> Result<Machine, String> {
        build::build(spec, policy)
    }

    /// Checks what must hold at every sample and at the end.
    #[must_use]
    pub fn checked(mut self) -> Machine {
        self.check = true;
        self
    }

    /// The virtual time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Events that were handled.
    pub fn events(&self) -> u64 {
        self.events_handled
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}
