//! Processes of the run that are not served, and that nothing tells of: those into which nothing
//! can be loaded, and those whose agent does not reach the manager. They are found, to be counted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::maps;
use super::orphans;

/// From one look to the next, for each four processes. Who is there at two looks, and has not the
/// name of the run in its environment, is not about to be loaded.
const EVERY: Duration = Duration::from_millis(20);
/// A program that has it is loaded within so long, and is known then.
const LOADED_WITHIN: Duration = Duration::from_secs(1);

/// A process that nobody knows of.
#[derive(Clone, Copy)]
struct Unknown {
    since: Instant,
    /// It is not served, for certain.
    is_stranger: bool,
    /// The most that it had, in KiB.
    most: u64,
}

/// Processes that nobody knows of.
pub(super) struct Strangers {
    looked: Instant,
    seen: HashMap<i32, Unknown>,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    /// Processes that were not found before.
    pub(super) new: u64,
    /// The most that all of them had, in KiB.
    pub(super) kib: u64,
}

impl Strangers {
    pub(super) fn new() -> Strangers {
        Strangers { looked: Instant::now(), seen: HashMap::new() }
    }

    /// Looks for them, if it is time to. `known`: those that are served.
    pub(super) fn look(&mut self, known: &[i32], name: &str) -> Found {
        let mut found = Found::default();
        if self.looked.elapsed() >= EVERY * (1 + known.len() as u32 / 4) {
            self.looked = Instant::now();
            self.search(known, name, &mut found);
        }
        for (&pid, unknown) in &mut self.seen {
            // Until a program is loaded, its parent's memory may be its own (`vfork`).
            if maps::parent(pid).is_some_and(|parent| !maps::has_memory_of(pid, parent)) {
                let others = maps::others(pid);
                unknown.most = unknown.most.max(others.anonymous + others.shared + others.huge);
            }
        }
        found.kib = self.seen.values().filter(|u| u.is_stranger).map(|u| u.most).sum();
        found
    }

    fn search(&mut self, known: &[i32], name: &str, found: &mut Found) {
        let mut seen = HashMap::new();
        let mut parents = vec![std::process::id() as i32];
        while let Some(parent) = parents.pop() {
            for pid in maps::children(parent) {
                parents.push(pid);
                if known.contains(&pid) || maps::has_ended(pid) {
                    continue;
                }
                let before = self.seen.get(&pid);
                let new = Unknown { since: self.looked, is_stranger: false, most: 0 };
                let mut unknown = before.copied().unwrap_or(new);
                if !unknown.is_stranger && before.is_some() && !maps::has_memory_of(pid, parent) {
                    unknown.is_stranger = unknown.since.elapsed() > LOADED_WITHIN || !orphans::is_of_run(pid, name);
                    found.new += u64::from(unknown.is_stranger);
                }
                seen.insert(pid, unknown);
            }
        }
        self.seen = seen;
    }
}
