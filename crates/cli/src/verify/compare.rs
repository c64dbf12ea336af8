//! The verdict on the numbers of the kernel and of the lab.

use crate::flags::size::human;
use refault::recording::{Compared, Loaded, Metric, Settings, Trust, kernel_count};
use refault::words::{counted, grouped};
use serde::Serialize;

/// Conclusion from a comparison.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    /// Whether it can be trusted for all that was compared, and the recording is exact.
    pub(super) is_within: bool,
    pub(super) text: String,
    trust_for: Vec<Metric>,
    not_for: Vec<NotFor>,
}

/// A number that the lab does not have as the kernel has it.
#[derive(Clone, Debug, Serialize)]
struct NotFor {
    metric: Metric,
    why: String,
}

impl Verdict {
    pub(super) fn new(compared: &Compared, loaded: &Loaded) -> Verdict {
        if compared.is_out_of_memory {
            let text = out_of_memory(compared, loaded);
            return Verdict { is_within: false, text, trust_for: Vec::new(), not_for: Vec::new() };
        }
        let Trust { for_, not_for } = Trust::of(compared, loaded);
        let is_trusted = not_for.is_empty();
        let mut text = Trust { for_: for_.clone(), not_for: not_for.clone() }.text();
        let of_accesses = |metric| matches!(metric, Metric::HitRate | Metric::Misses | Metric::SingleAccesses);
        let worst = compared.worst();
        let worst = worst.first().filter(|_| not_for.iter().any(|&(metric, _)| of_accesses(metric)));
        if let Some((object, both)) = worst {
            let name = &loaded.objects[*object].name;
            let (lab, kernel) = (grouped(both.lab_misses), grouped(both.kernel_misses));
            text += &format!("; the largest difference is {name}: {lab} misses in the lab, {kernel} in the kernel");
        }
        if loaded.recording.lost > 0 {
            let lost = counted(loaded.recording.lost, "event was", "events were");
            text += &format!("; {lost} lost, so that the recording is not exact");
        }
        if loaded.recording.cut {
            text += "; the recording was cut";
        }
        let is_whole = loaded.recording.lost == 0;
        let not_for = not_for.into_iter().map(|(metric, why)| NotFor { metric, why }).collect();
        Verdict { is_within: is_trusted && is_whole, text, trust_for: for_, not_for }
    }
}

fn out_of_memory(compared: &Compared, loaded: &Loaded) -> String {
    let besides = human(4096 * loaded.besides_files_pages());
    let at = match compared.replayed {
        0 => String::new(),
        n => format!(", at access {}", grouped(n)),
    };
    format!(
        "the lab is out of memory{at}: this limit has no room for what the group had besides files, up to {besides}"
    )
}

pub(super) fn side(is_inside: bool) -> &'static str {
    if is_inside { "inside" } else { "outside" }
}

/// Object that `--json` prints.
pub(super) fn json(compared: &Compared, loaded: &Loaded, settings: &Settings, verdict: &Verdict) -> serde_json::Value {
    let (kernel, lab) = compared.total.rates();
    // Counts of a lab that ran out of memory are not whole.
    let whole = |value: serde_json::Value| if compared.is_out_of_memory { serde_json::Value::Null } else { value };
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
        "read_ahead_pages": loaded.read_ahead_pages(settings),
        "large_folios": loaded.objects.iter().map(|file| settings.file_order(file)).max().unwrap_or(0),
        "events": loaded.recording.events,
        "lost": loaded.recording.lost,
        "accesses": compared.total.accesses,
        "kernel_hit_rate": kernel / 100.0,
        "lab_hit_rate": whole((lab / 100.0).into()),
        "agreement": whole(compared.total.agreement().into()),
        "out_of_memory": compared.is_out_of_memory,
        "by_descriptor": whole(serde_json::json!(compared.by_descriptor)),
        "by_mapping": whole(serde_json::json!(compared.by_mapping)),
        "sampled": loaded.recording.touches.map(|touches| serde_json::json!({
            "by": touches.by,
            "interval_ns": touches.interval_ns,
            "touches": compared.sampled.accesses,
            "lab_misses": compared.sampled.lab_misses,
        })),
        "disk_reads": {
            "kernel": compared.kernel_reads,
            "lab": whole(serde_json::json!(compared.lab_reads)),
        },
        "refaults": {
            "kernel": kernel_count(loaded, "workingset_refault_file"),
            "lab": whole(compared.ours.get("workingset_refault_file").copied().unwrap_or(0).into()),
        },
            "warm_pages": compared.warm,
        "kernel_pages": { "added": compared.added, "evicted": compared.evicted, "dropped": compared.dropped },
        "lab_counters": whole(serde_json::json!(compared.ours)),
        "windows": whole(serde_json::json!(compared.windows)),
        "window_from_s": compared.window_from_s(),
        "objects": whole(objects.into()),
        "verdict": verdict,
    })
}
