//! `refault run`: a program in less memory than it wants. The command `refault` finds this program
//! beside itself or in `PATH`.
//!
//! `args` makes a configuration of the pager of the flags, `program` finds what is to be run,
//! `record` writes the trace, `live` says how it goes, `report` what came of it; `doctor` says what
//! the machine allows; `top` shows runs and recordings that are under way. It calls the pager for
//! everything else.

mod args;
mod doctor;
mod live;
mod program;
mod record;
mod report;
mod top;

use args::RunArgs;
use clap::{CommandFactory, FromArgMatches, Parser};
use refault_cli::exit::{SUCCESS, check_stack, complain, fail};
use refault_cli::{Failure, say};
use refault_pager::tree;
use std::ffi::OsString;
use std::process::ExitCode;

/// Run a program in less memory than it wants
#[derive(Debug, Parser)]
#[command(name = "refault run", version, arg_required_else_help = true)]
struct Run {
    #[command(flatten)]
    args: RunArgs,
}

/// Command lines, for pages and completions that are made of them: of a run, and of `top`.
pub fn commands() -> [clap::Command; 2] {
    [Run::command(), top::TopArgs::command()]
}

/// Runs the command that this process was called with.
pub fn main() -> ExitCode {
    ExitCode::from(status())
}

/// Does what its words say; the exit status.
fn status() -> u8 {
    if let Err(e) = check_stack() {
        return fail(&e);
    }
    let mut words: Vec<OsString> = std::env::args_os().collect();
    refault_syscalls::say_file_limit();
    // Flags come first in a run: no other word stands there.
    let first = words.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    match first.as_str() {
        "doctor" => {
            words.remove(1);
            parsed::<doctor::DoctorArgs>(&words, |args| Ok(u8::from(!doctor::run(&args)?)))
        }
        "top" => {
            words.remove(1);
            parsed::<top::TopArgs>(&words, |args| top::run(&args).map(|()| SUCCESS))
        }
        _ => parsed::<Run>(&words, |run| self::run(&run.args)),
    }
}

/// Parses a command line and does what it says.
fn parsed<T: CommandFactory + FromArgMatches>(words: &[OsString], run: impl FnOnce(T) -> Result<u8, Failure>) -> u8 {
    let mut command = T::command();
    match command.try_get_matches_from_mut(words).and_then(|matches| T::from_arg_matches(&matches)) {
        Ok(args) => run(args).unwrap_or_else(|e| fail(&e)),
        Err(e) => complain(&mut command, words, &e),
    }
}

/// Runs the program; its exit status. If a signal ended it, the same ends this process.
fn run(args: &RunArgs) -> Result<u8, Failure> {
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
    let recorded = recording.map(|(trace, recording)| {
        let recording = recording.map_err(|e| record::cannot_be_written(args.record.as_deref(), &e))?;
        record::write(trace, recording, read_back, &args.said_words().join(" "))
    });
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
    Ok(tree::exit_like(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Run::command().debug_assert();
        doctor::DoctorArgs::command().debug_assert();
        top::TopArgs::command().debug_assert();
    }

    /// The tests of what is written run every flag that names a file of results.
    #[test]
    fn every_file_of_results_is_in_the_table_of_tests() {
        let table = include_str!("../../cli/tests/outputs.rs");
        let is_path =
            |arg: &clap::Arg| arg.get_value_parser().type_id() == std::any::TypeId::of::<std::path::PathBuf>();
        let outputs: Vec<String> = Run::command()
            .get_arguments()
            .filter(|arg| is_path(arg) && arg.get_id() != "swap_file")
            .filter_map(|arg| arg.get_long().map(|flag| format!("\"--{flag}\"")))
            .collect();
        assert_eq!(outputs.len(), 3, "{outputs:?}");
        for output in outputs {
            assert!(table.contains(&output), "cli/tests/outputs.rs has no run with {output}");
        }
    }
}
