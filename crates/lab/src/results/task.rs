//! Results of tasks: one task's copies, and the tasks of a group together.

use crate::device::PAGE_BYTES;
use crate::metric::{Latency, Quantiles};

/// Results of the copies of a task in the phases that count.
#[derive(Clone, Debug)]
pub struct TaskResult {
    /// Its name.
    pub name: String,
    /// Copies.
    pub count: u32,
    /// Accesses of a page.
    pub accesses: u64,
    /// Accesses among them without I/O.
    pub hits: u64,
    /// Operations.
    pub ops: u64,
    /// Accesses that failed.
    pub errors: u64,
    /// Copies that the out-of-memory killer ended.
    pub oom_kills: u64,
    /// Copies that events and daemons of the scenario killed.
    pub killed: u64,
    /// Seconds from the start of the first copy to the end of the last.
    pub seconds: f64,
    /// CPU time of all copies in the program itself, in seconds.
    pub user_seconds: f64,
    /// CPU time of all copies in the kernel, in seconds; without changes of tasks.
    pub system_seconds: f64,
    /// Part of `system_seconds` that is direct reclaim.
    pub reclaim_seconds: f64,
    /// Time of all copies waiting for a CPU (`run_delay` of schedstat).
    pub run_delay_seconds: f64,
    /// Time of all copies waiting for devices.
    pub iowait_seconds: f64,
    /// Time of all copies held up until others have reclaimed, or by `memory.high`.
    pub throttled_seconds: f64,
    /// Latency of operations.
    pub latency: Latency,
}

/// Results of the tasks of a group and of the groups below it together, in the phases that count.
#[derive(Clone, Debug, Default)]
pub struct GroupTasks {
    /// Operations.
    pub ops: u64,
    /// The sum of the operations a second of every task.
    pub ops_per_s: f64,
    /// Accesses of a page.
    pub accesses: u64,
    /// Accesses among them without I/O.
    pub hits: u64,
    /// Accesses that failed.
    pub errors: u64,
    /// Copies that the out-of-memory killer ended.
    pub oom_kills: u64,
    /// Copies that events and daemons of the scenario killed.
    pub killed: u64,
    /// CPU time of direct reclaim by all copies, in seconds.
    pub reclaim_seconds: f64,
    /// Latency of operations, of all tasks together.
    pub latency: Quantiles,
}

impl TaskResult {
    /// One of its numbers.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        let rate = |n: u64| if self.seconds > 0.0 { n as f64 / self.seconds } else { 0.0 };
        Some(match name {
            "ops" => self.ops as f64,
            "ops_per_s" => rate(self.ops),
            "accesses" => self.accesses as f64,
            "accesses_per_s" => rate(self.accesses),
            "bytes_per_s" => rate(self.accesses * PAGE_BYTES),
            "seconds" => self.seconds,
            "user_seconds" => self.user_seconds,
            "system_seconds" => self.system_seconds,
            "reclaim_seconds" => self.reclaim_seconds,
            "run_delay_seconds" => self.run_delay_seconds,
            "iowait_seconds" => self.iowait_seconds,
            "throttled_seconds" => self.throttled_seconds,
            "hit_rate" => self.hit_rate(),
            "errors" => self.errors as f64,
            "p50_ns" => self.latency.p50_ns() as f64,
            "p99_ns" => self.latency.p99_ns() as f64,
            _ => return None,
        })
    }

    /// Hits divided by accesses; 0 without accesses.
    pub fn hit_rate(&self) -> f64 {
        if self.accesses > 0 { self.hits as f64 / self.accesses as f64 } else { 0.0 }
    }
}

impl GroupTasks {
    /// Hits of all accesses.
    pub fn hit_rate(&self) -> f64 {
        if self.accesses > 0 { self.hits as f64 / self.accesses as f64 } else { 0.0 }
    }

    pub(crate) fn of<'a>(tasks: impl Iterator<Item = &'a TaskResult>) -> GroupTasks {
        let (mut all, mut latency) = (GroupTasks::default(), Latency::new());
        for task in tasks {
            all.add(task);
            latency.merge(&task.latency);
        }
        all.latency = Quantiles::from(&latency);
        all
    }

    fn add(&mut self, task: &TaskResult) {
        self.ops += task.ops;
        self.ops_per_s += task.metric("ops_per_s").unwrap_or(0.0);
        self.accesses += task.accesses;
        self.hits += task.hits;
        self.errors += task.errors;
        self.oom_kills += task.oom_kills;
        self.killed += task.killed;
        self.reclaim_seconds += task.reclaim_seconds;
    }
}
