//! Results of the subcommands without their printing, for programs that are not the command.
//!
//! Sizes take the words of a command line, so that names, defaults and messages are the command's
//! own, and give what `--json` prints. `Watch` ends a long one. Replays, reports, scenarios and
//! benchmarks are calls of `refault`.

use crate::replay::ReplayArgs;
use crate::trace_cmd::InputArgs;
use crate::{Failure, Given, Watch, bars, complaint, replay, size};
use clap::{Args, Command, FromArgMatches};
use refault::recording;
use refault_lab::scenario::Scenario;
use refault_trace::{RecordSource, Trace};
use std::ffi::OsString;

/// The flags of a subcommand, and which of them were given.
fn parse<A: Args + FromArgMatches>(name: &'static str, words: &[String]) -> Result<(A, Given), Failure> {
    let mut command = Command::new("refault").subcommand(A::augment_args(Command::new(name)));
    let line: Vec<OsString> =
        ["refault", name].into_iter().chain(words.iter().map(String::as_str)).map(OsString::from).collect();
    let matches = command.try_get_matches_from_mut(&line).map_err(|e| complaint(&mut command, &line, &e))?;
    let of_subcommand = matches.subcommand_matches(name).ok_or("no subcommand")?;
    let args = A::from_arg_matches(of_subcommand).map_err(|e| complaint(&mut command, &line, &e))?;
    Ok((args, Given::new(&command, &matches)))
}

/// `refault replay` with its printing, as the command has it.
pub fn run_replay(args: &ReplayArgs, given: &Given) -> Result<(), Failure> {
    replay::run(args, given)
}

/// A recording of a kernel on the engine, as `refault verify` replays it: its accesses, and the
/// misses of the lab. `memory_pages` is the limit; none: that of the recording.
///
/// # Errors
/// The source is no recording, or holds no access.
pub fn replay_recording(source: &mut dyn RecordSource, memory_pages: Option<u64>) -> Result<(u64, u64), Failure> {
    let loaded = recording::Loaded::read(source)?;
    let mut settings = recording::Settings::of(&loaded.recording, None, None, false);
    settings.memory_pages = memory_pages.or(settings.memory_pages);
    let compared = recording::run(&loaded, &settings)?;
    Ok((compared.total.accesses, compared.total.lab_misses))
}

/// The same handle, whose work is shown on a terminal.
pub fn shown(watch: &Watch) -> Watch {
    bars::shown(watch)
}

/// Says on standard error what is to be known of the traces that a scenario has.
pub fn note_traces(scenario: &Scenario) {
    InputArgs::default().note_traces(scenario);
}

/// `refault size --json`.
pub fn size(words: &[String], watch: &Watch) -> Result<String, Failure> {
    let (mut args, given) = parse::<size::SizeArgs>("size", words)?;
    args.watch = bars::shown(watch);
    size::result(&args, &given)
}

/// `refault size --json` of a trace in memory, with pages of so many bytes. `again` has its records
/// with times and groups, which the trace may not keep.
pub fn size_of(
    words: &[String],
    trace: &Trace,
    page_size: u32,
    again: &dyn Fn() -> Result<Box<dyn RecordSource>, Failure>,
    watch: &Watch,
) -> Result<String, Failure> {
    let words = [words, &["--".to_owned(), trace.name.clone()]].concat();
    let (mut args, given) = parse::<size::SizeArgs>("size", &words)?;
    args.watch = bars::shown(watch);
    size::result_of(&args, &given, (trace, page_size), again)
}
