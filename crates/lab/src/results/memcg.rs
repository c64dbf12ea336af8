//! A memory cgroup, or the machine as a whole.

use std::collections::BTreeMap;

use refault_mm::{MemcgLimits, PsiLine};

use super::task::GroupTasks;

/// A memcg, or the machine.
#[derive(Clone, Debug)]
pub struct MemcgResult {
    /// Path of the group; `/` for the machine.
    pub path: String,
    /// Its limits at the end, or when it was removed.
    pub limits: MemcgLimits,
    /// When the group was made; 0: it existed from the start; none: it was never made.
    pub made_ns: Option<u64>,
    /// When the group was removed; all its figures are as of that time.
    pub removed_ns: Option<u64>,
    /// Counters and sizes under their kernel names.
    pub counters: BTreeMap<String, u64>,
    /// Memory pressure: some and full.
    pub psi: [PsiLine; 2],
    /// Pressure of devices: some and full.
    pub io_psi: [PsiLine; 2],
    /// Peaks of the averages of 10, 60 and 300 seconds, in percent: of some, then of full.
    pub psi_peaks: [[f64; 3]; 2],
    /// `memory.events`, descendants included; empty for the machine.
    pub events: Vec<(&'static str, u64)>,
    /// `memory.swap.events`, the same way.
    pub swap_events: Vec<(&'static str, u64)>,
    /// Results of the tasks in it.
    pub tasks: GroupTasks,
    /// Under multi-gen LRU the numbers of the oldest and the youngest generation of file pages; for
    /// the machine, of its root group.
    pub seqs: (u64, u64),
}

impl MemcgResult {
    /// Seconds that the group existed, in a run of `run_seconds`.
    pub fn lived_seconds(&self, run_seconds: f64) -> f64 {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let to = self.removed_ns.map_or(run_seconds, seconds);
        self.made_ns.map_or(0.0, |made| (to - seconds(made)).max(0.0))
    }

    /// A counter or size of the group; 0 if there is none of this name.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// One of its numbers: a counter, `events_max` and others of `memory.events`,
    /// `events_swap_fail` and others of `memory.swap.events`, `psi_some_us`, `psi_some_avg10`,
    /// `psi_some_avg10_max` and their like, `task_hit_rate`, `task_p99_ns`, ...
    pub fn metric(&self, name: &str) -> Option<f64> {
        if let Some(event) = name.strip_prefix("events_") {
            let (events, event) = match event.strip_prefix("swap_") {
                Some(event) => (&self.swap_events, event),
                None => (&self.events, event),
            };
            return events.iter().find(|(known, _)| *known == event).map(|&(_, n)| n as f64);
        }
        if let Some(rest) = name.strip_prefix("psi_") {
            return self.pressure(rest);
        }
        Some(match name {
            "task_ops_per_s" => self.tasks.ops_per_s,
            "task_hit_rate" => self.tasks.hit_rate(),
            "task_errors" => self.tasks.errors as f64,
            "task_oom_kills" => self.tasks.oom_kills as f64,
            "task_killed" => self.tasks.killed as f64,
            "task_reclaim_us" => self.tasks.reclaim_seconds * 1e6,
            "task_p50_ns" => self.tasks.latency.p50_ns as f64,
            "task_p99_ns" => self.tasks.latency.p99_ns as f64,
            _ => *self.counters.get(name)? as f64,
        })
    }

    /// `some_us`, `full_avg60`, `some_avg300_max`, `io_some_us`.
    fn pressure(&self, name: &str) -> Option<f64> {
        if let Some(kind) = name.strip_prefix("io_") {
            let kind = ["some_us", "full_us"].iter().position(|k| *k == kind)?;
            return Some(self.io_psi[kind].total_us as f64);
        }
        let (kind, what) = name.split_once('_')?;
        let kind = ["some", "full"].iter().position(|k| *k == kind)?;
        let (line, peaks) = (&self.psi[kind], &self.psi_peaks[kind]);
        Some(match what {
            "us" => line.total_us as f64,
            "avg10" => line.avg10,
            "avg60" => line.avg60,
            "avg300" => line.avg300,
            "avg10_max" => peaks[0],
            "avg60_max" => peaks[1],
            "avg300_max" => peaks[2],
            _ => return None,
        })
    }
}
