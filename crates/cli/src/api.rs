//! Results of the subcommands without their printing, for programs that are not the command.
//!
//! Replays, sizes and reports take the words of a command line, so that names, defaults and
//! messages are the command's own, and give what `--json` prints or the values behind it. `Watch`
//! ends a long one. Scenarios and benchmarks are calls of `refault`.

use crate::replay::cell::MissBits;
use crate::replay::policy::RowPolicy;
use crate::replay::{LoadedTrace, PlugIn, ReplayArgs, Row, load, load_recorded, replay_loaded};
use crate::trace_cmd::InputArgs;
use crate::{Failure, Given, Watch, bars, complaint, flags, replay, report, size};
use clap::{Args, Command, FromArgMatches};
use refault::recording;
use refault_lab::scenario::Scenario;
use refault_trace::{OpenOptions, RecordSource, Trace};
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

fn replay_args(words: &[String], watch: &Watch) -> Result<(ReplayArgs, Given), Failure> {
    let (mut args, given) = parse::<ReplayArgs>("replay", words)?;
    args.watch = bars::shown(watch);
    Ok((args, given))
}

/// How a trace is read, by flags such as `--format` and `--page-size`.
pub fn open_options(words: &[String]) -> Result<OpenOptions, Failure> {
    Ok(parse::<InputArgs>("replay", words)?.0.open_options()?)
}

/// `refault replay` with its printing, as the command has it.
pub fn run_replay(args: &ReplayArgs, given: &Given) -> Result<(), Failure> {
    replay::run(args, given)
}

/// Loads a trace as `refault replay` does, with flags such as `--via` and `--max-accesses`; a
/// recording as the machine that was recorded, too.
pub fn load_trace(words: &[String], source: Box<dyn RecordSource>, watch: &Watch) -> Result<LoadedTrace, Failure> {
    let args = replay_args(words, watch)?.0;
    if source.header().recording.is_none() {
        return load(&args, source, false);
    }
    let (machine, loaded) = load_recorded(&args, source)?;
    Ok(LoadedTrace { machine: Some(machine), ..loaded })
}

/// `refault replay` of a trace that was loaded: a row for each size and policy, those that the
/// program brings at the end, and alone if `--policy` is not given; with a bit an access if `bits`.
/// `file` is what errors call the trace.
pub fn replay(
    words: &[String],
    plug_ins: &[PlugIn],
    loaded: &LoadedTrace,
    bits: bool,
    file: &str,
    watch: &Watch,
) -> Result<Vec<(Row, Option<MissBits>)>, Failure> {
    let (args, given) = replay_args(words, watch)?;
    replay_loaded(&args, &given, plug_ins, loaded, bits, file)
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

/// `refault report`.
pub fn report(words: &[String], watch: &Watch) -> Result<(), Failure> {
    let (mut args, given) = parse::<report::ReportArgs>("report", words)?;
    args.watch = bars::shown(watch);
    report::write(&args, &given).map(|_| ())
}

/// A size such as `25%` in pages, of a trace that touches so many.
pub fn size_in_pages(size: &str, page_size: u32, footprint_pages: u64) -> Result<u64, Failure> {
    Ok(size.parse::<flags::size::Size>()?.pages(page_size, footprint_pages))
}

/// The policies of `--policy` that are plug-ins: they choose among pages of files alone.
pub fn plug_ins() -> impl Iterator<Item = &'static str> {
    RowPolicy::every().filter(|policy| policy.is_plug_in()).map(RowPolicy::name)
}

/// The keys of `--set`, each with the values that it takes and its effect.
pub fn settings() -> impl Iterator<Item = (&'static str, String, &'static str)> {
    flags::settings::described()
}
