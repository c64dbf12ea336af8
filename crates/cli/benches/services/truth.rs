//! The truth of a run: figures of the kernel, from its recording.

use crate::machine::{self, at};
use refault_trace::{OpenOptions, Record, RecordKind, Via};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Figures of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Truth {
    pub limit_bytes: u64,
    pub accesses: u64,
    pub misses: u64,
    /// Pages that came into the page cache and were not written there: what was read from disk.
    pub disk_pages: u64,
    /// By the `memory.stat` of the group.
    pub refaults: u64,
    /// As the device counts, which has file system blocks, too, and other groups.
    pub device_bytes: Option<u64>,
    pub lost: u64,
    pub oom_kills: u64,
    /// The lab at the limit of the recording.
    pub own: Option<Own>,
}

/// Figures of `verify` without another limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Own {
    pub lab_hit_rate: f64,
    /// Accesses that are the same, of 1.
    pub alike: f64,
    /// The object with the largest difference.
    pub worst: String,
}

impl Truth {
    pub fn hit_rate(&self) -> f64 {
        1.0 - self.misses as f64 / self.accesses.max(1) as f64
    }

    /// Reads a recording.
    pub fn of(file: &Path, device_bytes: Option<u64>) -> Result<Truth, String> {
        let name = file.to_string_lossy();
        let said = machine::refault(&["trace", "info", "--json", &name])?;
        let info: Value = serde_json::from_str(&said).map_err(at(&name))?;
        let (kernel, recording) = (&info["kernel"], &info["recording"]);
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        Ok(Truth {
            limit_bytes: count(&recording["memory_max"]),
            accesses: count(&kernel["hits"]) + count(&kernel["misses"]),
            misses: count(&kernel["misses"]),
            disk_pages: read_pages(file)?,
            refaults: grown(&recording["series"], "workingset_refault_file"),
            device_bytes,
            lost: count(&recording["lost"]),
            oom_kills: count(&recording["oom_kills"]),
            own: Own::of(&name),
        })
    }
}

impl Own {
    fn of(file: &str) -> Option<Own> {
        let said = machine::refault(&["verify", "--json", file]).ok()?;
        let json: Value = serde_json::from_str(&said).ok()?;
        let worst = &json["objects"][0];
        Some(Own {
            lab_hit_rate: json["lab_hit_rate"].as_f64()?,
            alike: json["agreement"].as_f64()?,
            worst: format!(
                "{}: {} misses in the lab, {} in the kernel",
                worst["name"].as_str()?,
                worst["lab_misses"],
                worst["kernel_misses"]
            ),
        })
    }
}

/// By how much a counter of the series grew.
fn grown(series: &Value, name: &str) -> u64 {
    let names = series["names"].as_array().map_or(&[][..], Vec::as_slice);
    let column = names.iter().position(|known| known.as_str() == Some(name));
    let snapshots = series["snapshots"].as_array().map_or(&[][..], Vec::as_slice);
    let value = |snapshot: Option<&Value>| snapshot?["values"].get(column?)?.as_u64();
    value(snapshots.last()).unwrap_or(0).saturating_sub(value(snapshots.first()).unwrap_or(0))
}

/// Pages that those who are recorded brought in, without what they wrote.
fn read_pages(file: &Path) -> Result<u64, String> {
    let mut source = refault_trace::open(file, &OpenOptions::default()).map_err(at(file.display()))?;
    let (mut chunk, mut by_task) = (Vec::new(), BTreeMap::<u32, Task>::new());
    while source.next_chunk(&mut chunk).map_err(at(file.display()))? {
        for record in &chunk {
            by_task.entry(record.task).or_default().count(record);
        }
    }
    let recorded = by_task.values().filter(|task| task.touches);
    Ok(recorded.map(|task| task.added.saturating_sub(task.written)).sum())
}

/// Pages of one task.
#[derive(Default)]
struct Task {
    touches: bool,
    added: u64,
    /// Added by a write.
    written: u64,
}

impl Task {
    fn count(&mut self, record: &Record) {
        self.touches |= record.kind.is_touch();
        match record.kind {
            RecordKind::Add => self.added += u64::from(record.pages),
            RecordKind::Miss if record.op.write && record.op.via == Some(Via::Fd) => {
                self.written += u64::from(record.pages)
            }
            _ => {}
        }
    }
}
