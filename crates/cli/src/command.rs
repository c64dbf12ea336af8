//! The command line of `refault`: its subcommands, and the end of each.

use crate::exit::{SUCCESS, check_stack, complain, fail};
use crate::{
    GivenFlags, advise_for, api, bench, called, demo, doctor, explain, installed, max_memory, note_inputs, record,
    replay, report, size, start, trace_cmd, verify, watch, whatif,
};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Linux page reclaim as a program: what any policy would have done with a trace of page accesses,
/// or on a machine
#[derive(Debug, Parser)]
#[command(name = "refault", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show a replay and a report of a trace that comes with this program
    Demo(demo::DemoArgs),
    /// Replay traces at given memory sizes, or scenarios in virtual time, under Linux's reclaim
    /// policies
    Replay(Box<replay::ReplayArgs>),
    /// Run published benchmarks before and after the change that they were published for
    Bench(bench::BenchArgs),
    /// Find the smallest limit of a memory cgroup that meets a target: pressure, latency, hit rate,
    /// refaults
    Size(Box<size::SizeArgs>),
    /// Say what another kernel, other lists, or more or less memory would change, and what not
    Whatif(Box<whatif::WhatIfArgs>),
    /// Say in sentences what a kernel did with memory, by its counters at two moments
    Explain(explain::ExplainArgs),
    /// Make a page of HTML of results: how much memory is enough, which policy, who, when
    Report(Box<report::ReportArgs>),
    /// Inspect, convert and generate traces
    Trace(trace_cmd::TraceArgs),
    /// Run a program in less memory than it wants
    Run(installed::ExternalCommand),
    /// Record what programs do with the page cache of this machine's kernel, and what it does
    Record(record::RecordArgs),
    /// Watch what each memory cgroup of this machine would hit in less and in more memory, all the
    /// time
    Watch(watch::WatchArgs),
    /// Replay a recording of this machine's kernel, and compare every access with what it did
    Verify(verify::VerifyArgs),
    /// Show a run or a recording that is under way: memory, faults, stalls, the largest mappings
    Top(installed::ExternalCommand),
    /// Say what this machine allows the pager to do, and what would improve it
    Doctor(doctor::DoctorArgs),
}

impl Command {
    /// Whether the process can end at any place: it serves no other, and has no group to remove.
    fn leaves_nothing(&self) -> bool {
        !matches!(self, Command::Run(_) | Command::Record(_) | Command::Watch(_) | Command::Top(_) | Command::Doctor(_))
    }
}

/// The command line, for pages and completions that are made of it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The exit status of an answer that is no.
const FAILURE: u8 = 1;

/// Runs the command that this process was called with.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os().collect()))
}

/// Runs a command, once a process; its exit status. The first word is the name of the program.
pub fn run(words: Vec<OsString>) -> u8 {
    if let Err(e) = check_stack() {
        return fail(&e);
    }
    let mut command = Cli::command();
    called::note(&words);
    if words.len() < 2 {
        return start::show();
    }
    match words.iter().skip(1).filter_map(|word| word.to_str()).collect::<Vec<_>>()[..] {
        ["help", "run"] => return fail(&installed::become_run(["--help".into()])),
        ["help", "top"] => return fail(&installed::become_run(["top".into(), "--help".into()])),
        _ => {}
    }
    let parsed = command.try_get_matches_from_mut(&words);
    let (cli, given) = match parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches))) {
        Ok((cli, matches)) => {
            let given = GivenFlags::new(&command, &matches);
            note_inputs(&matches);
            if cli.command.leaves_nothing() {
                bound(&command, &matches);
            }
            (cli, given)
        }
        Err(e) => return complain(&mut command, &words, &e),
    };
    refault_syscalls::say_file_limit();
    let done = match cli.command {
        Command::Demo(args) => demo::run(&args).map(|()| true),
        Command::Replay(args) => api::run_replay(&args, &given).map(|()| true),
        Command::Bench(args) => bench::run(&args),
        Command::Size(args) => size::run(&args, &given),
        Command::Whatif(args) => whatif::run(&args, &given),
        Command::Explain(args) => explain::run(&args).map(|()| true),
        Command::Report(args) => report::run(&args, &given).map(|()| true),
        Command::Trace(args) => trace_cmd::run(args).map(|()| true),
        Command::Record(args) => return record::run(&args).unwrap_or_else(|e| fail(&e)),
        Command::Run(_) => return fail(&installed::become_run(words.into_iter().skip(2))),
        Command::Watch(args) => watch::run(&args).map(|()| true),
        Command::Verify(args) => verify::run(&args, &given),
        Command::Top(_) => return fail(&installed::become_run(words.into_iter().skip(1))),
        Command::Doctor(args) => doctor::run(&args),
    };
    match done {
        Ok(true) => SUCCESS,
        Ok(false) => FAILURE,
        Err(e) => fail(&e),
    }
}

