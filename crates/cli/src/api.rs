//! Results of the subcommands without their printing, for programs that are not the command.
//!
//! Each function takes the words of a command line, so that names, defaults and messages are the
//! command's own, and gives what `--json` prints or the values behind it. `Watch` ends a long one.

use crate::replay::cell::MissBits;
use crate::replay::policy::RowPolicy;
use crate::replay::{LoadedTrace, PlugIn, ReplayArgs, Row, load, load_recorded, replay_loaded, scenario_results};
use crate::trace_cmd::InputArgs;
use crate::{Failure, Given, Watch, bars, bench, complaint, flags, replay, report, size};
use clap::{Args, Command, FromArgMatches};
use refault::recording;
use refault::scenario::{NamedScenario, ScenarioRequest};
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

/// Where a scenario is.
#[derive(Clone, Copy, Debug)]
pub enum ScenarioText<'a> {
    /// In a file; traces are named from where it is.
    File(&'a str),
    /// Here; what errors call it, and the text.
    Text(&'a str, &'a str),
}

/// `refault replay` of a scenario, with the flags `--policy`, `--seed`, `--scale`, `--threads` and
/// `--check`: JSON, and the time series of each run as CSV.
pub fn scenario(words: &[String], text: ScenarioText<'_>, watch: &Watch) -> Result<(String, Vec<String>), Failure> {
    let (args, given) = parse::<ReplayArgs>("replay", words)?;
    let watch = bars::shown(watch);
    // Flags beside those are not for it.
    let request = ScenarioRequest {
        promotion: Vec::new(),
        limits: None,
        lru_gen: false,
        swap_map: true,
        ..args.scenario_request(&given)
    };
    let request = match text {
        ScenarioText::File(path) => request.with_file(path.as_ref())?,
        ScenarioText::Text(name, text) => {
            let scenario = NamedScenario { name: name.to_owned(), scenario: Scenario::parse(name, text)? };
            ScenarioRequest { scenarios: vec![scenario], ..request }
        }
    };
    scenario_results(&request, &given, &watch)
}

/// An error if a text is no scenario.
pub fn check_scenario(text: ScenarioText<'_>) -> Result<(), Failure> {
    match text {
        ScenarioText::File(path) => Scenario::load(path).map(drop)?,
        ScenarioText::Text(name, text) => Scenario::parse(name, text).map(drop)?,
    }
    Ok(())
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

/// `refault bench --json`.
pub fn bench(words: &[String], watch: &Watch) -> Result<String, Failure> {
    let (mut args, _) = parse::<bench::BenchArgs>("bench", words)?;
    args.watch = bars::shown(watch);
    bench::result(&args)
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
