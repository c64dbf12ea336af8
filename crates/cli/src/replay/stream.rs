//! `--stream`: a trace that is larger than memory. Its pages are numbered in a first reading; the
//! library replays the second one.

use super::acts::refuse_idle_of;
use super::args::ReplayArgs;
use super::command::{note_idle, plan};
use super::policy::RowPolicy;
use crate::{Failure, GivenFlags, Watch};
use refault::loaded::LoadedTrace;
use refault::replay::clocked::Clocked;
use refault::replay::{CellResult, run_stream};
use refault_mm::Config;
use refault_trace::{LoadOptions, PageNumbers, RecordSource};
use std::path::{Path, PathBuf};

/// Input that can be read only once.
fn read_once(args: &ReplayArgs) -> Option<&PathBuf> {
    args.traces.iter().find(|path| path.as_os_str() == "-" || (path.exists() && !path.is_file()))
}

/// Whether the same command line may have `--stream`, for it replays the same traces in less
/// memory.
pub(super) fn is_possible(args: &ReplayArgs, given: &GivenFlags) -> bool {
    read_once(args).is_none() && !(given.has("policy") && args.policy.0.contains(&RowPolicy::Opt))
}

/// Refuses what can be read only once.
pub(super) fn check(args: &ReplayArgs) -> Result<(), Failure> {
    match read_once(args).filter(|_| args.stream) {
        Some(path) => {
            let file = path.display();
            Err(format!("{file}: --stream reads a trace twice, so it wants a file; this can be read once").into())
        }
        None => Ok(()),
    }
}

/// Replays one trace. `source` is `path`, opened.
pub(super) fn replay(
    args: &ReplayArgs,
    given: &GivenFlags,
    source: Box<dyn RecordSource>,
    path: &Path,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<Vec<CellResult>, Failure> {
    let policies = without_opt(given, policies)?;
    let opts = LoadOptions {
        default_via: args.via.into(),
        keep_time: args.request().wants_time(&policies),
        max_accesses: args.max_accesses,
        ..LoadOptions::default()
    };
    let page_size = source.header().page_size;
    let recording = source.header().recording.clone();
    let numbers = PageNumbers::read(&mut Clocked::new(source, args.max_accesses, &args.watch), &opts)?;
    let (accesses, has_times) = (numbers.accesses(), numbers.has_times());
    // In the same parts as in the first reading, of which nobody is told twice.
    let again = Clocked::new(args.input.open(path)?, args.max_accesses, &Watch::default());
    let (trace, pieces) = numbers.pieces(Box::new(again));
    refuse_idle_of(args, given, &trace, path)?;
    note_idle(&policies, &trace, path);
    let loaded = LoadedTrace { trace, page_size, recording, machine: None };
    let mut plan = plan(args, given, &policies, &loaded)?;
    plan.accesses = accesses;
    let name = path.display().to_string();
    run_stream(&plan, pieces, has_times).map_err(|e| format!("{name}: {e}").into())
}

/// The policies but OPT, which is an error only if it was asked for.
fn without_opt(
    given: &GivenFlags,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<Vec<(RowPolicy, Option<Config>)>, Failure> {
    let mut policies = policies.to_vec();
    let all = policies.len();
    policies.retain(|(policy, _)| *policy != RowPolicy::Opt);
    if policies.len() < all && given.has("policy") {
        return Err("--stream: the policy opt must know the future, which a stream does not hold; leave opt out of \
                    --policy, or leave out --stream"
            .into());
    }
    Ok(policies)
}