/// Bounds the memory of this process.
fn bound(command: &clap::Command, matches: &clap::ArgMatches) {
    if let Some(called) = matches.subcommand_name().and_then(|name| command.find_subcommand(name)) {
        advise_for(called);
    }
    if let Some(bytes) = max_memory(matches) {
        refault_syscalls::bound_heap(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Flags and words that name what is read, folders, and files that a watcher goes on with:
    /// these are no results, and take a live kernel.
    const INPUTS: [&str; 20] = [
        "traces",
        "trace",
        "from",
        "inputs",
        "subject",
        "recording",
        "memcg_limits",
        "cgroup",
        "tracefs",
        "swap_file",
        "play",
        "beside",
        "folder",
        "command",
        "device",
        "names",
        "state",
        "json",
        "history",
        "page",
    ];

    fn outputs(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            let is_path = arg.get_value_parser().type_id() == std::any::TypeId::of::<std::path::PathBuf>();
            if is_path && !INPUTS.contains(&id) {
                let flag = arg.get_long().map_or_else(|| "\"OUT\"".to_owned(), |flag| format!("\"--{flag}\""));
                found.push(format!("{words} {flag}"));
            }
        }
        for inner in command.get_subcommands() {
            outputs(inner, &format!("{words} \"{}\"", inner.get_name()), found);
        }
    }

    /// Flags and words of [`INPUTS`] that name a trace or a recording.
    const TRACES: [&str; 8] = ["traces", "trace", "from", "inputs", "subject", "recording", "play", "names"];

    fn unbounded(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        // It reads the header of a recording, and at most 256 MiB of a dump, 16 of other files.
        let is_bounded = command.get_name() == "explain";
        let reads = !is_bounded && command.get_arguments().any(|arg| TRACES.contains(&arg.get_id().as_str()));
        if reads && !crate::has_max_memory(command) {
            found.push(words.to_owned());
        }
        command.get_subcommands().for_each(|inner| unbounded(inner, &format!("{words} {}", inner.get_name()), found));
    }

    /// Every command that reads a trace or a recording has a bound on its memory.
    #[test]
    fn commands_that_read_traces_have_max_memory() {
        assert!(TRACES.iter().all(|name| *name == "names" || INPUTS.contains(name)));
        let mut found = Vec::new();
        unbounded(&Cli::command(), "", &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    /// The tests of what is written run every command that writes a file.
    #[test]
    fn every_file_of_results_is_in_the_table_of_tests() {
        let mut found = Vec::new();
        outputs(&Cli::command(), "", &mut found);
        assert!(found.len() > 10, "{found:?}");
        let table = include_str!("../tests/outputs.rs");
        let commands: Vec<_> = table.split("&[").filter_map(|rest| rest.split(']').next()).collect();
        for output in found {
            let words: Vec<_> = output.split_whitespace().collect();
            let is_there = commands.iter().any(|command| words.iter().all(|word| command.contains(word)));
            assert!(is_there, "tests/outputs.rs has no command with {output}");
        }
    }
}
