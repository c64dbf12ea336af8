//! Differences between results.
//!
//! Each result says its numbers by name (`numbers`); numbers of the same name stand beside each
//! other. It reads `document`.

mod numbers;

use crate::document::Source;
use crate::units::Unit;
use numbers::{NamedNumber, metrics, settings, work};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of a comparison at most.
const MOST: usize = 400;

/// Value of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceVerdict {
    /// The other result is better.
    Better,
    /// The other result is worse.
    Worse,
    /// Equal values, or values of which neither is better.
    Neither,
}

/// The first of some results beside the others.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The others.
    pub others: Vec<OtherResult>,
    /// A row for each number that the first and another have.
    pub rows: Vec<ComparedNumber>,
}

impl Comparison {
    /// The number that differs most from that of the other result with this number, among those
    /// with this verdict: of percents in points, and where there is none in parts of the first
    /// value.
    pub fn largest(&self, other: usize, verdict: DifferenceVerdict) -> Option<(&ComparedNumber, Difference)> {
        let differing: Vec<(&ComparedNumber, Difference)> = self
            .rows
            .iter()
            .filter_map(|row| Some((row, row.others[other].filter(|o| o.verdict == verdict)?)))
            .collect();
        let apart = |(row, to): &(&ComparedNumber, Difference)| (to.value - row.value).abs();
        let part = |of: &(&ComparedNumber, Difference)| apart(of) / of.0.value.abs().max(1e-9);
        let percents = differing.iter().copied().filter(|(row, _)| row.unit == Unit::Percent);
        let most = percents.max_by(|a, b| apart(a).total_cmp(&apart(b)));
        most.or_else(|| differing.iter().copied().max_by(|a, b| part(a).total_cmp(&part(b))))
    }
}

/// A result beside the first.
#[derive(Clone, Debug)]
pub struct OtherResult {
    /// Its name.
    pub name: String,
    /// Why no difference to it is called better or worse.
    pub apart: Option<String>,
    /// Settings in which it differs from the first, in words: name, there, here.
    pub differs: Vec<String>,
    /// Numbers of it that are better.
    pub better: usize,
    /// Numbers of it that are worse.
    pub worse: usize,
    /// Numbers of it that are the same, or neither better nor worse.
    pub neither: usize,
    /// Numbers among these that differ by less than they spread.
    pub within: usize,
}

impl OtherResult {
    /// Numbers that it and the first have.
    pub fn common(&self) -> usize {
        self.better + self.worse + self.neither
    }
}

/// A number of the first result, and the same number of the others.
#[derive(Clone, Debug)]
pub struct ComparedNumber {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Its value in the first result.
    pub value: f64,
    /// Differences by other result; none: that result lacks the number.
    pub others: Vec<Option<Difference>>,
}

/// A number of another result.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Whether it is better than in the first result.
    pub verdict: DifferenceVerdict,
    /// Whether the values differ by less than they spread, so that neither is better.
    pub within: bool,
}

/// Compares the first of some results with each of the others.
pub fn compare(first: &Source, others: &[Source]) -> Comparison {
    let own: Vec<_> = metrics(&first.document).into_iter().take(MOST).collect();
    let mut rows: Vec<ComparedNumber> = own
        .iter()
        .map(|m| ComparedNumber { name: m.name.clone(), unit: m.unit, value: m.value, others: Vec::new() })
        .collect();
    let beside = |other: &Source| {
        let (a, b) = (work(&first.document), work(&other.document));
        let apart = (a != b).then(|| format!("{a} there, {b} here"));
        let metrics = metrics(&other.document);
        let (mut tally, mut within) = ([0; 3], 0);
        for (m, row) in own.iter().zip(&mut rows) {
            let found = metrics.iter().find(|o| o.name == m.name).map(|o| {
                let verdict = verdict(m, o, apart.is_some());
                tally[verdict as usize] += 1;
                let is_within = m.is_within(o);
                within += usize::from(is_within);
                Difference { value: o.value, unit: o.unit, verdict, within: is_within }
            });
            row.others.push(found);
        }
        let [better, worse, neither] = tally;
        let differs = differing(&settings(&first.document), &settings(&other.document));
        OtherResult { name: other.name.clone(), apart, differs, better, worse, neither, within }
    };
    let others = others.iter().map(beside).collect();
    rows.retain(|row| row.others.iter().any(Option::is_some));
    Comparison { others, rows }
}

/// Settings that are not the same, in words.
fn differing(first: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = first.keys().chain(other.keys()).collect();
    let value = |of: &BTreeMap<String, String>, name| of.get(name).map_or("none", String::as_str).to_owned();
    let differ = names.into_iter().filter(|name| first.get(*name) != other.get(*name));
    differ.map(|name| format!("{name} {} there, {} here", value(first, name), value(other, name))).collect()
}

/// Differences of less than a thousandth, or within the spread, are none.
fn verdict(before: &NamedNumber, after: &NamedNumber, is_other_work: bool) -> DifferenceVerdict {
    let (a, b) = (before.value, after.value);
    let is_same = (b - a).abs() <= 1e-3 * a.abs().max(b.abs());
    match before.less {
        Some(less) if !is_same && !is_other_work && !before.is_within(after) => {
            if (b < a) == less {
                DifferenceVerdict::Better
            } else {
                DifferenceVerdict::Worse
            }
        }
        _ => DifferenceVerdict::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::numbers::metric;
    use super::*;

    #[test]
    fn settings_that_differ_are_named() {
        let of = |all: &[(&str, &str)]| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let said = differing(
            &of(&[("kernel", "6.12"), ("seed", "1")]),
            &of(&[("kernel", "6.18"), ("seed", "1"), ("set", "a=1")]),
        );
        assert_eq!(said, ["kernel 6.12 there, 6.18 here", "set none there, a=1 here"]);
    }

    #[test]
    fn a_difference_within_the_spread_is_neither_better_nor_worse() {
        let m = |value, spread| metric("m", Unit::Percent, value, Some(true)).spread(spread);
        let of = |a: f64, b: f64, spread| verdict(&m(a, spread), &m(b, 0.0), false);
        assert_eq!(of(10.0, 12.0, 2.5), DifferenceVerdict::Neither);
        assert_eq!(of(10.0, 13.0, 2.5), DifferenceVerdict::Worse);
        assert!(m(10.0, 2.5).is_within(&m(12.0, 0.0)) && !m(10.0, 2.5).is_within(&m(10.0, 0.0)));
    }

    #[test]
    fn differences_have_a_direction() {
        let m = |value: f64, less| metric("m", Unit::Count, value, less);
        let of = |a, b, less| verdict(&m(a, less), &m(b, less), false);
        assert_eq!(of(1.0, 2.0, Some(true)), DifferenceVerdict::Worse);
        assert_eq!(of(1.0, 2.0, Some(false)), DifferenceVerdict::Better);
        assert_eq!(of(1.0, 1.0001, Some(false)), DifferenceVerdict::Neither);
        assert_eq!(of(1.0, 2.0, None), DifferenceVerdict::Neither);
        assert_eq!(verdict(&m(1.0, Some(true)), &m(2.0, Some(true)), true), DifferenceVerdict::Neither);
    }
}
