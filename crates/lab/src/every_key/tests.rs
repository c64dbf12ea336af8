//! The tests themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::change::{Change, changes};
use crate::cost::Costs;
use crate::machine::{Machine, config};
use crate::results::RunResult;
use crate::scenario::Scenario;
use crate::scenario::declared::{bare, declared};
use refault_mm::MemcgLimits;
use refault_testing::one_in;

/// The part of `tests/data/every_key` with that name.
pub(super) fn data(name: &str) -> String {
    let path = format!("{}/tests/data/every_key/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

pub(super) fn base(name: &str) -> String {
    data(&format!("{name}.toml"))
}

pub(super) fn parse(line: &str, text: &str) -> Result<Scenario, String> {
    Scenario::parse("s.toml", text).map_err(|e| format!("{line}: {e}"))
}

/// All numbers of a run, without what only repeats the scenario. How a run ends counts, too. Most
/// lines change the same few scenarios, so that the numbers of a text are kept.
pub(super) fn numbers(line: &str, text: &str) -> Result<String, String> {
    static KNOWN: Mutex<BTreeMap<String, Result<String, String>>> = Mutex::new(BTreeMap::new());
    let known = KNOWN.lock().expect("nobody panicked").get(text).cloned();
    let numbers = known.unwrap_or_else(|| {
        let run = parse("", text).and_then(|scenario| {
            let machine = Machine::new(&scenario, &scenario.policy)?;
            machine.checked().run().map(numbers_of)
        });
        KNOWN.lock().expect("nobody panicked").insert(text.to_owned(), run.clone());
        run
    });
    numbers.map_err(|e| format!("{line}: {e}"))
}

/// All numbers of a run, without what only repeats the scenario.
pub(super) fn numbers_of(mut result: RunResult) -> String {
    for memcg in &mut result.memcgs {
        memcg.limits = MemcgLimits::default();
    }
    for event in &mut result.timeline {
        (event.what, event.asked_pages) = (String::new(), 0);
    }
    // Marks follow from the keys themselves.
    result.node.min_free_kbytes = 0;
    result.node.zones.clear();
    result.events = 0;
    format!("{result:?}")
}

/// Complaint about a change, if any: it changes nothing, or a scenario is impossible.
fn complaint(change: &Change) -> Option<String> {
    match change.applied_to(&base(&change.base)).map(|text| numbers(&change.line, &text)) {
        [Ok(before), Ok(after)] if before == after => Some(format!("no effect: [{}] {}", change.base, change.line)),
        [Ok(_), Ok(_)] => None,
        [Err(error), _] | [_, Err(error)] => Some(error),
    }
}

/// Lines `NAME: why`; a name that ends in `*` stands for all names with that beginning.
pub(super) fn reasons(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{line:?} has no reason"))).collect()
}

pub(super) fn is_excepted(reasons: &[(&str, &str)], name: &str) -> bool {
    let fits = |given: &str| given.strip_suffix('*').map_or(name == given, |start| name.starts_with(start));
    reasons.iter().any(|(given, _)| fits(given))
}

/// Lines that fail, among lines whose number leaves the remainder `rest`, so that tests run in
/// parallel. Short tests run one line in four. `REFAULT_KEYS=policy.` runs only those of keys that
/// begin so.
fn without_effect(rest: usize) -> Vec<String> {
    let mut all = changes(&data("keys.txt"));
    if let Ok(start) = std::env::var("REFAULT_KEYS") {
        all.retain(|change| start.split(',').any(|start| change.key.starts_with(start)));
    }
    let mine = all.iter().enumerate().filter(|(n, _)| n % PARTS == rest).map(|(_, change)| change).step_by(one_in(4));
    mine.filter_map(complaint).collect()
}

const PARTS: usize = 4;

macro_rules! parts {
    ($($name:ident $rest:literal),*) => {
        $(#[test]
        fn $name() {
            let wrong = without_effect($rest);
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        })*
    };
}

parts!(keys_change_results_0 0, keys_change_results_1 1, keys_change_results_2 2, keys_change_results_3 3);

/// Every key that is declared where scenarios are read has a change here, or a reason to have none.
#[test]
fn every_key_has_a_change() {
    let all = changes(&data("keys.txt"));
    let texts = all.iter().map(|change| (&change.line, change.applied_to(&base(&change.base))));
    let wrong: Vec<String> =
        texts.flat_map(|(line, both)| both.map(|text| parse(line, &text).err())).flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let changed: BTreeSet<String> = all.iter().map(|change| bare(&change.key)).collect();
    let exceptions = data("exceptions.txt");
    let reasons = reasons(&exceptions);
    let within = |key: &str| changed.iter().any(|c| c == key || c.starts_with(&format!("{key}.")));
    let declared = declared();
    let missing: Vec<_> = declared.iter().filter(|key| !within(key) && !is_excepted(&reasons, key)).collect();
    assert!(missing.is_empty(), "no line of keys.txt changes {missing:?}");
    let unknown: Vec<_> = changed.iter().filter(|key| !declared.contains(*key)).collect();
    assert!(unknown.iter().all(|key| key.starts_with("machine.costs.")), "{unknown:?}");
    let idle: Vec<_> = reasons.iter().filter(|(name, _)| within(name)).collect();
    assert!(idle.is_empty(), "exceptions that are none: {idle:?}");
}

/// Every cost has a change: its key is the name of its field in [`Costs`].
#[test]
fn every_cost_has_a_change() {
    let changed: BTreeSet<String> = changes(&data("keys.txt")).iter().map(|change| change.key.clone()).collect();
    let costs = format!("{:?}", Costs::default());
    let fields = costs.split(['{', ',']).filter_map(|part| part.trim().split_once("_ns: "));
    let exceptions = data("exceptions.txt");
    let reasons = reasons(&exceptions);
    let is_known = |key: String| changed.contains(&key) || is_excepted(&reasons, &key);
    let missing: Vec<_> = fields.filter(|(name, _)| !is_known(format!("machine.costs.{name}"))).collect();
    assert!(missing.is_empty(), "no line of keys.txt changes {missing:?}");
}

/// The fields of a configuration with their values: the lines of its `Debug` form.
fn fields(text: &str) -> BTreeMap<String, String> {
    let mut path: Vec<String> = Vec::new();
    let mut all = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        let line = line.trim_end_matches(',');
        match line.split_once(": ") {
            Some((name, value)) if value.ends_with(['{', '(', '[']) => path.push(name.to_owned()),
            Some((name, value)) => {
                let place: Vec<_> = path.iter().map(String::as_str).filter(|p| !p.is_empty()).chain([name]).collect();
                *all.entry(place.join(".")).or_default() += value;
            }
            None if line.ends_with(['{', '(', '[']) => path.push(String::new()),
            None if line.starts_with(['}', ')', ']']) => _ = path.pop(),
            // An item of a list, or all that an option holds.
            None => {
                let place: Vec<_> = path.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
                *all.entry(place.join(".")).or_default() += line;
            }
        }
    }
    all
}

/// Every field of the engine's configuration is changed by some key, or has a reason.
#[test]
fn every_field_has_a_key() {
    let (mut known, mut moved) = (BTreeSet::new(), BTreeSet::new());
    for change in changes(&data("keys.txt")) {
        let [before, after] = change.applied_to(&base(&change.base)).map(|text| {
            let scenario = parse(&change.line, &text).unwrap_or_else(|e| panic!("{e}"));
            let (config, _) = config(&scenario, &scenario.policy).unwrap_or_else(|e| panic!("{}: {e}", change.line));
            fields(&format!("{config:#?}"))
        });
        known.extend(before.keys().chain(after.keys()).cloned());
        let differs = |name: &&String| before.get(*name) != after.get(*name);
        moved.extend(before.keys().chain(after.keys()).filter(differs).cloned());
    }
    let exceptions = data("fields.txt");
    let reasons = reasons(&exceptions);
    let missing: Vec<_> = known.iter().filter(|f| !moved.contains(*f) && !is_excepted(&reasons, f)).collect();
    assert!(missing.is_empty(), "no key reaches {missing:?}");
    let idle: Vec<_> = reasons.iter().filter(|(name, _)| moved.contains(*name)).collect();
    assert!(idle.is_empty(), "exceptions that are none: {idle:?}");
}
