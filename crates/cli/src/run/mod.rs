//! `refault run`: a program in less memory than it wants.
//!
//! `args` makes a configuration of the pager of the flags, `program` finds what is to be run,
//! `record` writes the trace, `live` says how it goes, `report` what
//! came of it. It calls the pager for everything else; `main` calls `run`.

mod args;
mod live;
mod program;
mod record;
mod report;

use crate::{Failure, say};
use refault_pager::tree;
use std::process::ExitCode;

pub use args::RunArgs;

/// Runs the program; its exit status. If a signal ended it, the same ends this process.
pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let program = program::find(&args.command[0])?;
    program::check(&program)?;
    let json = report::start(args)?;
    let trace = record::start(args.record.as_deref())?;
    let config = args.config()?;
    let (watch, told) = live::start(args)?;
    let mut outcome = tree::run_watched(config, &program, &args.command, Some(watch))
        .map_err(|e| format!("{}: {e}", args.command[0].display()))?;
    let told = told.end();
    let status = outcome.status;
    let recording = trace.zip(outcome.recording.take());
    let read_back = outcome.stats.counts.swapped_in;
    let recorded =
        recording.map(|(trace, recording)| record::write(trace, recording, read_back, &args.said_words().join(" ")));
    // The run is reported also where its record cannot be written.
    let (recorded, failed) = match recorded.transpose() {
        Ok(recorded) => (recorded, None),
        Err(e) => (None, Some(e)),
    };
    let given = report::give(args, json, &outcome, recorded.as_ref());
    if let Some(e) = failed.or(given.err()).or(told.err()) {
        if status.success() {
            return Err(e);
        }
        // The status of the program says more.
        say(&format!("error: {e}"));
    }
    Ok(ExitCode::from(tree::exit_like(status)))
}
