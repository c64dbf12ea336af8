//! `--tier`: a trace on a machine with nodes of memory.

use super::command;
use crate::replay::args::ReplayArgs;
use crate::replay::clocked::Clocked;
use crate::{Failure, GivenFlags};
use refault::scenario::{NamedScenario, TieredTrace, is_scenario};
use refault_lab::scenario::Scenario;
use refault_trace::{LoadOptions, Trace};
use std::path::Path;

/// Flags that go with `--tier`.
const FLAGS: [&str; 14] = [
    "tier",
    "promotion",
    "access-ns",
    "policy",
    "kernel",
    "seed",
    "threads",
    "json",
    "csv",
    "output",
    "vmstat",
    "scale",
    "check",
    "series",
];
/// Replays traces on a machine with tiers.
pub(in crate::replay) fn run(args: &ReplayArgs, given: &GivenFlags) -> Result<(), Failure> {
    if let Some(flag) = given.flags().find(|flag| !FLAGS.contains(flag)) {
        return Err(format!(
            "--{flag}: does not go with --tier; a scenario can say more (docs/how-to/memory-tiers.md)"
        )
        .into());
    }
    if args.traces.is_empty() {
        return Err("--tier: no trace given; name at least one file".into());
    }
    let mut scenarios = Vec::new();
    for path in &args.traces {
        let file = path.display();
        if is_scenario(path) {
            return Err(format!("{file}: is a scenario; it has [node.NAME] for --tier").into());
        }
        if path.as_os_str() == "-" {
            return Err("-: with --tier a trace is read twice, so it must be a file".into());
        }
        scenarios.push(NamedScenario { name: file.to_string(), scenario: scenario(args, path)? });
    }
    command::run_all(args, &args.scenario_request(given), &scenarios, &given.settings(&command::OF_RUNS))
}

fn scenario(args: &ReplayArgs, path: &Path) -> Result<Scenario, Failure> {
    let mut source = Clocked::new(args.input.open(path)?, None, &args.watch);
    let trace = Trace::load(&mut source, &LoadOptions { keep_time: true, ..LoadOptions::default() })?;
    let machine = TieredTrace {
        tiers: &args.lab.tier,
        access_ns: args.lab.access_ns,
        scale: args.lab.scale,
        seed: args.seed,
        kernel: args.kernel,
    };
    machine.scenario(&trace, path)
}
