//! How far an answer is to be trusted, by how near the lab is to the recorded kernel.

use super::sizing::Confidence;
use super::target::Metric;

const PAGE_SIZE: f64 = 4096.0;

/// Differences up to which the lab is as good as the kernel, and up to which its bounds are
/// widened: of a hit rate in points (0 to 1), of counts as a ratio.
const NEAR_POINTS: (f64, f64) = (0.005, 0.05);
const NEAR_RATIO: (f64, f64) = (1.1, 1.5);

/// Counts that differ by no more than this part of the accesses are alike, whatever their ratio.
const FEW: f64 = 0.001;

/// How far a metric is to be trusted that the kernel and the lab have had in these amounts.
pub(crate) fn trust(metric: Metric, kernel: f64, lab: f64, accesses: f64, span_s: f64) -> Confidence {
    if metric == Metric::HitRate {
        let off = (kernel - lab).abs();
        return match off {
            off if off <= NEAR_POINTS.0 => Confidence::Whole,
            off if off <= NEAR_POINTS.1 => Confidence::Widened,
            _ => Confidence::Refused,
        };
    }
    let unit = match metric {
        Metric::RefaultsPerAccess => 1.0 / accesses,
        Metric::RefaultsPerS | Metric::ReadsPerS => 1.0 / span_s,
        Metric::ReadBytes => PAGE_SIZE,
        Metric::ReadBytesPerS => PAGE_SIZE / span_s,
        _ => 1.0,
    };
    if (kernel - lab).abs() <= FEW * accesses * unit {
        return Confidence::Whole;
    }
    let (less, more) = (kernel.min(lab), kernel.max(lab));
    match more / less.max(f64::MIN_POSITIVE) {
        ratio if ratio <= NEAR_RATIO.0 => Confidence::Whole,
        ratio if ratio <= NEAR_RATIO.1 => Confidence::Widened,
        _ => Confidence::Refused,
    }
}
