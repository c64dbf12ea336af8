//! A test of every key of a scenario: that it changes a result. Keys are noted where scenarios are
//! read, so that a new one is looked for here as soon as it is declared.
//!
//! `tests/data/every_key/keys.txt` has a change for each key, `exceptions.txt` the keys that change
//! no result, with the reason. Fields of the engine's configuration are looked for in the same way:
//! each is changed by some key, or has a reason in `fields.txt`. And every effect of the engine is
//! missed where the machine is deaf to it, or has a reason in `effects.txt`.

mod change;
mod effects;
mod tests;

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    static DECLARED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// Tables of which the entries have names that the scenario chooses.
const NAMED: [&str; 4] = ["device", "memcg", "node", "object"];

/// A table of a scenario has these keys.
pub(crate) fn declare(table: &str, keys: &[&str]) {
    DECLARED.with_borrow_mut(|all| all.extend(keys.iter().map(|key| bare(&format!("{table}.{key}")))));
}

/// The keys that were declared so far in this thread.
fn declared() -> BTreeSet<String> {
    DECLARED.with_borrow(Clone::clone)
}

/// A path without places in lists and without names that the scenario chooses:
/// `task[1].phase[2]` and `task.0.phase.1` are `task.phase`.
fn bare(path: &str) -> String {
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
