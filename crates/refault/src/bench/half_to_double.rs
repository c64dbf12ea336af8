//! Number of published changes that come out by half to double. The count ignores how far seeds
//! scatter, and where a band comes from.

use super::result::{BenchReport, BenchRow, Ratio};
use refault_lab::scenario::{BandFrom, Calibrated};

/// Smallest published ratio that may be met by its logarithm instead.
const LARGE: f64 = 2.0;

/// Whether a ratio of ours is the published change: of the same sign, and between half and double
/// of it. A large ratio may be so by its logarithm instead.
pub fn is_half_to_double(published: f64, ours: f64) -> bool {
    let is_near = |published: f64, ours: f64| (0.5..=2.0).contains(&(ours / published));
    is_near(published - 1.0, ours - 1.0) || published >= LARGE && is_near(published.ln(), ours.ln())
}

/// Number of published changes, and how many our numbers meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HalfToDouble {
    /// Changes that our numbers meet.
    pub met: usize,
    /// Changes with both sides published.
    pub all: usize,
}

impl HalfToDouble {
    /// Counts over some reports.
    pub fn of(reports: &[BenchReport]) -> HalfToDouble {
        let verdicts = reports.iter().flat_map(|report| &report.rows).flat_map(|row| &row.ratios).filter_map(verdict);
        verdicts.fold(HalfToDouble::default(), |count, is_met| HalfToDouble {
            met: count.met + usize::from(is_met),
            all: count.all + 1,
        })
    }
}

/// Whether the means meet the published change; none: a side of it was not published.
fn verdict(ratio: &Ratio) -> Option<bool> {
    let difference = ratio.published_difference?;
    let published = ratio.published?;
    Some(match ratio.spec.band.as_ref().map(|band| (&band.from, band.ends)) {
        Some((BandFrom::Difference, _)) => (0.5..=2.0).contains(&(ratio.difference / difference)),
        Some((BandFrom::NoChange, [low, high])) => (low..=high).contains(&ratio.ratio),
        _ => is_half_to_double(published, ratio.ratio),
    })
}

/// Value that a number of the first variant decided.
#[derive(Clone, Debug)]
pub struct CalibratedValue<'a> {
    /// Its key in the scenario.
    pub key: &'a str,
    /// Method by which the value was found.
    pub how: &'a str,
    /// The row of the number that decided it.
    pub row: &'a BenchRow,
}

impl BenchReport {
    /// Values that numbers of the first variant decided.
    pub fn calibrated(&self) -> impl Iterator<Item = CalibratedValue<'_>> {
        self.parameters.calibrated.iter().filter_map(|(key, origin)| match origin {
            Calibrated::As(_) => None,
            Calibrated::By { row, how } => {
                let row = self.rows.iter().find(|other| other.spec.label == *row)?;
                Some(CalibratedValue { key, how, row })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::is_half_to_double;

    #[test]
    fn a_change_is_met_from_half_to_double() {
        let met = |published, ours: [f64; 4]| ours.map(|ours| is_half_to_double(published, ours));
        assert_eq!(met(1.2, [1.09, 1.11, 1.39, 1.41]), [false, true, true, false]);
        assert_eq!(met(0.8, [0.91, 0.89, 0.61, 0.59]), [false, true, true, false]);
        // The other way is a miss, however small.
        assert_eq!(met(1.2, [0.99, 0.8, 1.0, 0.0]), [false; 4]);
    }

    #[test]
    fn a_large_ratio_may_be_met_by_its_logarithm() {
        // 5.43 more: 2.7 to 10.9 more, or from the square root to the square.
        assert!(is_half_to_double(6.43, 14.4) && is_half_to_double(6.43, 2.6));
        assert!(!is_half_to_double(6.43, 2.5) && !is_half_to_double(6.43, 42.0));
        assert!(!is_half_to_double(1.9, 1.4) && !is_half_to_double(2.21, 1.199));
    }
}
