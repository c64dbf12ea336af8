//! Facts that a recording of a kernel says of itself: what it was made on, what it sees, what it
//! lost.

use crate::space_sample::SpaceSample;
use serde::{Deserialize, Serialize};

/// The metadata `refault.recording`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// The recorder was ended before its end, or the file was cut: what is here is whole up to the
    /// last row.
    pub cut: bool,
    /// Target of the recording, in words.
    pub target: String,
    /// The release of the kernel.
    pub kernel: String,
    /// Nanoseconds from the first to the last moment of it.
    pub duration_ns: u64,
    /// Events of the kernel that were read, and events that were lost because a ring was full. A
    /// recording with losses is not exact.
    pub events: u64,
    /// See `events`.
    pub lost: u64,
    /// Accesses that are seen, in words.
    pub sees: Vec<String>,
    /// The memory cgroup that was recorded, if it was one.
    pub group: Option<String>,
    /// The version of memory cgroups that it is one of, 1 or 2; none: not known. With the first the
    /// kernel looks at the dirty pages of the machine only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup_version: Option<u8>,
    /// Its limit in bytes; none: no limit.
    pub memory_max: Option<u64>,
    /// Processes of the group that the kernel killed for want of memory.
    #[serde(skip_serializing_if = "is_zero")]
    pub oom_kills: u64,
    /// Swappiness of the group, or of the machine.
    pub swappiness: Option<u32>,
    /// Bytes of swap that it may use at most, by its own limit and what the machine has; 0: there
    /// is no swap; none: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_max: Option<u64>,
    /// The programs ran before the recorder looked at them (`--pid`, `--cgroup`, `--all`); none:
    /// not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<bool>,
    /// Whether multi-gen LRU was on.
    pub lru_gen: bool,
    /// `read_ahead_kb` of the device with most objects, in pages.
    pub read_ahead_pages: Option<u32>,
    /// Objects have numbers for names.
    pub anonymized: bool,
    /// Sampling of touches of memory in place; none: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touches: Option<Touches>,
    /// Pages that the kernel reported; none: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SpaceSample>,
    /// Touches for reading of all pages, by descriptor and by faults, which the kernel counted
    /// beside a sample; none: nobody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// Figures of the group, or of the machine, over time.
    pub series: Series,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Sampling of touches of memory in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touches {
    /// Method by which touches were seen.
    pub by: TouchMethod,
    /// Nanoseconds between two looks, on average: a touch is seen at the end of its interval.
    pub interval_ns: u64,
}

/// Method of telling that a page in place was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TouchMethod {
    /// Idle page tracking: the accessed bit, reads and writes.
    Idle,
    /// The soft-dirty bit of page tables: writes.
    SoftDirty,
    /// Write protection that the kernel lifts by itself (`PAGEMAP_SCAN`): writes.
    WriteProtect,
}

impl TouchMethod {
    /// All methods, the best first.
    pub const ALL: [TouchMethod; 3] = [TouchMethod::Idle, TouchMethod::SoftDirty, TouchMethod::WriteProtect];

    /// Its name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            TouchMethod::Idle => "idle",
            TouchMethod::SoftDirty => "soft-dirty",
            TouchMethod::WriteProtect => "write-protect",
        }
    }

    /// Whether it sees writes alone, and no pages that are only read.
    pub fn writes_only(self) -> bool {
        self != TouchMethod::Idle
    }
}

impl std::fmt::Display for Touches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let only = if self.by.writes_only() { "writes only, " } else { "" };
        write!(f, "{only}by {}, every {:.2} s", self.by.name(), self.interval_ns as f64 / 1e9)
    }
}

/// Gauges and counters of the kernel over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// Their names; sizes are in bytes, as `memory.stat` has them.
    pub names: Vec<String>,
    /// In the order of time.
    pub snapshots: Vec<Snapshot>,
}

/// One moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Nanoseconds since the start.
    pub time_ns: u64,
    /// Values, in the order of the names.
    pub values: Vec<u64>,
}

/// Snapshots that are kept: beyond it every second one goes, and they come half as often.
const MOST: usize = 4096;

impl Series {
    /// The place of a name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The first and the last value of a name.
    pub fn ends(&self, name: &str) -> Option<(u64, u64)> {
        let column = self.column(name)?;
        let value = |s: &Snapshot| s.values.get(column).copied();
        Some((value(self.snapshots.first()?)?, value(self.snapshots.last()?)?))
    }

    /// Appends a snapshot. True: there were too many, so every second one was dropped, and the next
    /// ones are wanted half as often.
    pub fn push(&mut self, snapshot: Snapshot) -> bool {
        self.snapshots.push(snapshot);
        let full = self.snapshots.len() > MOST;
        if full {
            let mut at = 0;
            self.snapshots.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_is_thinned() {
        let mut series = Series { names: vec!["usage".to_owned()], ..Series::default() };
        let mut halved = 0;
        for i in 0..10_000u64 {
            halved += u32::from(series.push(Snapshot { time_ns: i, values: vec![i * 2] }));
        }
        assert!(halved > 1 && series.snapshots.len() <= MOST);
        assert!(series.snapshots.is_sorted_by_key(|s| s.time_ns));
        assert_eq!(series.ends("usage"), Some((0, 19_998)));
        assert_eq!(series.ends("other"), None);
    }
}
