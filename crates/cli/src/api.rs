//! What the subcommands compute, without their printing, for programs that are not the command.
//!
//! Each function takes the words of a command line, so that names, defaults and messages are the
//! command's own, and gives what `--json` prints or the values behind it. `Stop` ends a long one.

use crate::replay::cell::MissBits;
use crate::replay::policy::RowPolicy;
use crate::replay::{Loaded, PlugIn, ReplayArgs, Row, load, replay_loaded, scenario_results, scenario_results_of};
use crate::trace_cmd::InputArgs;
use crate::{Failure, Given, Stop, bench, complaint, flags, report, size};
use clap::{Args, Command, FromArgMatches};
use refault_lab::scenario::Scenario;
use refault_trace::{OpenOptions, RecordSource};

/// The flags of a subcommand, and which of them were given.
fn parse<A: Args + FromArgMatches>(name: &'static str, words: &[String]) -> Result<(A, Given), Failure> {
    let mut command = Command::new("refault").subcommand(A::augment_args(Command::new(name)));
    let line = ["refault", name].into_iter().map(str::to_owned).chain(words.iter().cloned());
    let matches = command.try_get_matches_from_mut(line).map_err(|e| complaint(&e))?;
    let of_subcommand = matches.subcommand_matches(name).ok_or("no subcommand")?;
    let args = A::from_arg_matches(of_subcommand).map_err(|e| complaint(&e))?;
    Ok((args, Given::new(&command, &matches)))
}

fn replay_args(words: &[String], stop: &Stop) -> Result<(ReplayArgs, Given), Failure> {
    let (mut args, given) = parse::<ReplayArgs>("replay", words)?;
    args.stop = stop.clone();
    Ok((args, given))
}

/// How a trace is read, by flags such as `--format` and `--page-size`.
pub fn open_options(words: &[String]) -> Result<OpenOptions, Failure> {
    Ok(parse::<InputArgs>("replay", words)?.0.open_options())
}

/// Loads a trace as `refault replay` does, with flags such as `--via` and `--max-accesses`.
pub fn load_trace(words: &[String], source: Box<dyn RecordSource>, stop: &Stop) -> Result<Loaded, Failure> {
    load(&replay_args(words, stop)?.0, source, false)
}

/// `refault replay` of a trace that was loaded: a row for each size and policy, those that the
/// program brings at the end, and alone if `--policy` is not given; with a bit an access if `bits`.
/// `file` is what errors call the trace.
pub fn replay(
    words: &[String],
    plug_ins: &[PlugIn],
    loaded: &Loaded,
    bits: bool,
    file: &str,
    stop: &Stop,
) -> Result<Vec<(Row, Option<MissBits>)>, Failure> {
    let (args, given) = replay_args(words, stop)?;
    replay_loaded(&args, &given, plug_ins, loaded, bits, file)
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
pub fn scenario(words: &[String], text: ScenarioText<'_>, stop: &Stop) -> Result<(String, Vec<String>), Failure> {
    let (args, given) = parse::<ReplayArgs>("replay", words)?;
    let asked = args.asked(&given, stop);
    match text {
        ScenarioText::File(path) => scenario_results(path.as_ref(), &asked),
        ScenarioText::Text(name, text) => scenario_results_of(&Scenario::parse(name, text)?, name, &asked),
    }
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
pub fn size(words: &[String], stop: &Stop) -> Result<String, Failure> {
    let (mut args, given) = parse::<size::SizeArgs>("size", words)?;
    args.stop = stop.clone();
    size::result(&args, &given)
}

/// `refault bench --json`.
pub fn bench(words: &[String], stop: &Stop) -> Result<String, Failure> {
    let (mut args, _) = parse::<bench::BenchArgs>("bench", words)?;
    args.stop = stop.clone();
    bench::result(&args)
}

/// `refault report`.
pub fn report(words: &[String], stop: &Stop) -> Result<(), Failure> {
    let (mut args, given) = parse::<report::ReportArgs>("report", words)?;
    args.stop = stop.clone();
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

/// The keys of `--set`, each with the values that it takes and what it is.
pub fn settings() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    flags::settings::described()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn mistakes_are_told_as_by_the_command() {
        let error = size(&words("x --target hit_rate>2x"), &Stop::default()).expect_err("no target").to_string();
        assert!(error.starts_with("invalid value 'hit_rate>2x' for '--target <TARGET>'"), "{error}");
        assert!(!error.contains('\n') && error.ends_with("--help says more"), "{error}");
        let error = bench(&words("--threads -1"), &Stop::default()).expect_err("negative").to_string();
        assert_eq!(error, "-1: no flag takes a negative number; --help says more");
    }

    #[test]
    fn what_is_stopped_ends_with_an_error() {
        let stop = Stop::default();
        stop.stop();
        let text = include_str!("../../../data/oomd-pressure.toml");
        let error = scenario(&[], ScenarioText::Text("t.toml", text), &stop).expect_err("stopped").to_string();
        assert_eq!(error, "interrupted");
    }

    #[test]
    fn a_stopped_replay_is_no_result() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sqlite.parquet");
        let source = || refault_trace::open(path.as_ref(), &OpenOptions::default()).expect("a trace");
        let go = Stop::default();
        let loaded = load_trace(&words("--max-accesses 20000"), source(), &go).expect("a trace");
        let rows = replay(&words("--memory 25% --policy lru,opt"), &[], &loaded, true, path, &go).expect("rows");
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|(row, bits)| row.accesses == 20_000 && bits.is_some()));
        go.stop();
        let error =
            replay(&words("--memory 25% --policy lru,opt"), &[], &loaded, false, "t", &go).expect_err("stopped");
        assert_eq!(error.to_string(), "t: interrupted");
        assert!(load_trace(&[], source(), &go).is_err());
    }

    /// Found by a test of the Python package: the last page table of all overflowed.
    #[test]
    fn the_last_pages_of_all_are_replayed() {
        let text = "0\n18446744073709551614\n0\n";
        let input = refault_trace::Input::from_reader("far", Box::new(text.as_bytes())).expect("text");
        let source = refault_trace::open_input(input, &OpenOptions::default()).expect("a trace");
        let go = Stop::default();
        let loaded = load_trace(&words("--via map"), source, &go).expect("a trace");
        let rows = replay(&words("--memory 100p --beyond-footprint --policy all"), &[], &loaded, false, "far", &go);
        assert!(rows.expect("rows").iter().all(|(row, _)| (row.accesses, row.misses) == (3, 2)));
    }
}
