//! The size beyond which memory is not worth its price.
//!
//! A bend by eye depends on where a curve begins and ends. This one does not: a step is worth it
//! while memory that grows by a part saves at least half of that part of the misses, whatever else
//! was tried. So twice the memory is worth a third of the misses, and a tenth more a twentieth.

/// Exponent: a step pays if misses fall at least with this power of the size.
const WORTH: f64 = 0.5;

/// Where, of sizes and their misses in ascending order of size, the last step ends that is worth
/// it; none: no step is.
pub fn knee_by_price(points: &[(f64, f64)]) -> Option<usize> {
    let is_worth = |pair: &[(f64, f64)]| {
        let ((size, misses), (larger, fewer)) = (pair[0], pair[1]);
        // Chance makes curves rise in places: only what is saved for good counts.
        misses > fewer && larger > size && (misses / fewer).ln() >= WORTH * (larger / size).ln()
    };
    let lowest: Vec<_> = points
        .iter()
        .scan(f64::INFINITY, |least, &(size, misses)| {
            *least = least.min(misses);
            Some((size, *least))
        })
        .collect();
    lowest.windows(2).rposition(is_worth).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_the_knee_does_not_depend_on_where_the_curve_begins() {
        // Misses fall with the size, up to 64; from there on hardly.
        let misses = |size: f64| if size <= 64.0 { 1e6 / size } else { 1e6 / 64.0 - (size - 64.0) };
        let curve = |from: i32| (from..60).map(|i| 1.1f64.powi(i)).map(|size| (size, misses(size))).collect::<Vec<_>>();
        let at = |from| knee_by_price(&curve(from)).map(|at| curve(from)[at].0);
        assert_eq!(at(0), at(30));
        assert!(at(0).is_some_and(|size| (58.0..71.0).contains(&size)), "{:?}", at(0));
    }

    #[test]
    fn edges() {
        assert_eq!(knee_by_price(&[]), None);
        assert_eq!(knee_by_price(&[(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)]), None);
        // A loop: everything misses until all of it fits.
        assert_eq!(knee_by_price(&[(1.0, 9.0), (2.0, 9.0), (3.0, 0.0), (4.0, 0.0)]), Some(2));
        assert_eq!(knee_by_price(&[(1.0, 9.0), (2.0, 4.0), (3.0, 8.0), (4.0, 4.0)]), Some(1));
    }
}
