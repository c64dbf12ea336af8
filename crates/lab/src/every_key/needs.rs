//! Every key is refused in a scenario that lacks what it acts on.

use std::collections::BTreeSet;

use super::change::{Change, changes};
use super::tests::{base, data, is_excepted, numbers, parse, reasons};
use crate::scenario::declared::{bare, declared};
use crate::scenario::needs::needy;
use refault_testing::one_in;

/// Whether a scenario is refused, and at the key: when it is read, or under its policy.
fn refusal(text: &str) -> Option<String> {
    match parse("", text) {
        Ok(scenario) => scenario.check_acts("s.toml", std::slice::from_ref(&scenario.policy)).err(),
        Err(error) => Some(error),
    }
}

#[test]
fn every_key_is_refused_without_its_need() {
    let all = changes(&data("needs.txt"));
    let wrong: Vec<String> = all.iter().filter_map(accepted).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Complaint about a line of `needs.txt`, if any: the key is taken, or the line is refused for
/// another one.
fn accepted(change: &Change) -> Option<String> {
    let [before, after] = change.applied_to(&base(&change.base));
    match (refusal(&before), refusal(&after)) {
        (Some(error), _) => Some(format!("{}: refused without the key: {error}", change.line)),
        (None, None) => Some(format!("accepted: [{}] {}", change.base, change.line)),
        (None, Some(error)) => {
            (!names(&error, &bare(&change.key))).then(|| format!("{}: refused for another key: {error}", change.line))
        }
    }
}

/// Whether an error is at a key, or at a table around it, or names it.
fn names(error: &str, key: &str) -> bool {
    let place = error.split_once("s.toml:").map_or(error, |(_, rest)| rest);
    let at = bare(place.split(": ").nth(1).unwrap_or_default());
    let last = key.rsplit('.').next().unwrap_or_default();
    let is_around = !at.is_empty() && key.starts_with(&format!("{at}."));
    at == key || is_around || at.ends_with(&format!(".{last}")) || error.contains(&format!(" {last} "))
}

/// Every key is in `needs.txt` or in `always.txt`, and so is every one of the table of needs.
#[test]
fn every_key_says_what_it_needs() {
    let all = changes(&data("needs.txt"));
    let keys = changes(&data("keys.txt"));
    for change in all.iter().chain(&keys) {
        change.applied_to(&base(&change.base)).iter().for_each(|text| _ = parse("", text));
    }
    let refused: BTreeSet<String> = all.iter().map(|change| bare(&change.key)).collect();
    let always = data("always.txt");
    let always = reasons(&always);
    let declared = declared();
    let is_listed = |key: &str| always.iter().any(|(listed, _)| *listed == key);
    let is_stated = |key: &str| match refused.contains(key) {
        true => !is_listed(key),
        false => is_excepted(&always, key),
    };
    let missing: Vec<_> = declared.iter().filter(|key| !is_stated(key)).collect();
    assert!(missing.is_empty(), "in neither or both of needs.txt and always.txt: {missing:?}");
    let is_tried = |need: &&str| match need.strip_suffix('*') {
        Some(start) => refused.iter().any(|key| key.starts_with(start)),
        None => refused.contains(*need),
    };
    let untried: Vec<_> = needy().filter(|need| !is_tried(need)).collect();
    assert!(untried.is_empty(), "no line of needs.txt has {untried:?}");
}

/// A line of `keys.txt` adds something to its scenario so that its key acts. Without that the key
/// is refused, or it acts all the same, or the line is in `without.txt` with the reason. Short
/// tests run one line in four.
fn idle(rest: usize) -> Vec<String> {
    let excepted = data("without.txt");
    let excepted = reasons(&excepted);
    let all = changes(&data("keys.txt"));
    let mine = all.iter().enumerate().filter(|(n, _)| n % 4 == rest).map(|(_, change)| change).step_by(one_in(4));
    let mut wrong = Vec::new();
    for change in mine {
        let base = base(&change.base);
        for (key, lesser) in change.without_each(&base) {
            let [before, after] = lesser.applied_to(&base);
            let name = format!("{} without {key}", change.key);
            if refusal(&before).is_some() || refusal(&after).is_some() {
                continue;
            }
            let acts = numbers("", &before) != numbers("", &after);
            if acts == is_excepted(&excepted, &name) {
                wrong.push(format!("{name}: acts {acts}: [{}] {}", change.base, change.line));
            }
        }
    }
    wrong
}

macro_rules! parts {
    ($($name:ident $rest:literal),*) => {
        $(#[test]
        fn $name() {
            let wrong = idle($rest);
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        })*
    };
}

parts!(keys_without_need_0 0, keys_without_need_1 1, keys_without_need_2 2, keys_without_need_3 3);
