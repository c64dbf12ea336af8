//! What to say of hits and misses of the kernel and of the lab.

use crate::recording::{Compared, Loaded, Settings};
use crate::terminal::grouped;
use serde::Serialize;

/// Differences in hit rate below this are agreement, in points.
pub(super) const POINTS: f64 = 0.5;

/// So many accesses must be the same.
pub(super) const AGREEMENT: f64 = 0.99;

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
        let is_alike = agreement >= AGREEMENT;
        let mut text = format!(
            "the lab hits {} this kernel ({}: the bound is {POINTS}), and {:.2} % of the accesses are the same ({}: the \
             bound is {} %)",
            apart(difference),
            side(is_near),
            100.0 * agreement,
            side(is_alike),
            100.0 * AGREEMENT
        );
        let worst = compared.worst();
        let worst = worst.first().filter(|_| !is_near || !is_alike);
        if let Some((object, both)) = worst {
            let name = &loaded.objects[*object].name;
            let (lab, kernel) = (grouped(both.lab_misses), grouped(both.kernel_misses));
            text += &format!("; the largest difference is {name}: {lab} misses in the lab, {kernel} in the kernel");
        }
        if compared.is_out_of_memory {
            text += "; but this limit has no room for what the group had besides files: out of memory";
        }
        if loaded.recording.lost > 0 {
            let lost = grouped(loaded.recording.lost);
            text += &format!("; {lost} events were lost, so that the recording is not exact");
        }
        if loaded.recording.cut {
            text += "; the recording was cut";
        }
        let is_whole = loaded.recording.lost == 0 && !compared.is_out_of_memory;
        Verdict { is_within: is_near && is_alike && is_whole, text }
    }
}

/// By how many points one hits more than another, in words.
pub(super) fn apart(points: f64) -> String {
    match (points.abs(), points > 0.0) {
        (points, _) if points < 0.005 => "as often as".to_owned(),
        (points, true) => format!("{points:.2} points more than"),
        (points, false) => format!("{points:.2} points less than"),
    }
}

pub(super) fn side(is_inside: bool) -> &'static str {
    if is_inside { "inside" } else { "outside" }
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
        "sampled": loaded.recording.touches.map(|touches| serde_json::json!({
            "by": touches.by,
            "interval_ns": touches.interval_ns,
            "touches": compared.sampled.accesses,
            "lab_misses": compared.sampled.lab_misses,
        })),
        "disk_reads": { "kernel": compared.kernel_reads, "lab": compared.lab_reads },
        "warm_pages": compared.warm,
        "kernel_pages": { "added": compared.added, "evicted": compared.evicted, "dropped": compared.dropped },
        "lab_counters": compared.ours,
        "windows": compared.windows,
        "window_from_s": compared.window_from_s(),
        "objects": objects,
        "verdict": verdict,
    })
}
