//! Changes of a batch that may have to do with each other.

use std::ops::Range;

use super::order::Change;

/// Changes (but forks) that have addresses in common, directly or through others. There may be
/// thousands: a program that unmaps page by page is always at it.
pub(super) fn components(changes: &[Change]) -> Vec<Vec<usize>> {
    let ranges_of = |(i, change): (usize, &Change)| change.ranges().into_iter().map(move |range| (range, i));
    let mut ranges: Vec<(Range<usize>, usize)> = changes.iter().enumerate().flat_map(ranges_of).collect();
    ranges.sort_unstable_by_key(|(range, i)| (range.start, *i));
    // A change is in the component of the one that it names, if that is not itself.
    let mut parents: Vec<usize> = (0..changes.len()).collect();
    let mut reach: Option<(usize, usize)> = None;
    for (range, i) in ranges.iter().filter(|(range, _)| !range.is_empty()) {
        let (end, with) = reach.filter(|&(end, _)| range.start < end).unwrap_or((0, *i));
        let (a, b) = (first_of(&mut parents, with), first_of(&mut parents, *i));
        parents[a.max(b)] = a.min(b);
        reach = Some((end.max(range.end), *i));
    }
    let mut all: Vec<Vec<usize>> = vec![Vec::new(); changes.len()];
    for i in (0..changes.len()).filter(|&i| !matches!(changes[i], Change::Fork(_))) {
        all[first_of(&mut parents, i)].push(i);
    }
    all.retain(|members| !members.is_empty());
    all
}

/// The first change of a component that is known so far; ways to it become shorter.
fn first_of(parents: &mut [usize], mut i: usize) -> usize {
    while parents[i] != i {
        parents[i] = parents[parents[i]];
        i = parents[i];
    }
    i
}
