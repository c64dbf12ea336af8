//! The verdict on the numbers of the kernel and of the lab.

use crate::memory_size::human;
use crate::recording::{Compared, LoadedRecording, Settings, Trust, TrustMetric};
use crate::settings::{kernel_of, policy_of};
use crate::words::{counted, grouped};
use refault_trace::Recording;
use serde::Serialize;

/// Conclusion from a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Whether it can be trusted for all that was compared, and the recording is exact.
    pub is_within: bool,
    /// The same in a sentence.
    pub text: String,
    /// Numbers that the lab has as the kernel has them.
    pub trust_for: Vec<TrustMetric>,
    /// Numbers in which the two differ.
    pub not_for: Vec<NotFor>,
}

/// A number that the lab does not have as the kernel has it.
#[derive(Clone, Debug, Serialize)]
pub struct NotFor {
    /// The number.
    pub metric: TrustMetric,
    /// Both values, in words.
    pub why: String,
}

impl Verdict {
    pub(super) fn new(compared: &Compared, loaded: &LoadedRecording, settings: &Settings) -> Verdict {
        if compared.is_out_of_memory {
            let text = out_of_memory(compared, loaded);
            return Verdict { is_within: false, text, trust_for: Vec::new(), not_for: Vec::new() };
        }
        if let Some(text) = in_others(settings, &loaded.recording) {
            return Verdict { is_within: false, text, trust_for: Vec::new(), not_for: Vec::new() };
        }
        let Trust { for_, not_for } = Trust::of(compared, loaded);
        let is_trusted = not_for.is_empty();
        let mut text = Trust { for_: for_.clone(), not_for: not_for.clone() }.text();
        let of_accesses =
            |metric| matches!(metric, TrustMetric::HitRate | TrustMetric::Misses | TrustMetric::SingleAccesses);
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

/// Words for a lab that had another limit, policy or kernel than was recorded; none: it had the
/// same.
fn in_others(settings: &Settings, recording: &Recording) -> Option<String> {
    let size = |pages: Option<u64>| pages.map_or("no limit".to_owned(), |pages| human(pages.saturating_mul(4096)));
    let (limit, policy) = (recording.memory_max.map(|bytes| bytes / 4096), policy_of(recording));
    let kernel = kernel_of(recording);
    let all = [
        (settings.memory_pages != limit, size(settings.memory_pages), size(limit)),
        (settings.policy != policy, settings.policy.name().to_owned(), policy.name().to_owned()),
        (settings.kernel != kernel, format!("rules of {}", settings.kernel), format!("rules of {kernel}")),
    ];
    let (ours, theirs): (Vec<_>, Vec<_>) =
        all.into_iter().filter(|(is_other, ..)| *is_other).map(|(_, ours, theirs)| (ours, theirs)).unzip();
    (!ours.is_empty()).then(|| {
        format!(
            "the lab has {}, the recording {}: a comparison in another limit, policy or kernel says nothing about trust",
            ours.join(" and "),
            theirs.join(" and ")
        )
    })
}

fn out_of_memory(compared: &Compared, loaded: &LoadedRecording) -> String {
    let besides = human(4096 * loaded.besides_files_pages());
    let at = match compared.replayed {
        0 => String::new(),
        n => format!(", at access {}", grouped(n)),
    };
    format!(
        "the lab is out of memory{at}: this limit has no room for what the group had besides files, up to {besides}"
    )
}
