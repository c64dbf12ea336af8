//! `refault run`: a program in less memory than it wants.

mod args;
mod program;
mod record;
mod report;

use crate::Failure;
use refault_pager::tree;
use std::process::ExitCode;

pub use args::RunArgs;

/// Runs the program; its exit status. If a signal ended it, the same ends this process.
pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let program = program::find(&args.command[0])?;
    program::check(&program)?;
    let config = args.config()?;
    report::check(args.json.as_deref())?;
    let trace = record::start(args.record.as_deref())?;
    let outcome =
        tree::run(config, &program, &args.command).map_err(|e| format!("{}: {e}", args.command[0].display()))?;
    report::give(args, &outcome)?;
    let status = outcome.status;
    if let (Some(trace), Some(recording)) = (trace, outcome.recording) {
        record::write(trace, recording, &args.command)?;
    }
    Ok(ExitCode::from(tree::exit_like(status)))
}
