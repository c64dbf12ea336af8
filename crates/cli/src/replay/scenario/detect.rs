//! Inputs that are scenarios, and which flags go with them.

use crate::replay::args::ReplayArgs;
use crate::{Failure, GivenFlags};
use refault::scenario::is_scenario;

/// Flags of scenarios and of traces.
const BOTH: [&str; 13] = [
    "html",
    "policy",
    "kernel",
    "seed",
    "threads",
    "json",
    "csv",
    "output",
    "vmstat",
    "lru-gen",
    "memcg-limits",
    "swap-map",
    "max-memory",
];
/// Flags of scenarios alone.
const SCENARIOS: [&str; 4] = ["scale", "check", "series", "promotion"];
/// Flags of traces, and where a scenario says the same.
const INSTEAD: [(&str, &str); 13] = [
    ("memcg-column", "memcg of a task"),
    ("memory", "machine.memory"),
    ("swap-max", "swap.size"),
    ("swap", "[[swap]] and [zswap]"),
    ("compression", "content of an object"),
    ("swappiness", "machine.swappiness"),
    ("via", "via of a phase"),
    ("max-accesses", "accesses of a phase"),
    ("set", "[policy]"),
    ("thp", "[machine.thp]"),
    ("metrics", "--json"),
    ("windows", "sample; --series writes what was sampled"),
    ("page-size", "nothing: pages are 4096 bytes"),
];

/// Whether all inputs are scenarios; an error if some are, or if the flags do not fit.
pub(in crate::replay) fn are_scenarios(args: &ReplayArgs, given: &GivenFlags) -> Result<bool, Failure> {
    let kinds: Vec<_> = args.traces.iter().map(|path| (path, is_scenario(path))).collect();
    let find = |wanted: bool| kinds.iter().find(|(_, is)| *is == wanted).map(|(path, _)| path.display());
    match (find(true), find(false)) {
        (Some(scenario), Some(_)) if args.traces.iter().any(|path| path.as_os_str() == "-") => {
            Err(format!("-: is a trace on standard input, and {scenario} is a scenario; --json prints without it")
                .into())
        }
        (Some(scenario), Some(trace)) => {
            Err(format!("{scenario}: is a scenario, {trace} is a trace; replay them one after the other").into())
        }
        (Some(scenario), None) => {
            let foreign = given.flags().find(|flag| !BOTH.contains(flag) && !SCENARIOS.contains(flag));
            let Some(flag) = foreign else { return Ok(true) };
            let instead = INSTEAD.iter().find(|(of_traces, _)| *of_traces == flag);
            let hint = instead.map_or(String::new(), |(_, key)| format!("; what it has instead is {key}"));
            Err(format!("--{flag}: is for traces, and {scenario} is a scenario{hint}").into())
        }
        (None, trace) => match given.flags().find(|flag| SCENARIOS.contains(flag)) {
            Some(flag) => {
                let trace =
                    trace.map_or(String::new(), |trace| format!("; {trace} is a trace: add --tier, or leave it out"));
                Err(format!("--{flag}: is for scenarios, and for traces with --tier{trace}").into())
            }
            None => Ok(false),
        },
    }
}
