//! The keys that tables of scenarios may have, noted while scenarios are read, for tests.

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    static DECLARED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// Tables of which the entries have names that the scenario chooses.
const NAMED: [&str; 4] = ["device", "memcg", "node", "object"];

/// A table of a scenario has these keys. Costs are noted without their unit.
pub(super) fn declare(table: &str, keys: &[&str]) {
    let keys = keys.iter().filter(|key| !key.ends_with("_ns"));
    DECLARED.with_borrow_mut(|all| all.extend(keys.map(|key| bare(&format!("{table}.{key}")))));
}

/// The keys that were declared so far in this thread.
pub(crate) fn declared() -> BTreeSet<String> {
    DECLARED.with_borrow(Clone::clone)
}

/// A path without places in lists and without names that the scenario chooses:
/// `task[1].phase[2]` and `task.0.phase.1` are `task.phase`.
pub(crate) fn bare(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('.').map(|part| part.split('[').next().unwrap_or(part)).collect();
    parts.retain(|part| !part.is_empty() && part.parse::<u32>().is_err());
    // Steps of loops and streams of phases are read as phases are.
    while let Some(at) =
        parts.iter().position(|part| ["step", "stream"].contains(part)).filter(|at| at + 1 < parts.len())
    {
        parts.remove(at);
    }
    if parts.len() > 1 && NAMED.contains(&parts[0]) {
        parts.remove(1);
    }
    parts.join(".")
}
