//! Processes of the run that are not served, and that nothing tells of: those into which nothing
//! can be loaded, and those whose agent does not reach the manager. They are found, to be counted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::inherited::PRELOAD_NAME;
use super::maps;

/// From one look to the next, for each four processes.
const EVERY: Duration = Duration::from_millis(20);
/// Looks that must say the same: a look at a process that is being started may find anything.
const LOOKS: u32 = 2;
/// Time within which a program that has the library becomes known.
const GREETS_WITHIN: Duration = Duration::from_secs(1);

/// A process that nobody knows of.
#[derive(Clone, Copy)]
struct Unknown {
    since: Instant,
    /// Consecutive looks that found that it is not served.
    looks: u32,
    /// The most that it had, in KiB.
    most: u64,
}

impl Unknown {
    fn is_unserved(&self) -> bool {
        self.looks >= LOOKS
    }
}

/// Processes that nobody knows of.
pub(super) struct UnservedProcesses {
    looked: Instant,
    seen: HashMap<i32, Unknown>,
}

/// Findings of a look.
#[derive(Default)]
pub(super) struct Found {
    /// Processes that were not found before.
    pub(super) new: u64,
    /// The most that all of them had, in KiB.
    pub(super) kib: u64,
}

impl UnservedProcesses {
    pub(super) fn new() -> UnservedProcesses {
        UnservedProcesses { looked: Instant::now(), seen: HashMap::new() }
    }

    /// Looks for unserved processes, if it is time to. `known`: processes that are served.
    pub(super) fn look(&mut self, known: &[i32]) -> Found {
        let mut found = Found::default();
        if self.looked.elapsed() >= EVERY * (1 + known.len() as u32 / 4) {
            self.looked = Instant::now();
            self.search(known, &mut found);
        }
        for (&pid, unknown) in &mut self.seen {
            // Until a program is loaded, its parent's memory may be its own (`vfork`).
            if maps::parent(pid).is_some_and(|parent| !maps::has_memory_of(pid, parent)) {
                let others = maps::others(pid);
                unknown.most = unknown.most.max(others.anonymous + others.shared + others.huge);
            }
        }
        found.kib = self.seen.values().filter(|u| u.is_unserved()).map(|u| u.most).sum();
        found
    }

    fn search(&mut self, known: &[i32], found: &mut Found) {
        let mut seen = HashMap::new();
        let mut parents = vec![std::process::id() as i32];
        while let Some(parent) = parents.pop() {
            for pid in maps::children(parent) {
                parents.push(pid);
                if known.contains(&pid) || maps::has_ended(pid) {
                    continue;
                }
                let new = Unknown { since: self.looked, looks: 0, most: 0 };
                let mut unknown = self.seen.get(&pid).copied().unwrap_or(new);
                if !unknown.is_unserved() {
                    let is_one = !maps::has_memory_of(pid, parent) && is_not_served(pid, unknown.since);
                    unknown.looks = if is_one { unknown.looks + 1 } else { 0 };
                    found.new += u64::from(unknown.is_unserved());
                }
                seen.insert(pid, unknown);
            }
        }
        self.seen = seen;
    }
}

/// Whether a process that nobody knows of since then goes on without being served: its loader has
/// come to the C library, which is after the agent's, or it has none.
fn is_not_served(pid: i32, since: Instant) -> bool {
    let exe = |of: &str| std::fs::read_link(format!("/proc/{of}/exe")).ok();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    if maps.is_empty() || exe(&pid.to_string()) == exe("self") {
        return false;
    }
    if maps.contains(PRELOAD_NAME) {
        return since.elapsed() > GREETS_WITHIN;
    }
    maps.contains("/libc.so") || !maps.contains("/ld-linux")
}
