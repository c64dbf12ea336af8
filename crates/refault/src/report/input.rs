//! Results of one input: a trace or a recording looked into, or a scenario that is run.

use super::request::{Open, ReportRequest};
use super::subject::ReportSubject;
use crate::document::scenario::ScenarioDocument;
use crate::document::trace::TraceDocument;
use crate::document::verify::VerifyDocument;
use crate::document::{Document, InputKind, read_text};
use crate::scenario::{ScenarioRequest, ScenarioRun};
use crate::verify::{Verify, verify};
use crate::{Failure, Watch, run_scenario};
use std::path::Path;

/// A trace, replayed as often as its pages need; of a recording, what its kernel did is beside
/// that. `name` is what errors call it, `open` opens it.
///
/// # Errors
/// The trace cannot be read, or a size, a policy or a limit is impossible, or cancel.
pub fn of_trace(request: &ReportRequest, name: &str, open: &Open<'_>) -> Result<TraceDocument, Failure> {
    let subject = ReportSubject::read(request, open)?;
    if let (Some(file), false) = (&request.limits, subject.has_groups()) {
        return Err(format!("--memcg-limits {}: {name} says nothing of memory cgroups", file.display()).into());
    }
    // The kernel is compared with the whole recording only.
    let whole = subject.machine().filter(|_| request.max_accesses.is_none());
    let beside = Verify { kernel: request.kernel, ..Verify::default() };
    let compared = whole.map(|machine| verify(machine.loaded(), &beside, &Watch::default()));
    let compared = compared.transpose().map_err(|e| format!("{name}: {e}"))?;
    let verify = compared.as_ref().map(VerifyDocument::of);
    Ok(TraceDocument { verify, ..subject.report(request, name, open)? })
}

/// A scenario under its own policy, or under those of the request. `notes` says what is to be known
/// of the traces that the runs read.
///
/// # Errors
/// The scenario is none, or cannot run, or cancel.
pub fn of_scenario(
    request: &ScenarioRequest,
    path: &Path,
    watch: &Watch,
    notes: impl FnOnce(&[ScenarioRun]) -> Vec<String>,
) -> Result<ScenarioDocument, Failure> {
    let runs = run_scenario(&request.clone().with_file(path)?, watch)?;
    Ok(ScenarioDocument::of(&runs, notes(&runs)))
}

/// Results that a command printed as JSON, in a file.
///
/// # Errors
/// The file cannot be read, or holds no such results.
pub fn of_json(path: &Path) -> Result<Document, Failure> {
    Ok(Document::from_json(&read_text(path)?).map_err(|e| format!("{}: {e}", path.display()))?)
}

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

/// Fails on the first flag that no input has a use for.
///
/// # Errors
/// A line that says which input it is for.
pub fn check_flags<'a>(flags: impl Iterator<Item = &'a str>, kinds: &[InputKind]) -> Result<(), Failure> {
    let has = |kind: InputKind| kinds.contains(&kind);
    for flag in flags {
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
