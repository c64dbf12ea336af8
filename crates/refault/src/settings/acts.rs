//! Flags that act on some policies, or on some traces. One that does nothing of a whole run is
//! refused.

use super::idle;
use crate::words::printable;
use refault_mm::{Config, Lru};
use refault_trace::{ObjectKind, Trace};

/// Policies on which a flag acts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum On {
    /// Policies that the engine runs.
    Engine,
    /// Policies with generations.
    Generations,
}

/// Flags that do not act on every policy.
const ON_POLICIES: [(&str, On); 11] = [
    ("kernel", On::Engine),
    ("swap-max", On::Engine),
    ("swap", On::Engine),
    ("compression", On::Engine),
    ("swappiness", On::Engine),
    ("via", On::Engine),
    ("seed", On::Generations),
    ("thp", On::Engine),
    ("vmstat", On::Engine),
    ("lru-gen", On::Generations),
    ("swap-map", On::Engine),
];

/// A flag that acts on a part of a trace, whether a trace has it, and the want of it in words.
type OnPart = (&'static str, fn(&Trace) -> bool, &'static str);

/// Want of a trace that has no anonymous memory.
const NO_ANON: &str = "which has no touches of anonymous memory (refault record --touches 1s samples them)";

/// Flags that do not act on every trace.
const ON_PARTS: [OnPart; 7] = [
    ("swap-max", has_anon, "which has no anonymous memory to swap"),
    ("swap", has_anon, NO_ANON),
    ("compression", has_anon, NO_ANON),
    ("swappiness", has_anon, "which has no anonymous memory to swap"),
    ("thp", has_anon, "which has no anonymous memory"),
    ("via", |trace| trace.has_default_via || trace.has_files(), "which has no pages of files"),
    ("via", |trace| trace.has_default_via, "where every access to a file says its own"),
];

fn has_anon(trace: &Trace) -> bool {
    trace.objects.iter().any(|object| object.kind == ObjectKind::Anon && !object.indices.is_empty())
}

impl On {
    fn holds(self, config: Option<&Config>) -> bool {
        match self {
            On::Engine => config.is_some(),
            On::Generations => config.is_some_and(|config| config.lru.kind == Lru::MultiGen),
        }
    }

    /// In words.
    fn text(self) -> &'static str {
        match self {
            On::Engine => "lru, mglru and every other one but opt",
            On::Generations => "mglru, mglru-shadow",
        }
    }
}

/// Given flags that may do nothing.
pub fn partial_flags(is_given: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let parts = ON_PARTS.iter().map(|(flag, ..)| *flag);
    let mut all: Vec<_> =
        ON_POLICIES.iter().map(|(flag, _)| *flag).chain(parts).filter(|flag| is_given(flag)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Fails on a flag that does nothing under any policy of a run.
///
/// # Errors
/// A line that says where it acts.
pub fn check_on_policies<'a>(
    flags: &[&str],
    policies: impl Iterator<Item = (&'a str, Option<&'a Config>)> + Clone,
) -> Result<(), String> {
    let acts = |on: On| policies.clone().any(|(_, config)| on.holds(config));
    match ON_POLICIES.iter().find(|(flag, on)| flags.contains(flag) && !acts(*on)) {
        Some((flag, on)) => {
            let names: Vec<_> = policies.map(|(name, _)| name).collect();
            Err(format!("--{flag}: {}", idle(&names.join(", "), on.text())))
        }
        None => Ok(()),
    }
}

/// The same of a sample of a trace, which may lack by chance what the trace has: only of flags for
/// which it does not matter which pages are kept.
///
/// # Errors
/// A line that says what the trace has not.
pub fn check_on_sample(flags: &[&str], sample: &Trace, file: &str) -> Result<(), String> {
    let certain: Vec<_> = flags.iter().copied().filter(|flag| *flag == "via" && !sample.has_default_via).collect();
    check_on_trace(&certain, sample, file)
}

/// Fails on a flag that does nothing of a trace, which has nothing of the kind. `file` is what the
/// error calls it.
///
/// # Errors
/// A line that says what it has not.
pub fn check_on_trace(flags: &[&str], trace: &Trace, file: &str) -> Result<(), String> {
    match ON_PARTS.iter().find(|(flag, is_there, _)| flags.contains(flag) && !is_there(trace)) {
        Some((flag, _, want)) => Err(format!("--{flag}: does nothing of {}, {want}; leave it out", printable(file))),
        None => Ok(()),
    }
}
