//! Results of the subcommands without their printing, for programs that are not the command.
//!
//! Everything else is a call of `refault`.

use crate::flags::recorded::note_sized as note_recording;
use crate::replay::ReplayArgs;
use crate::trace_cmd::InputArgs;
use crate::{Failure, GivenFlags, Watch, bars, page, replay};
use refault::open_metrics::Metrics;
use refault_lab::scenario::Scenario;
use refault_trace::Recording;
use std::path::Path;

/// `refault replay` with its printing, as the command has it.
pub fn run_replay(args: &ReplayArgs, given: &GivenFlags) -> Result<(), Failure> {
    replay::run(args, given)
}

/// The same handle, whose work is shown on a terminal.
pub fn shown(watch: &Watch) -> Watch {
    bars::shown(watch)
}

/// Writes metrics, whole or not at all.
///
/// # Errors
/// The file cannot be written.
pub fn write_metrics(path: &Path, all: &Metrics) -> Result<(), Failure> {
    page::write_metrics(path, all)
}

/// Says on standard error what is to be known of the traces that a scenario has.
pub fn note_traces(scenario: &Scenario) {
    InputArgs::default().note_traces(scenario);
}

/// Says on standard error what is to be known of a recording that is sized.
pub fn note_sized(recording: &Recording, path: &Path) {
    note_recording(recording, path);
}
