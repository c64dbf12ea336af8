//! The group or the machine between two moments.

use super::Counters;
use crate::memory_size::human;
use crate::words::grouped;
use serde::Serialize;
use std::collections::BTreeMap;

const PAGE_SIZE: u64 = 4096;

/// Counters that never fall, by which the order of two readings shows.
const GROWING: [&str; 6] =
    ["workingset_refault_file", "pgscan", "pgscan_kswapd", "pgmajfault", "memory.some_us", "pgfault"];

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
    pub(super) fn falling(&self) -> Option<&'static str> {
        let falls = |name: &str| self.before.get(name).zip(self.after.get(name)).is_some_and(|(a, b)| b < a);
        GROWING.into_iter().find(|name| falls(name))
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
