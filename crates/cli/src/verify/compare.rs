//! What to say of hits and misses of the kernel and of the lab.

use crate::recording::{Compared, Loaded, Settings};
use serde::Serialize;

/// Differences in hit rate below this are agreement, in points.
pub(super) const POINTS: f64 = 0.5;

/// So many accesses must be the same.
const AGREEMENT: f64 = 0.99;

/// What it means.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) is_within: bool,
    pub(super) text: String,
}

impl Verdict {
    pub(super) fn new(compared: &Compared, loaded: &Loaded) -> Verdict {
        let (difference, agreement) = (compared.total.difference(), compared.total.agreement());
        let is_near = difference.abs() <= POINTS;
        let mut text = format!("the lab is within {:.2} points of this kernel", difference.abs());
        if !is_near {
            let (points, word) = (difference.abs(), if difference > 0.0 { "more" } else { "less" });
            text = format!("the lab hits {points:.2} points {word} than this kernel");
        }
        text += &format!(", and {:.2} % of the accesses are the same", 100.0 * agreement);
        let side = if is_near && agreement >= AGREEMENT { "inside of" } else { "outside of" };
        text += &format!(": {side} the bounds of {POINTS} points and {} %", 100.0 * AGREEMENT);
        let worst = compared.worst();
        let worst = worst.first().filter(|_| !is_near || agreement < AGREEMENT);
        if let Some((object, both)) = worst {
            let name = &loaded.objects[*object].name;
            text +=
                &format!("; the largest difference is {name}: {} misses for {}", both.lab_misses, both.kernel_misses);
        }
        if loaded.recording.lost > 0 {
            text += &format!("; {} events were lost, so that the recording is not exact", loaded.recording.lost);
        }
        if loaded.recording.cut {
            text += "; the recording was cut";
        }
        Verdict { is_within: is_near && agreement >= AGREEMENT && loaded.recording.lost == 0, text }
    }
}

/// What `--json` prints.
pub(super) fn json(compared: &Compared, loaded: &Loaded, settings: &Settings, verdict: &Verdict) -> serde_json::Value {
    let (kernel, lab) = compared.total.rates();
    let objects: Vec<_> = compared
        .worst()
        .into_iter()
        .map(|(at, both)| {
            let mut value = serde_json::json!(both);
            value["name"] = loaded.objects[at].name.as_str().into();
            value
        })
        .collect();
    serde_json::json!({
        "refault": env!("CARGO_PKG_VERSION"),
        "recording": loaded.name,
        "kernel": loaded.recording.kernel,
        "policy": settings.policy.name(),
        "memory_pages": settings.memory_pages,
        "read_ahead_pages": settings.config.readahead.file_pages,
        "large_folios": loaded.objects.iter().map(|file| settings.file_order(file)).max().unwrap_or(0),
        "events": loaded.recording.events,
        "lost": loaded.recording.lost,
        "accesses": compared.total.accesses,
        "kernel_hit_rate": kernel / 100.0,
        "lab_hit_rate": lab / 100.0,
        "agreement": compared.total.agreement(),
        "by_descriptor": compared.by_descriptor,
        "by_mapping": compared.by_mapping,
        "warm_pages": compared.warm,
        "kernel_pages": { "added": compared.added, "evicted": compared.evicted, "dropped": compared.dropped },
        "lab_counters": compared.ours,
        "windows": compared.windows,
        "objects": objects,
        "verdict": verdict,
    })
}
