//! Flags that are of no input: what was asked for and cannot be had is said, not passed over.

use super::args::ReportArgs;
use crate::{Failure, Given};
use refault::document::InputKind;

/// Flags of traces alone.
const OF_TRACES: [&str; 14] = [
    "limit",
    "at",
    "memory",
    "swap-max",
    "via",
    "max-accesses",
    "memcg-limits",
    "format",
    "raw-ids",
    "block-bytes",
    "page-size",
    "instructions",
    "tick-ns",
    "strict",
];

/// Flags of all that is replayed or run.
const OF_WHAT_RUNS: [&str; 3] = ["policy", "kernel", "seed"];

/// An error names the first flag that no input has a use for.
pub(super) fn check(args: &ReportArgs, given: &Given) -> Result<(), Failure> {
    let kinds: Vec<InputKind> = args.inputs.iter().map(|path| InputKind::of(path)).collect();
    let has = |kind: InputKind| kinds.contains(&kind);
    for flag in given.flags() {
        let (is_used, whose) = match flag {
            "scale" => (has(InputKind::Scenario), "a scenario"),
            flag if OF_TRACES.contains(&flag) => (has(InputKind::Trace), "a trace"),
            flag if OF_WHAT_RUNS.contains(&flag) => {
                (has(InputKind::Trace) || has(InputKind::Scenario), "a trace or a scenario")
            }
            _ => continue,
        };
        if !is_used {
            return Err(format!("--{flag}: is for {whose}, and no input is one").into());
        }
    }
    Ok(())
}
