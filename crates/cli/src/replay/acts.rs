//! Policies and traces on which a flag acts. One that does nothing of a whole run is refused.

use super::args::ReplayArgs;
use super::policy::RowPolicy;
use crate::Failure;
use crate::given::GivenFlags;
use refault::settings::{check_on_policies, check_on_trace, check_one_group};
use refault_mm::Config;
use refault_trace::Trace;
use std::path::Path;

/// Rejects a flag that no policy of the run uses, or that needs more than its one group.
pub(super) fn refuse_idle(
    args: &ReplayArgs,
    given: &GivenFlags,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<(), Failure> {
    if !args.groups.memcg_column {
        check_one_group(&args.set)?;
    }
    let policies = policies.iter().map(|(policy, config)| (policy.name(), config.as_ref()));
    Ok(check_on_policies(&given.partial(), policies)?)
}

/// Rejects a kind of swap where a replay is not of one group in one memory.
pub(super) fn refuse_swap(args: &ReplayArgs) -> Result<(), Failure> {
    let others = [
        ("sample", args.sample.is_asked_for()),
        ("memcg-column", args.groups.memcg_column),
        ("tier", !args.lab.tier.is_empty()),
    ];
    match others.iter().find(|(_, is_given)| *is_given).zip(args.swap.swap.as_ref()) {
        Some(((other, _), swap)) => {
            Err(format!("--swap {swap}: is of one group and all pages; leave --{other} out").into())
        }
        None => Ok(()),
    }
}

/// Rejects a flag that has no effect on the only trace of the run.
pub(super) fn refuse_idle_of(args: &ReplayArgs, given: &GivenFlags, trace: &Trace, path: &Path) -> Result<(), Failure> {
    match args.traces.len() {
        1 => Ok(check_on_trace(&given.partial(), trace, &path.display().to_string())?),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};
    use refault::settings::partial_flags;
    use std::collections::BTreeSet;

    /// Flags that act on every policy, or are refused elsewhere where they do nothing.
    const ON_ALL: [&str; 37] = [
        "max-memory",
        "memory",
        "policy",
        "max-accesses",
        "stream",
        "page-by-page",
        "beyond-footprint",
        "set",
        "threads",
        "memcg-column",
        "memcg-limits",
        "scale",
        "check",
        "tier",
        "access-ns",
        "promotion",
        "series",
        "json",
        "csv",
        "output",
        "html",
        "metrics",
        "curve",
        "windows",
        "miss-bits",
        "sample",
        "sample-unit",
        "salts",
        "format",
        "separator",
        "skip-lines",
        "block-bytes",
        "page-size",
        "instructions",
        "strict",
        "raw-ids",
        "tick-ns",
    ];

    /// Every flag says what it acts on.
    #[test]
    fn every_flag_is_in_the_table() {
        let command = ReplayArgs::augment_args(Command::new("replay"));
        let all: BTreeSet<_> = command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect();
        let listed: BTreeSet<_> = ON_ALL.into_iter().chain(partial_flags(|_| true)).map(str::to_owned).collect();
        assert_eq!(all, listed);
    }
}
