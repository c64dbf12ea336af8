//! Outcomes of the events of a scenario, and whom the out-of-memory killer took.

/// Outcome of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventResult {
    /// Description, such as `reclaim 8192p of /cron`.
    pub what: String,
    /// When the event first happened; none: the run was over before, or the conditions did not
    /// hold.
    pub at_ns: Option<u64>,
    /// The first [`EventResult::MOST_TIMES`] times at which the event happened.
    pub happened_ns: Vec<u64>,
    /// When the event last happened.
    pub last_ns: Option<u64>,
    /// Whether it waits for conditions.
    pub has_conditions: bool,
    /// How often the event happened.
    pub times: u64,
    /// Pages that `memory.reclaim` was asked for, in all.
    pub asked_pages: u64,
    /// Pages that were freed.
    pub reclaimed_pages: u64,
    /// How often less was freed than was asked for (`EAGAIN`).
    pub short: u64,
    /// Tasks that were killed.
    pub killed: u64,
    /// Names of victims: tasks, or their groups.
    pub victims: Vec<String>,
    /// Why the event did not happen, or not as it should.
    pub failed: Option<String>,
}

/// A copy of a task that the out-of-memory killer took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OomVictim {
    /// Virtual time at which it was killed, in nanoseconds.
    pub at_ns: u64,
    /// Name of the task.
    pub task: String,
    /// The group that it was in; `/` is the root.
    pub group: String,
    /// The group that was out of memory; `/` is the machine.
    pub within: String,
}

impl OomVictim {
    /// Victims that results list.
    pub const MOST: usize = 1000;
}

impl EventResult {
    /// Times of an event that results list.
    pub const MOST_TIMES: usize = 1000;
}
