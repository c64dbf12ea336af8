//! Everything that a run says, and how its numbers are named.

use std::collections::BTreeMap;

use refault_mm::SwapWork;

use super::contention::ContentionResult;
use super::cpu::CpuResult;
use super::device::{DeviceResult, NodeResult, SwapResult};
use super::event::{EventResult, OomVictim};
use super::loops::{LoopResult, counted};
use super::memcg::MemcgResult;
use super::task::TaskResult;
use super::tiers::TiersResult;
use crate::metric::MetricSeries;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every task that counts has ended.
    TasksDone,
    /// At the end that the scenario sets.
    Time,
    /// Nothing can happen any more although tasks wait: a device is stuck for ever, or memory is
    /// out and nobody may be killed.
    Stuck,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Virtual time of the run, in seconds.
    pub seconds: f64,
    /// The ending.
    pub ending: Ending,
    /// Tasks, in the order of the scenario.
    pub tasks: Vec<TaskResult>,
    /// The machine first, then the memcgs.
    pub memcgs: Vec<MemcgResult>,
    /// CPU time.
    pub cpu: CpuResult,
    /// Devices, in the order of the scenario.
    pub devices: Vec<DeviceResult>,
    /// Memory.
    pub node: NodeResult,
    /// Counters of the sizes of folios, as `mthp.64kB.swpout`.
    pub sizes: BTreeMap<String, u64>,
    /// Work of the swap allocator.
    pub swap_work: SwapWork,
    /// Loops that were recorded, in the order of their tasks.
    pub loops: Vec<LoopResult>,
    /// The swap devices when the last task had done its work, before its memory was free, or at the
    /// end if the scenario sets it earlier; in the order of the scenario.
    pub swap: Vec<SwapResult>,
    /// Nodes of memory with latency and bandwidth, if the scenario has them.
    pub tiers: Option<TiersResult>,
    /// Waits of CPUs for each other, if the scenario has them.
    pub contention: Option<ContentionResult>,
    /// Tasks that the out-of-memory killer ended.
    pub oom_kills: u64,
    /// Whom it took, in the order of time, the first [`OomVictim::MOST`].
    pub oom_victims: Vec<OomVictim>,
    /// Outcomes of the events of the scenario.
    pub timeline: Vec<EventResult>,
    /// Samples over time.
    pub series: MetricSeries,
    /// The generations at the end, as `lru_gen_full` shows them.
    pub lru_gen: String,
    /// Events that were handled.
    pub events: u64,
}

impl RunResult {
    /// A number by its name, as scenarios name published numbers: `task.NAME.ops_per_s`,
    /// `total.seconds`, `vmstat.workingset_refault_file`, `memcg.PATH.COUNTER`,
    /// `device.NAME.read_bytes`, `node.free_pages`, `swap.used_pages`, `psi.some_us`,
    /// `iteration.TASK.N.COUNTER`, `iterations.TASK.FROM-TO.FOLD.COUNTER`; and `A / B`, the
    /// quotient of two numbers, where 0 / 0 is 0.
    pub fn metric(&self, name: &str) -> Option<f64> {
        if let Some((over, under)) = name.split_once(" / ") {
            let (over, under) = (self.metric(over)?, self.metric(under)?);
            return Some(if over == 0.0 { 0.0 } else { over / under });
        }
        let (kind, rest) = name.split_once('.')?;
        match kind {
            "task" => {
                let (task, field) = rest.rsplit_once('.')?;
                self.tasks.iter().find(|t| t.name == task)?.metric(field)
            }
            "total" => self.total(rest),
            "cpu" => self.cpu.metric(rest),
            "contention" => self.contention.as_ref()?.metric(rest),
            "tier" => self.tiers.as_ref()?.metric(rest),
            "iteration" | "iterations" => {
                let (task, rest) = rest.split_once('.')?;
                let result = self.loops.iter().find(|l| l.task == task)?;
                if kind == "iteration" { result.one(rest) } else { result.several(rest) }
            }
            "vmstat" => self.memcgs[0].counters.get(rest).map(|&n| n as f64),
            "memcg" => {
                let (path, counter) = rest.rsplit_once('.')?;
                self.memcgs.iter().find(|m| m.path == path)?.metric(counter)
            }
            "series" => {
                let (column, fold) = rest.rsplit_once('.')?;
                self.series.fold(column, fold)
            }
            "mthp" => counted(&self.sizes, name),
            "device" => {
                let (device, field) = rest.rsplit_once('.')?;
                let device = self.devices.iter().find(|d| d.name == device)?;
                Some(match field {
                    "read_bytes" => device.stats.read_bytes as f64,
                    "write_bytes" => device.stats.write_bytes as f64,
                    _ => device.zram?.named().into_iter().find(|(name, _)| *name == field)?.1 as f64,
                })
            }
            "node" => {
                let counter = || self.memcgs[0].counters.get(rest).map(|&n| n as f64);
                self.node.metric(rest).or_else(counter)
            }
            "swap" => Some(match rest {
                "used_pages" => self.node.swap_used_pages as f64,
                "calls" => self.swap_work.calls as f64,
                "clusters" => self.swap_work.clusters as f64,
                "probes" => self.swap_work.probes as f64,
                "reclaimed" => self.swap_work.reclaimed as f64,
                "steps" => (self.swap_work.clusters + self.swap_work.probes) as f64,
                _ => {
                    let (device, number) = rest.rsplit_once('.')?;
                    return self.swap.iter().find(|s| s.device == device)?.metric(number);
                }
            }),
            "psi" => match rest {
                "some_us" => Some(self.memcgs[0].psi[0].total_us as f64),
                "full_us" => Some(self.memcgs[0].psi[1].total_us as f64),
                _ => None,
            },
            _ => None,
        }
    }

    fn total(&self, name: &str) -> Option<f64> {
        match name {
            "seconds" => Some(self.seconds),
            "ops_per_s" => Some(self.tasks.iter().filter_map(|t| t.metric("ops_per_s")).sum()),
            _ => self.tiers.as_ref()?.total(name),
        }
    }
}
