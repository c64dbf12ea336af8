//! Flags that belong to one kind of input, refused for the others.

use super::prepared::SizeKind;

/// Input of a search, by the flags that it has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagsOf {
    /// A machine in virtual time.
    Scenario,
    /// A recording, replayed as the recorded machine.
    Recording,
    /// A recording, where groups or samples are asked for.
    RecordingAsTrace,
    /// A trace.
    Trace,
    /// A trace in memory.
    Memory,
}

impl FlagsOf {
    /// Flags of an input whose sizes are tried so.
    pub fn new(kind: SizeKind, is_recording: bool) -> FlagsOf {
        match kind {
            SizeKind::Scenario => FlagsOf::Scenario,
            SizeKind::Recording => FlagsOf::Recording,
            SizeKind::Samples | SizeKind::Trace if is_recording => FlagsOf::RecordingAsTrace,
            SizeKind::Samples | SizeKind::Trace => FlagsOf::Trace,
        }
    }
}

/// Flags of traces alone.
const OF_TRACES: &[&str] = &[
    "memory",
    "swap-max",
    "swap",
    "compression",
    "swappiness",
    "via",
    "as-page-cache",
    "set",
    "sample",
    "sample-unit",
    "salts",
    "format",
    "raw-ids",
    "block-bytes",
    "tick-ns",
    "page-size",
    "instructions",
    "strict",
];

/// Flags of recordings alone.
const OF_RECORDINGS: &[&str] = &["warm-up"];

/// Flags of scenarios alone.
const OF_SCENARIOS: &[&str] = &["scale"];

/// Flags that say how a file is read.
const OF_FILES: &[&str] = &["format", "raw-ids", "block-bytes", "tick-ns", "page-size", "instructions", "strict"];

/// Flags of traces that a recording answers itself.
const ANSWERED: &[&str] = &["via", "memory", "swap-max", "swap", "compression", "as-page-cache"];

/// Flags that a result says by its own fields, so that its settings leave them out.
pub const SAID_BY_RESULT: [&str; 7] = ["policy", "seed", "group", "target", "limit", "range", "resolution"];

/// Fails on a flag that belongs to another kind of input. `is_given` says whether a flag was,
/// `name` is the input in errors.
///
/// # Errors
/// A line that says which input the flag is for.
pub fn check_flags(is_given: impl Fn(&str) -> bool, name: &str, of: FlagsOf) -> Result<(), String> {
    let (scenario, trace, recording) =
        ((OF_SCENARIOS, "a scenario"), (OF_TRACES, "a trace"), (OF_RECORDINGS, "a recording"));
    let (foreign, is): (&[(&[&str], &str)], &str) = match of {
        FlagsOf::Scenario => (&[trace, recording], "a scenario"),
        FlagsOf::Recording => (&[scenario, (ANSWERED, "a trace")], "a recording, which says it itself"),
        FlagsOf::RecordingAsTrace => (&[scenario, recording], "replayed as a trace here"),
        FlagsOf::Trace => (&[scenario, recording], "a trace"),
        FlagsOf::Memory => (&[scenario, recording, (OF_FILES, "a file")], "in memory"),
    };
    let all = foreign.iter().flat_map(|(flags, whose)| flags.iter().map(move |flag| (flag, whose)));
    match all.into_iter().find(|(flag, _)| is_given(flag)) {
        Some((flag, whose)) => Err(format!("--{flag}: is for {whose}, and {name} is {is}")),
        None => Ok(()),
    }
}
