//! Sizes in which multi-gen LRU has two states.
//!
//! A group ages its pages only when it must. In one size, libraries that came in with faults stay
//! for ever and pages that are read have the rest; in the next size the libraries go. A single
//! aging decides which state a kernel ends in, so that a replay of one size says little. The states
//! show in sizes nearby, where more memory does worse than less.

/// Sizes to look at beside one, in percent of it.
const BESIDE: [u64; 2] = [96, 104];

/// Least loss of a larger size: as a share of the larger size's count, or as a difference for a
/// metric that is a share.
const WORSE: f64 = 0.02;

/// The size below and the one above.
pub(super) fn beside(pages: u64) -> [u64; 2] {
    BESIDE.map(|percent| (u128::from(pages) * u128::from(percent) / 100) as u64)
}

/// The lowest and the highest of the values below, at and above a size, if a larger one of these
/// sizes is worse than a smaller one. A metric that `grows` is better the higher it is, and is a
/// share.
pub(super) fn spread(values: [f64; 3], grows: bool) -> Option<(f64, f64)> {
    let [below, at, above] = values;
    let worse = |smaller: f64, larger: f64| match grows {
        true => smaller - larger > WORSE,
        false => larger - smaller > WORSE * larger,
    };
    let is_unstable = worse(below, at) || worse(at, above) || worse(below, above);
    let ordered = |values: [f64; 3]| {
        values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    is_unstable.then(|| ordered(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_a_size_between_two_that_do_worse_has_two_states() {
        // fio in 48 MiB under multi-gen LRU: 81.36 % promised, and the kernel had 63.80 % twice.
        assert_eq!(spread([0.5928, 0.8136, 0.6680], true), Some((0.5928, 0.8136)));
        assert_eq!(spread([0.80, 0.81, 0.82], true), None);
        assert_eq!(spread([0.810, 0.800, 0.820], true), None, "chance");
        assert_eq!(spread([120.0, 100.0, 150.0], false), Some((100.0, 150.0)));
        assert_eq!(spread([120.0, 100.0, 101.0], false), None);
        assert_eq!(beside(100), [96, 104]);
    }
}
