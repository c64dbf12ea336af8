//! The result of a comparison, and its form for programs; the schema is in
//! docs/reference/record.md.

use super::verdict::Verdict;
use crate::recording::{Compared, LoadedRecording, Settings, kernel_count};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// A recording, its settings in the replay, and the result.
#[derive(Clone, Debug)]
pub struct Verified<'a> {
    /// The recording.
    pub recording: &'a LoadedRecording,
    /// Settings of the replay.
    pub settings: Settings,
    /// Counts of the kernel and of the lab.
    pub compared: Compared,
    /// The conclusion.
    pub verdict: Verdict,
}

impl Verified<'_> {
    /// The largest order of a folio of a file.
    pub fn largest_order(&self) -> u8 {
        self.recording.objects.iter().map(|file| self.settings.file_order(file)).max().unwrap_or(0)
    }
}

impl Serialize for Verified<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        value(self).serialize(serializer)
    }
}

/// One object.
fn value(verified: &Verified<'_>) -> Value {
    let Verified { recording, settings, compared, verdict } = verified;
    let (kernel, lab) = compared.total.rates();
    // Counts of a lab that ran out of memory are not whole.
    let whole = |value: Value| if compared.is_out_of_memory { Value::Null } else { value };
    let objects: Vec<_> = compared
        .worst()
        .into_iter()
        .map(|(at, both)| {
            let mut value = json!(both);
            value["name"] = recording.objects[at].name.as_str().into();
            value
        })
        .collect();
    json!({
        "refault": env!("CARGO_PKG_VERSION"),
        "recording": recording.name,
        "kernel": recording.recording.kernel,
        "policy": settings.policy.name(),
        "memory_pages": settings.memory_pages,
        "read_ahead_pages": recording.read_ahead_pages(settings),
        "large_folios": verified.largest_order(),
        "events": recording.recording.events,
        "lost": recording.recording.lost,
        "accesses": compared.total.accesses,
        "kernel_hit_rate": kernel / 100.0,
        "lab_hit_rate": whole((lab / 100.0).into()),
        "agreement": whole(compared.total.agreement().into()),
        "out_of_memory": compared.is_out_of_memory,
        "by_descriptor": whole(json!(compared.by_descriptor)),
        "by_mapping": whole(json!(compared.by_mapping)),
        "sampled": recording.recording.touches.map(|touches| json!({
            "by": touches.by,
            "interval_ns": touches.interval_ns,
            "touches": compared.sampled.accesses,
            "lab_misses": compared.sampled.lab_misses,
        })),
        "disk_reads": {
            "kernel": compared.kernel_reads,
            "lab": whole(json!(compared.lab_reads)),
        },
        "refaults": {
            "kernel": kernel_count(recording, "workingset_refault_file"),
            "lab": whole(compared.ours.get("workingset_refault_file").copied().unwrap_or(0).into()),
        },
        "warm_pages": compared.warm,
        "kernel_pages": { "added": compared.added, "evicted": compared.evicted, "dropped": compared.dropped },
        "lab_counters": whole(json!(compared.ours)),
        "windows": whole(json!(compared.windows)),
        "window_from_s": compared.window_from_s(),
        "objects": whole(objects.into()),
        "verdict": verdict,
    })
}
