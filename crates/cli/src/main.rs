//! The command `refault`.

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use refault_cli::{
    Failure, Given, api, asked_for, bench, complaint, doctor, print, record, replay, report, run, say, size, top,
    trace_cmd, verify,
};
use std::ffi::OsString;
use std::process::ExitCode;

/// Linux page reclaim as a program: what any policy would have done with a trace of page accesses,
/// or on a machine
#[derive(Debug, Parser)]
#[command(name = "refault", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replay traces at given memory sizes, or scenarios in virtual time, under Linux's reclaim
    /// policies
    Replay(Box<replay::ReplayArgs>),
    /// Run published benchmarks before and after the change that they were published for
    Bench(bench::BenchArgs),
    /// Find the smallest limit of a memory cgroup that meets a target: pressure, latency, hit rate,
    /// refaults
    Size(Box<size::SizeArgs>),
    /// Make a page of HTML of results: how much memory is enough, which policy, who, when
    Report(Box<report::ReportArgs>),
    /// Inspect, convert and generate traces
    Trace(trace_cmd::TraceArgs),
    /// Run a program in less memory than it wants
    Run(run::RunArgs),
    /// Record what programs do with the page cache of this machine's kernel, and what it does
    Record(record::RecordArgs),
    /// Replay a recording of this machine's kernel, and compare every access with what it did
    Verify(verify::VerifyArgs),
    /// Show a run or a recording that is under way: memory, faults, stalls, the largest mappings
    Top(top::TopArgs),
    /// Say what this machine allows the pager to do, and what would improve it
    Doctor(doctor::DoctorArgs),
}

/// The exit status of bad input.
const BAD_INPUT: u8 = 2;

/// The least stack with which the command line is read in every build.
const LEAST_STACK: u64 = 1 << 20;

fn main() -> ExitCode {
    if let Some(bytes) = refault_pager::doctor::limit("stack_bytes").filter(|&bytes| bytes < LEAST_STACK) {
        say(&format!(
            "error: the stack may have no more than {} KiB here (ulimit -s); refault takes 1024: raise that limit",
            bytes >> 10
        ));
        return ExitCode::from(BAD_INPUT);
    }
    let mut command = Cli::command();
    let words: Vec<_> = std::env::args_os().collect();
    let parsed = command.try_get_matches_from_mut(&words);
    let (cli, given) = match parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches))) {
        Ok((cli, matches)) => (cli, Given::new(&command, &matches)),
        Err(e) => return complain(&mut command, &words, &e),
    };
    let done = match cli.command {
        Command::Replay(args) => api::run_replay(&args, &given).map(|()| true),
        Command::Bench(args) => bench::run(&args),
        Command::Size(args) => size::run(&args, &given),
        Command::Report(args) => report::run(&args, &given).map(|()| true),
        Command::Trace(args) => trace_cmd::run(args).map(|()| true),
        Command::Record(args) => return record::run(&args).unwrap_or_else(|e| fail(&e)),
        Command::Run(args) => return run::run(&args).unwrap_or_else(|e| fail(&e)),
        Command::Verify(args) => verify::run(&args),
        Command::Top(args) => top::run(&args).map(|()| true),
        Command::Doctor(args) => doctor::run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => fail(&e),
    }
}

fn fail(e: &Failure) -> ExitCode {
    say(&format!("error: {e}"));
    ExitCode::from(BAD_INPUT)
}

/// Help and lists of values go out whole; a mistake becomes one line with the hints of clap,
/// without its usage.
fn complain(command: &mut clap::Command, words: &[OsString], e: &clap::Error) -> ExitCode {
    if let Some(list) = asked_for(e) {
        return print(list).map_or_else(|e| fail(&e), |()| ExitCode::SUCCESS);
    }
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match e.print() {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                fail(&format!("standard output: cannot be written: {e}").into())
            }
            // A reader that has seen enough is no error.
            _ => ExitCode::SUCCESS,
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = e.print();
            ExitCode::from(BAD_INPUT)
        }
        _ => {
            say(&format!("error: {}", complaint(command, words, e)));
            ExitCode::from(BAD_INPUT)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
