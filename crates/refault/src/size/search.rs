//! The search: both ends, then two sizes at a time that divide what is left into three, until
//! neighbours are apart by a step.
//!
//! Two at a time, because the runs are independent and keep two processors busy; always two, so
//! that the sizes tried do not depend on the machine. If a size fails that is larger than one that
//! passes, the search goes on above the failed size: it finds the smallest size above which no size
//! that was tried failed.

use super::grid::Grid;
use std::collections::BTreeMap;

/// Outcome at a size.
pub(super) trait Probe {
    /// Whether the target is met.
    fn is_met(&self) -> bool;
}

/// Conclusion of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeVerdict {
    /// This size; the next smaller one fails.
    Found(u64),
    /// The smallest size already does.
    MetAtSmallest(u64),
    /// Not even the largest does.
    NotMet,
    /// The lab is too far from the recorded kernel to say.
    NotTrusted,
}

/// Everything that was tried, by size, and what it says.
pub(super) fn search<P: Probe, E>(
    grid: Grid,
    mut probe: impl FnMut(&[u64]) -> Result<Vec<P>, E>,
) -> Result<(BTreeMap<u64, P>, SizeVerdict), E> {
    let mut tried: BTreeMap<u64, P> = BTreeMap::new();
    let mut try_all = |numbers: &[u64], tried: &mut BTreeMap<u64, P>| -> Result<(), E> {
        let mut sizes: Vec<_> =
            numbers.iter().map(|&n| grid.pages(n)).filter(|size| !tried.contains_key(size)).collect();
        sizes.dedup();
        if sizes.is_empty() {
            return Ok(());
        }
        let results = probe(&sizes)?;
        tried.extend(sizes.into_iter().zip(results));
        Ok(())
    };
    let last = grid.last();
    try_all(&[0, last], &mut tried)?;
    let met = |number: u64, tried: &BTreeMap<u64, P>| tried.get(&grid.pages(number)).is_some_and(Probe::is_met);
    if !met(last, &tried) {
        // Sizes in between say whether it is far from it, or met where nobody would expect it.
        try_all(&thirds(0, last), &mut tried)?;
        return Ok((tried, SizeVerdict::NotMet));
    }
    if met(0, &tried) {
        return Ok((tried, SizeVerdict::MetAtSmallest(grid.pages(0))));
    }
    let (mut below, mut above) = (0, last);
    while above - below > 1 {
        let next = thirds(below, above);
        try_all(&next, &mut tried)?;
        if let Some(&failed) = next.iter().rev().find(|&&n| !met(n, &tried)) {
            below = failed;
        }
        above = next.iter().copied().filter(|&n| n > below).chain([above]).min().unwrap_or(above);
    }
    Ok((tried, SizeVerdict::Found(grid.pages(above))))
}

/// Sizes that grow by an eighth each.
pub(super) fn walk<P: Probe, E>(
    grid: Grid,
    mut probe: impl FnMut(&[u64]) -> Result<Vec<P>, E>,
) -> Result<(BTreeMap<u64, P>, SizeVerdict), E> {
    let next = |size: &u64| Some((size + size.div_ceil(8)).min(grid.high)).filter(|next| next > size);
    let sizes: Vec<u64> = std::iter::successors(Some(grid.low.max(1)), next).collect();
    let results = probe(&sizes)?;
    Ok((sizes.into_iter().zip(results).collect(), SizeVerdict::NotMet))
}

/// The one or two numbers that divide what lies between two numbers.
fn thirds(below: u64, above: u64) -> Vec<u64> {
    let width = above - below;
    let mut two = vec![below + width.div_ceil(3), below + width * 2 / 3];
    two.retain(|&n| n > below && n < above);
    two.sort_unstable();
    two.dedup();
    two
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Met(bool);

    impl Probe for Met {
        fn is_met(&self) -> bool {
            self.0
        }
    }

    fn of(grid: Grid, met: impl Fn(u64) -> bool) -> (BTreeMap<u64, Met>, SizeVerdict, usize) {
        let mut rounds = 0;
        let found = search(grid, |sizes| {
            rounds += 1;
            assert!(sizes.len() <= 2 && !sizes.is_empty());
            Ok::<_, Infallible>(sizes.iter().map(|&s| Met(met(s))).collect())
        });
        let Ok((tried, verdict)) = found;
        (tried, verdict, rounds)
    }

    #[test]
    fn a_size_above_which_one_fails_is_not_the_answer() {
        // Met at 10 to 40, and from 61 on; the first round meets both.
        let (tried, verdict, _) = of(Grid::new(1, 81, Some(1)), |s| (10..=40).contains(&s) || s >= 61);
        assert_eq!(verdict, SizeVerdict::Found(61), "{tried:?}");
    }

    #[test]
    fn what_is_not_met_at_the_largest_is_looked_at_in_between() {
        let (tried, verdict, _) = of(Grid::new(0, 90, Some(1)), |s| s == 30);
        assert_eq!((verdict, tried.len()), (SizeVerdict::NotMet, 4));
        assert!(tried[&30].is_met());
    }

    proptest! {
        #[test]
        fn a_threshold_is_found_in_logarithmic_time(low in 0u64..1000, width in 0u64..100_000, step in 1u64..200, at in 0u64..110_000) {
            let grid = Grid::new(low, low + width, Some(step));
            let (tried, verdict, rounds) = of(grid, |s| s >= at);
            let want = (0..=grid.last()).map(|n| grid.pages(n)).find(|&s| s >= at);
            match want {
                None => prop_assert_eq!(verdict, SizeVerdict::NotMet),
                Some(size) if size == low => prop_assert_eq!(verdict, SizeVerdict::MetAtSmallest(low)),
                Some(size) => prop_assert_eq!(verdict, SizeVerdict::Found(size)),
            }
            let bound = 3.0 + (grid.last().max(1) as f64).log(1.5);
            prop_assert!((rounds as f64) <= bound && tried.len() <= 2 * rounds, "{} rounds of {}", rounds, grid.last());
        }

        #[test]
        fn whatever_is_met_the_answer_is_met_and_nothing_tried_above_it_fails(flags in prop::collection::vec(any::<bool>(), 1..60)) {
            let grid = Grid::new(0, flags.len() as u64 - 1, Some(1));
            let (tried, verdict, _) = of(grid, |s| flags[s as usize]);
            if let SizeVerdict::Found(size) | SizeVerdict::MetAtSmallest(size) = verdict {
                prop_assert!(flags[size as usize]);
                prop_assert!(verdict == SizeVerdict::MetAtSmallest(size) || tried.range(size..).all(|(_, met)| met.0));
            }
            prop_assert_eq!(verdict == SizeVerdict::NotMet, !flags[flags.len() - 1]);
        }
    }
}
