//! Where our numbers must be, from what was published.
//!
//! A change is the excess of the larger number over the smaller one, so the order of the two makes
//! no difference. A band is from half to double of the change.

use super::types::{Band, BandFrom};

/// Smallest change that counts as one: published single runs scatter by 0.7 to 6 percent.
const NO_CHANGE: f64 = 0.01;
/// Standard errors of a confidence interval of 95 percent.
const Z: f64 = 1.96;

/// The band of a ratio, from the two published numbers. `spread`: ends of the ratios of single
/// published runs, which widen the band.
pub(super) fn of_change(of: f64, to: f64, spread: Option<[f64; 2]>) -> Band {
    if (of == 0.0) != (to == 0.0) {
        let ends = [(of - to) / 2.0, (of - to) * 2.0];
        return Band { ends: [ends[0].min(ends[1]), ends[0].max(ends[1])], from: BandFrom::Difference };
    }
    let ratio = if of == to { 1.0 } else { of / to };
    let (ends, from) = if (ratio - 1.0).abs() < NO_CHANGE {
        ([1.0 - NO_CHANGE, 1.0 + NO_CHANGE], BandFrom::NoChange)
    } else {
        let excess = ratio.max(1.0 / ratio) - 1.0;
        let ends = [1.0 + excess / 2.0, 1.0 + excess * 2.0];
        (if ratio > 1.0 { ends } else { [1.0 / ends[1], 1.0 / ends[0]] }, BandFrom::Change)
    };
    let [low, high] = spread.unwrap_or(ends);
    Band { ends: [ends[0].min(low), ends[1].max(high)], from }
}

/// The band of a percentage that was counted once, over `count` events: Wilson's interval.
pub(super) fn of_count(percent: f64, count: u64) -> Band {
    let (p, n) = (percent / 100.0, count as f64);
    let middle = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).max(0.0).sqrt();
    let ends = [middle - half, middle + half].map(|end| (end * 100.0).clamp(0.0, 100.0));
    // Rounding does not exclude what was counted.
    Band { ends: [ends[0].min(percent), ends[1].max(percent)], from: BandFrom::Count(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(band: &Band, want: [f64; 2]) {
        assert!(band.ends.iter().zip(want).all(|(end, want)| (end - want).abs() < 5e-4), "{band:?} {want:?}");
    }

    #[test]
    fn half_to_double_whichever_is_first() {
        near(&of_change(300.0, 100.0, None), [2.0, 5.0]);
        near(&of_change(100.0, 300.0, None), [0.2, 0.5]);
        near(&of_change(104.0, 100.0, None), [1.02, 1.08]);
        assert_eq!(of_change(104.0, 100.0, None).from, BandFrom::Change);
    }

    #[test]
    fn a_change_of_nothing_is_none() {
        near(&of_change(1003.0, 1000.0, None), [0.99, 1.01]);
        near(&of_change(0.0, 0.0, None), [0.99, 1.01]);
        assert_eq!(of_change(1003.0, 1000.0, None).from, BandFrom::NoChange);
    }

    #[test]
    fn what_comes_out_of_nothing_is_a_difference() {
        assert_eq!(of_change(8.0, 0.0, None), Band { ends: [4.0, 16.0], from: BandFrom::Difference });
        assert_eq!(of_change(0.0, 8.0, None).ends, [-16.0, -4.0]);
    }

    #[test]
    fn single_runs_widen_a_band_and_never_narrow_it() {
        near(&of_change(104.0, 100.0, Some([0.9, 1.05])), [0.9, 1.08]);
        near(&of_change(104.0, 100.0, Some([1.03, 1.05])), [1.02, 1.08]);
    }

    #[test]
    fn counted_percentages() {
        near(&of_count(50.0, 100), [40.383, 59.617]);
        near(&of_count(0.0, 233), [0.0, 1.622]);
        near(&of_count(100.0, 224), [98.314, 100.0]);
    }
}
