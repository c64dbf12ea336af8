//! Differences between results.
//!
//! Each result says its numbers by name (`numbers`); numbers of the same name stand beside each
//! other. It reads `document`.

mod numbers;

use crate::document::Source;
use crate::units::Unit;
use numbers::{NamedNumber, command, metrics, only_policy, policies, settings, work};
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
    /// The commands of the first result and of it, if they are others.
    pub commands: Option<(&'static str, &'static str)>,
    /// The only policy of the first result and of it, if these are others: their numbers stand
    /// beside each other.
    pub own_policies: Option<(String, String)>,
    /// Settings in which it differs from the first, in words: the name, and both values with the
    /// names of the results.
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
    let only = only_policy(&first.document);
    let is_of_policies = others.iter().any(|other| own_policies(first, other).is_some());
    let only = only.filter(|_| is_of_policies);
    let own: Vec<_> = metrics(&first.document, only).into_iter().take(MOST).collect();
    let mut rows: Vec<ComparedNumber> = own
        .iter()
        .map(|m| ComparedNumber { name: m.name.clone(), unit: m.unit, value: m.value, others: Vec::new() })
        .collect();
    let beside = |other: &Source| {
        let (a, b) = (work(&first.document), work(&other.document));
        let apart = (a != b).then(|| format!("{a} in {}, {b} in {}", first.name, other.name));
        let own_policies = own_policies(first, other);
        let metrics = metrics(&other.document, own_policies.map(|(_, b)| b).or(only));
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
        let commands = (command(&first.document), command(&other.document));
        let commands = Some(commands).filter(|(a, b)| a != b);
        let own_policies = own_policies.map(|(a, b)| (a.to_owned(), b.to_owned()));
        let (name, differs) = (other.name.clone(), differing(first, other));
        OtherResult { name, apart, commands, own_policies, differs, better, worse, neither, within }
    };
    let others = others.iter().map(beside).collect();
    rows.retain(|row| row.others.iter().any(Option::is_some));
    Comparison { others, rows }
}

/// The only policies of both, if these are others: with one policy each, the policy is what is
/// compared.
fn own_policies<'a>(first: &'a Source, other: &'a Source) -> Option<(&'a str, &'a str)> {
    let both = (only_policy(&first.document)?, only_policy(&other.document)?);
    (both.0 != both.1).then_some(both)
}

/// Settings that are not the same, in words, and policies that each of both has alone. Results of
/// different commands say different settings: those that both say are compared.
fn differing(first: &Source, other: &Source) -> Vec<String> {
    let (mut a, mut b) = (settings(&first.document), settings(&other.document));
    if command(&first.document) != command(&other.document) {
        a.retain(|name, _| b.contains_key(name));
        b.retain(|name, _| a.contains_key(name));
    }
    if let Some((of_first, of_other)) = policies_apart(&policies(&first.document), &policies(&other.document)) {
        a.insert("policy".into(), of_first);
        b.insert("policy".into(), of_other);
    }
    settings_apart((&first.name, &a), (&other.name, &b))
}

/// Policies of each that the other lacks; none: one of both has all that the other has. OPT is a
/// bound: it counts where it is alone.
fn policies_apart(first: &[&str], other: &[&str]) -> Option<(String, String)> {
    let lacks = |all: &[&str], than: &[&str]| {
        let alone: Vec<&str> = (all.iter().copied())
            .filter(|policy| !than.contains(policy) && (*policy != "opt" || all.len() == 1))
            .collect();
        (!alone.is_empty()).then(|| alone.join(" and "))
    };
    Some((lacks(first, other)?, lacks(other, first)?))
}

type Settings = BTreeMap<String, String>;

fn settings_apart((first, a): (&str, &Settings), (other, b): (&str, &Settings)) -> Vec<String> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |of: &Settings, name| of.get(name).map_or("none", String::as_str).to_owned();
    let differ = names.into_iter().filter(|name| a.get(*name) != b.get(*name));
    differ.map(|name| format!("{name} {} in {first}, {} in {other}", value(a, name), value(b, name))).collect()
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
    use crate::document::Document;
    use crate::document::replay::{ReplayDocument, ReplayRow};

    #[test]
    fn settings_that_differ_are_named() {
        let of = |all: &[(&str, &str)]| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let said = settings_apart(
            ("a", &of(&[("kernel", "6.12"), ("seed", "1")])),
            ("b", &of(&[("kernel", "6.18"), ("seed", "1"), ("set", "a=1")])),
        );
        assert_eq!(said, ["kernel 6.12 in a, 6.18 in b", "set none in a, a=1 in b"]);
    }

    fn replay(name: &str, rows: &[(&str, u64, u64)]) -> Source {
        let row = |&(policy, pages, misses): &(&str, u64, u64)| ReplayRow {
            policy: policy.into(),
            memory_pages: Some(pages),
            page_size: 4096,
            accesses: 1000,
            misses,
            ..ReplayRow::default()
        };
        let settings = BTreeMap::from([("kernel".to_owned(), "6.18".to_owned())]);
        let document = ReplayDocument { rows: rows.iter().map(row).collect(), settings, ..ReplayDocument::default() };
        Source::new(name, Document::Replay(Box::new(document)))
    }

    #[test]
    fn regression_results_of_one_policy_each_are_compared_with_each_other() {
        let first = replay("a", &[("lru", 256, 300), ("lru", 512, 200), ("opt", 256, 100)]);
        let others = [
            replay("b", &[("mglru", 256, 200), ("opt", 256, 100)]),
            replay("c", &[("lru", 256, 400)]),
            replay("d", &[("lru", 512, 100), ("mglru", 256, 100)]),
        ];
        let Comparison { others, rows } = compare(&first, &others);
        let [b, c, d] = &others[..] else { panic!("three") };
        assert_eq!(b.differs, ["policy lru in a, mglru in b"]);
        assert_eq!(b.own_policies, Some(("lru".into(), "mglru".into())));
        assert_eq!((b.better, b.worse, b.neither), (1, 0, 1));
        assert_eq!((c.worse, c.own_policies.is_none(), c.differs.len()), (1, true, 0));
        // The policy that it shares with the first stands beside that.
        assert_eq!((d.better, d.worse, d.common()), (1, 0, 1));
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["own policy, 1 MiB: misses", "own policy, 2 MiB: misses", "opt, 1 MiB: misses"]);
        let alike = compare(&first, &[replay("c", &[("lru", 256, 400)])]);
        assert_eq!(alike.rows[0].name, "lru, 1 MiB: misses");
    }

    #[test]
    fn policies_that_one_side_alone_has_are_a_difference_where_both_have_some() {
        assert_eq!(policies_apart(&["lru", "mglru", "opt"], &["lru", "opt"]), None);
        let apart = policies_apart(&["lru", "mglru", "opt"], &["lru-none", "opt"]);
        assert_eq!(apart, Some(("lru and mglru".into(), "lru-none".into())));
    }

    #[test]
    fn regression_results_of_other_commands_differ_in_no_setting_that_one_never_says() {
        let whatif = Source::new("w", Document::WhatIf(Box::default()));
        let Comparison { others, rows } = compare(&replay("a", &[("lru", 256, 300)]), &[whatif]);
        assert!(rows.is_empty() && others[0].differs.is_empty(), "{:?}", others[0].differs);
        assert_eq!(others[0].commands, Some(("refault replay of a trace", "refault whatif")));
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
