//! A trace, and what the policies make of it.

use super::verify::VerifyDocument;
use crate::units::{Unit, bytes, counted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Findings of `refault report` on a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceDocument {
    /// The version of refault.
    pub refault: String,
    /// The command.
    pub command: String,
    /// The seed.
    pub seed: u64,
    /// Kernel whose rules the policies follow; empty: the page is older than this field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    /// Policy of the recorded kernel; none: it is no recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_policy: Option<String>,
    /// Whether all is of the machine that was recorded, with its readahead.
    #[serde(skip_serializing_if = "is_false")]
    pub as_recorded: bool,
    /// Facts that the trace states of itself.
    pub trace: TraceFacts,
    /// Remarks on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Evidence, in words: the whole trace or a part of it, a warm start; older pages have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rests_on: Vec<String>,
    /// Present limit in pages, if it was given.
    pub limit_pages: Option<u64>,
    /// Memory in pages at which the policies are told in detail.
    pub detail_pages: u64,
    /// Why that: `limit`, `given` or `knee`.
    pub detail_why: String,
    /// Misses by memory, a curve for each policy.
    pub curves: Vec<CurveFacts>,
    /// Misses with a tenth less and more than at the knee and at the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenths: Option<CurveFacts>,
    /// Results of each policy with that memory.
    pub details: Vec<TraceDetail>,
    /// The first access of each window, and the end of the last.
    pub windows: Vec<u64>,
    /// The same in seconds, if the trace has times.
    pub window_s: Option<Vec<f64>>,
    /// Objects, the ones with most accesses first; the last may be all others together.
    pub objects: Vec<ObjectFacts>,
    /// Heat map of the accesses.
    pub heat: HeatFacts,
    /// Distinct pages of each window.
    pub working_set: WorkingSet,
    /// With memory cgroups: what each policy does with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupsUnder>,
    /// Work of the recorded kernel beside ours; none: it is no recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyDocument>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Facts that a trace states of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TraceFacts {
    pub name: String,
    pub format: String,
    pub source: Option<String>,
    pub recorded_on: Option<String>,
    pub page_size: u64,
    pub accesses: u64,
    pub writes: u64,
    pub footprint_pages: u64,
    pub objects: u64,
    pub duration_s: Option<f64>,
}

/// Misses by memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CurveFacts {
    /// The policy.
    pub policy: String,
    /// Ascending.
    pub pages: Vec<u64>,
    /// Share of the accesses that missed, 0 to 1; none: memory ran out.
    pub miss_ratio: Vec<Option<f64>>,
    /// Pages read from disks, of a recording; none: memory ran out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_pages: Vec<Option<u64>>,
}

/// Results of one policy with the memory that is looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceDetail {
    /// The policy.
    pub policy: String,
    /// Accesses replayed.
    pub accesses: u64,
    /// Misses among them.
    pub misses: u64,
    /// Number of the access at which memory ran out.
    pub oom_at: Option<u64>,
    /// Memory a little below and above, in pages, and the misses there.
    pub near: Vec<(u64, u64)>,
    /// Counters at the end that are not 0.
    pub counters: BTreeMap<String, u64>,
    /// Misses of each window.
    pub window_misses: Vec<u64>,
    /// Counters by window: what each added.
    pub window_counters: BTreeMap<String, Vec<u64>>,
    /// Sizes at the end of each window, in pages.
    pub window_gauges: BTreeMap<String, Vec<u64>>,
    /// Generations at the end of each window, the oldest first: pages, anonymous and file.
    pub window_generations: Vec<Vec<u64>>,
    /// Misses of each object.
    pub object_misses: Vec<u64>,
    /// Pages of each object that were in memory at the end of each window.
    pub object_resident: Vec<Vec<u64>>,
    /// Evictions between the eviction of a page and its return (refault distance), by half powers
    /// of two: the upper end of each bin, and how many.
    pub distance_bins: Vec<(u64, u64)>,
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ObjectFacts {
    pub name: String,
    /// `file`, `anon`, or empty of several together.
    pub kind: String,
    pub pages: u64,
    pub accesses: u64,
    pub writes: u64,
}

