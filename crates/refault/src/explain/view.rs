//! The group or the machine between two moments.

use super::Counters;
use crate::memory_size::human;
use crate::words::grouped;
use serde::Serialize;
use std::collections::BTreeMap;

const PAGE_SIZE: u64 = 4096;

/// Beginnings of counters that never fall, by which the order of two readings shows.
const GROWING: [&str; 10] = [
    "workingset_refault",
    "workingset_activate",
    "workingset_restore",
    "pgscan",
    "pgsteal",
    "pgmajfault",
    "pgfault",
    "pswp",
    "allocstall",
    "events.",
];

/// Whether a counter never falls.
fn grows(name: &str) -> bool {
    name.ends_with("_us") || GROWING.iter().any(|start| name.starts_with(start))
}

/// A group, or the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A memory cgroup.
    Group,
    /// The machine.
    Machine,
}

impl Scope {
    /// In a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Scope::Group => "the group",
            Scope::Machine => "the machine",
        }
    }
}

/// Two readings of a scope.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) scope: Scope,
    before: &'a BTreeMap<String, u64>,
    after: &'a BTreeMap<String, u64>,
    pub(super) seconds: Option<f64>,
}

impl<'a> View<'a> {
    /// None: the readings have nothing of it in common.
    pub(super) fn new(
        scope: Scope,
        before: &'a Counters,
        after: &'a Counters,
        seconds: Option<f64>,
    ) -> Option<View<'a>> {
        let (before, after) = match scope {
            Scope::Group => (&before.group, &after.group),
            Scope::Machine => (&before.machine, &after.machine),
        };
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        before.keys().any(|name| after.contains_key(name)).then_some(View { scope, before, after, seconds })
    }

    /// A counter that fell.
    pub(super) fn falling(&self) -> Option<&'a str> {
        let falls = |(name, before): &(&String, &u64)| self.after.get(*name).is_some_and(|after| after < *before);
        self.before.iter().filter(|(name, _)| grows(name)).find(falls).map(|(name, _)| name.as_str())
    }

    /// Counters of the first reading that the second lacks: it may have been cut.
    pub(super) fn missing(&self) -> Vec<&'a str> {
        let lacks = |name: &&String| grows(name) && !self.after.contains_key(*name);
        self.before.keys().filter(lacks).map(String::as_str).collect()
    }

    /// Whether both readings have what says that reclaim ran, and that pages came back.
    pub(super) fn says_what_was_reclaimed(&self) -> bool {
        let has = |starts: &[&str]| {
            self.before.keys().any(|name| starts.iter().any(|s| name.starts_with(s)) && self.after.contains_key(name))
        };
        has(&["pgscan", "pgsteal"]) && has(&["workingset_refault"])
    }

    /// Growth of a counter; none: it is not in both.
    pub(super) fn grew(&self, name: &str) -> Option<u64> {
        let (before, after) = (self.before.get(name)?, self.after.get(name)?);
        Some(after.saturating_sub(*before))
    }

    /// A value of the second reading.
    pub(super) fn now(&self, name: &str) -> Option<u64> {
        self.after.get(name).copied()
    }

    /// A size of the second reading in pages: `inactive_file` of a group, `nr_inactive_file` of
    /// the machine.
    pub(super) fn pages(&self, name: &str) -> Option<u64> {
        match self.scope {
            Scope::Group => Some(self.now(name)? / PAGE_SIZE),
            Scope::Machine => self.now(&format!("nr_{name}")),
        }
    }

    /// Pages on both lists of a kind: file or anon.
    pub(super) fn listed(&self, kind: &str) -> Option<u64> {
        Some(self.pages(&format!("inactive_{kind}"))? + self.pages(&format!("active_{kind}"))?)
    }

    /// A size of the second reading with its name, for reasons.
    pub(super) fn size(&self, name: &str) -> String {
        let named = if self.scope == Scope::Machine { format!("nr_{name}") } else { name.to_owned() };
        self.pages(name).map_or_else(String::new, |pages| format!("{named} {}", human(pages * PAGE_SIZE)))
    }

    /// A counter with its growth, for reasons.
    pub(super) fn growth(&self, name: &str) -> String {
        self.grew(name).map_or_else(String::new, |grew| format!("{name} +{}", grouped(grew)))
    }
}

/// Pages in words: their number, and bytes.
pub(super) fn pages_in_words(pages: u64) -> String {
    let of = if pages == 1 { "page" } else { "pages" };
    format!("{} {of} ({})", grouped(pages), human(pages.saturating_mul(PAGE_SIZE)))
}
