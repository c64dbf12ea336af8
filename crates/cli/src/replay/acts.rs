//! Policies and traces on which a flag acts. One that does nothing of a whole run is refused.

use super::args::ReplayArgs;
use super::policy::RowPolicy;
use crate::Failure;
use crate::given::Given;
use refault::settings::{check_one_group, idle};
use refault::words::printable;
use refault_mm::{Config, Lru};
use refault_trace::{ObjectKind, Trace};
use std::path::Path;

/// Policies on which a flag acts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum On {
    /// Every policy, or it is refused elsewhere where it does nothing.
    All,
    /// Policies that the engine runs.
    Engine,
    /// Policies with generations.
    Generations,
}

/// Flags of `replay`, and the policies that each acts on.
const FLAGS: [(&str, On); 46] = [
    ("max-memory", On::All),
    ("memory", On::All),
    ("policy", On::All),
    ("kernel", On::Engine),
    ("swap-max", On::Engine),
    ("swappiness", On::Engine),
    ("via", On::Engine),
    ("seed", On::Generations),
    ("max-accesses", On::All),
    ("stream", On::All),
    ("page-by-page", On::All),
    ("beyond-footprint", On::All),
    ("set", On::All),
    ("thp", On::Engine),
    ("threads", On::All),
    ("memcg-column", On::All),
    ("memcg-limits", On::All),
    ("scale", On::All),
    ("check", On::All),
    ("tier", On::All),
    ("access-ns", On::All),
    ("promotion", On::All),
    ("series", On::All),
    ("json", On::All),
    ("csv", On::All),
    ("output", On::All),
    ("html", On::All),
    ("metrics", On::All),
    ("curve", On::All),
    ("windows", On::All),
    ("vmstat", On::Engine),
    ("lru-gen", On::Generations),
    ("swap-map", On::Engine),
    ("miss-bits", On::All),
    ("sample", On::All),
    ("sample-unit", On::All),
    ("salts", On::All),
    ("format", On::All),
    ("separator", On::All),
    ("skip-lines", On::All),
    ("block-bytes", On::All),
    ("page-size", On::All),
    ("instructions", On::All),
    ("strict", On::All),
    ("raw-ids", On::All),
    ("tick-ns", On::All),
];

impl On {
    fn holds(self, config: Option<&Config>) -> bool {
        match self {
            On::All => true,
            On::Engine => config.is_some(),
            On::Generations => config.is_some_and(|config| config.lru.kind == Lru::MultiGen),
        }
    }

    /// In words.
    fn text(self) -> &'static str {
        match self {
            On::All => "all",
            On::Engine => "lru, mglru and every other one but opt",
            On::Generations => "mglru, mglru-shadow",
        }
    }
}

/// Fails on a flag that does nothing under any policy of a run, or with the one group that it has.
pub(super) fn refuse_idle(
    args: &ReplayArgs,
    given: &Given,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<(), Failure> {
    if !args.groups.memcg_column {
        check_one_group(&args.set)?;
    }
    let acts = |on: On| policies.iter().any(|(_, config)| on.holds(config.as_ref()));
    match FLAGS.iter().find(|(flag, on)| given.has(flag) && !acts(*on)) {
        Some((flag, on)) => {
            let names: Vec<_> = policies.iter().map(|(policy, _)| policy.name()).collect();
            Err(format!("--{flag}: {}", idle(&names.join(", "), on.text())).into())
        }
        None => Ok(()),
    }
}

/// Fails on a flag that does nothing of the one trace of a run: it has no memory of the kind.
pub(super) fn refuse_idle_of(args: &ReplayArgs, given: &Given, trace: &Trace, path: &Path) -> Result<(), Failure> {
    let has = |kind| trace.objects.iter().any(|object| object.kind == kind && !object.indices.is_empty());
    let needs = [
        ("swap-max", ObjectKind::Anon, "anonymous memory to swap"),
        ("swappiness", ObjectKind::Anon, "anonymous memory to swap"),
        ("thp", ObjectKind::Anon, "anonymous memory"),
        ("via", ObjectKind::File, "pages of files"),
    ];
    match needs.into_iter().find(|(flag, kind, _)| given.has(flag) && !has(*kind)).filter(|_| args.traces.len() == 1) {
        Some((flag, _, what)) => {
            let name = printable(&path.display().to_string());
            Err(format!("--{flag}: does nothing of {name}, which has no {what}; leave it out").into())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};
    use std::collections::BTreeSet;

    /// Every flag says what it acts on.
    #[test]
    fn every_flag_is_in_the_table() {
        let command = ReplayArgs::augment_args(Command::new("replay"));
        let all: BTreeSet<_> = command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect();
        let listed: BTreeSet<_> = FLAGS.iter().map(|(flag, _)| (*flag).to_owned()).collect();
        assert_eq!(all, listed);
    }
}
