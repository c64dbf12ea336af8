//! Columns beside the target's that are not as the recorded kernel had them: `verify` would say
//! not to trust the lab for them.

use crate::recording::{Compared, LoadedRecording, Settings, Trust, TrustMetric, WarmUp};

/// A column that is marked, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    pub(super) column: &'static str,
    pub(super) note: String,
}

/// Doubts of a replay under the recorded limit. The column of the target is left out: its own line
/// says how near it is.
pub(super) fn of(compared: &Compared, loaded: &LoadedRecording, settings: &Settings, target: &str) -> Vec<Doubt> {
    if compared.is_out_of_memory {
        return Vec::new();
    }
    // The kernel counted refaults from the start of the recording on.
    let is_known = |metric| metric != TrustMetric::Refaults || settings.warm_up == WarmUp::Auto;
    let not_for = Trust::of(compared, loaded).not_for.into_iter();
    let doubts = not_for.filter(|(metric, _)| is_known(*metric)).filter_map(|(metric, why)| doubt(metric, &why));
    doubts.filter(|doubt| doubt.column != target).collect()
}

fn doubt(metric: TrustMetric, why: &str) -> Option<Doubt> {
    let (column, are, them) = match metric {
        TrustMetric::HitRate => ("hit_rate", "is", "it"),
        TrustMetric::Misses => ("misses", "are", "them"),
        TrustMetric::Refaults => ("refaults", "are", "them"),
        TrustMetric::DiskReads => ("read_bytes", "are", "them"),
        // No column has them.
        TrustMetric::SingleAccesses => return None,
    };
    Some(Doubt { column, note: format!("{} {are} not as the kernel had {them}: {why}", metric.words()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_a_column_has_words() {
        let note = |metric| doubt(metric, "why").map(|doubt| (doubt.column, doubt.note));
        assert_eq!(
            note(TrustMetric::Refaults),
            Some(("refaults", "refaults are not as the kernel had them: why".to_owned()))
        );
        assert_eq!(note(TrustMetric::DiskReads).map(|of| of.0), Some("read_bytes"));
        assert_eq!(note(TrustMetric::SingleAccesses), None);
    }
}