/// The memory cgroups of a trace under one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupsUnder {
    /// The policy.
    pub policy: String,
    /// Pages of memory of all together; none: the groups' own limits alone.
    pub memory_pages: Option<u64>,
    /// Number of the access at which memory ran out with no group left to kill.
    pub oom_at: Option<u64>,
    /// Groups with accesses; the last may be all others together.
    pub groups: Vec<GroupFacts>,
}

/// A memory cgroup by itself, without the groups below it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names say it; sizes are in pages, series are by window")]
pub struct GroupFacts {
    pub path: String,
    /// Limits that are not the kernel's defaults, for people.
    pub limits: String,
    pub accesses: u64,
    pub misses: u64,
    pub refaults: u64,
    /// Number of the access at which it was killed for lack of memory.
    pub killed_at: Option<u64>,
    pub window_resident: Vec<u64>,
    pub window_misses: Vec<u64>,
    pub window_refaults: Vec<u64>,
}

/// Accesses by place and time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeatFacts {
    /// Rows; each stands for as many pages.
    pub rows: usize,
    /// Columns: windows, or several together.
    pub columns: usize,
    /// Row by row.
    pub counts: Vec<u64>,
    /// Labels of the rows: an object and the index of a page in it.
    pub labels: Vec<String>,
    /// The rows at which objects begin.
    pub borders: Vec<(usize, String)>,
    /// Number of pages of each object in `borders`; reports of older versions lack it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub border_pages: Vec<u64>,
}

/// Distinct pages of windows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkingSet {
    /// Touched for the first time at all.
    pub first: Vec<u64>,
    /// Touched in the window before as well.
    pub kept: Vec<u64>,
    /// Touched earlier, but not in the window before.
    pub back: Vec<u64>,
}

/// Result of the policy that pages tell most of: the policy of the recorded kernel, multi-gen LRU,
/// or the first of Linux's.
pub fn main_of<'a, T>(all: &'a [T], policy: impl Fn(&T) -> &str, recorded: Option<&str>) -> Option<&'a T> {
    let named = |name: &str| all.iter().find(|one| policy(one) == name);
    let linux = || all.iter().find(|one| policy(one) != "opt");
    recorded.and_then(named).or_else(|| named("mglru")).or_else(linux).or(all.first())
}

impl TraceDocument {
    /// Bytes of some pages.
    pub fn bytes(&self, pages: f64) -> f64 {
        pages * self.trace.page_size.max(1) as f64
    }

    /// Results of a policy.
    pub fn detail(&self, policy: &str) -> Option<&TraceDetail> {
        self.details.iter().find(|d| d.policy == policy)
    }

    /// The policy that pages tell most of.
    pub fn main(&self) -> Option<&TraceDetail> {
        main_of(&self.details, |d| &d.policy, self.recorded_policy.as_deref())
    }

    /// Summary in a line.
    pub fn facts(&self) -> String {
        let t = &self.trace;
        let mut out = format!(
            "{} to {} ({} in pages of {} bytes), {} of them writes, {}",
            counted(t.accesses, "access"),
            counted(t.footprint_pages, "page"),
            bytes(self.bytes(t.footprint_pages as f64)),
            t.page_size,
            Unit::Percent.text(100.0 * t.writes as f64 / t.accesses.max(1) as f64),
            counted(t.objects, "object"),
        );
        if let Some(seconds) = t.duration_s {
            out += &format!(", over {}", Unit::Seconds.text(seconds));
        }
        out += &format!("; format {}, seed {}, refault {}", t.format, self.seed, self.refault);
        if !self.kernel.is_empty() {
            out += &format!(", rules of Linux {}", self.kernel);
        }
        for (what, said) in [("source", &t.source), ("recorded on", &t.recorded_on)] {
            if let Some(said) = said {
                out += &format!("; {what}: {said}");
            }
        }
        out + &format!("; made by: {}", self.command)
    }
}
