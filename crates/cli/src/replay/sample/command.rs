//! `refault replay --sample`, from its flags to its output.

use super::args::UnitArg;
use super::text;
use crate::flags;
use crate::flags::recorded;
use crate::given::GivenFlags;
use crate::replay::args::ReplayArgs;
use crate::replay::check::check;
use crate::replay::clocked::Clocked;
use crate::replay::command::{OF_ROWS, OF_RULES, sizes, write};
use crate::replay::policy::RowPolicy;
use crate::replay::rules;
use crate::{Failure, print};
use refault::replay::sample::{OneIn, Question, SampledEstimate, estimate};
use refault::settings::check_on_sample;
use refault_mm::Config;
use refault_trace::{AtomicFile, LoadOptions, Samples};
use std::io::{IsTerminal, stdout};
use std::path::Path;

/// Flags that have no meaning with samples, and what there is instead.
const NOT_HERE: [(&str, &str); 10] = [
    ("memcg-column", "the groups of a trace are replayed whole"),
    ("memcg-limits", "the groups of a trace are replayed whole"),
    ("windows", "leave --sample out"),
    ("miss-bits", "leave --sample out"),
    ("lru-gen", "leave --sample out"),
    ("swap-map", "leave --sample out"),
    ("vmstat", "leave --sample out"),
    ("metrics", "--json has all of it"),
    ("html", "--json has all of it"),
    ("tier", "a machine with tiers runs the whole trace"),
];

/// Memory of a sample in pages below which a page or two more or less show.
const FEW_PAGES: u64 = 100;

/// Whether the same command line may have `--sample`.
pub(in crate::replay) fn is_possible(given: &GivenFlags) -> bool {
    !given.has("thp") && !NOT_HERE.iter().any(|(flag, _)| given.has(flag))
}

/// Estimates for every trace.
pub(in crate::replay) fn run(
    args: &ReplayArgs,
    given: &GivenFlags,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<(), Failure> {
    given.refuse(&NOT_HERE, "--sample")?;
    if given.has("thp") && args.sample.sample_unit != UnitArg::Table {
        return Err("--thp: large folios are of neighbours; add --sample-unit table".into());
    }
    refault_syscalls::advise_when_full("take fewer sizes and policies at a time, or a smaller --sample");
    check(args)?;
    if let Some(path) = &args.output.output {
        drop(AtomicFile::create(path)?);
    }
    let one_in = args.sample.one_in();
    let (mut estimates, mut words) = (Vec::new(), Vec::new());
    for path in &args.traces {
        let (of_trace, of_words) = replay(args, given, one_in, path, policies)?;
        words.push(of_words);
        estimates.push(of_trace);
    }
    let to_terminal = args.output.output.is_none() && stdout().is_terminal();
    let settings = given.settings(&OF_ROWS);
    let text = match () {
        _ if args.output.json => text::json(&estimates.concat(), one_in, &settings, &args.input.notes())?,
        _ if args.output.csv => text::csv(&estimates.concat(), &settings),
        _ => {
            let colour = to_terminal && std::env::var_os("NO_COLOR").is_none();
            let one = |(of_trace, words): (&Vec<SampledEstimate>, &ExternalCommand)| {
                let mut text = text::table(of_trace, one_in, &format!("{}{}", words.rules, settings.line(&OF_RULES)));
                if args.output.curve {
                    text += &text::curve(of_trace, colour);
                }
                text + &words.notes
            };
            estimates.iter().zip(&words).map(one).collect::<Vec<_>>().join("\n")
        }
    };
    match &args.output.output {
        Some(path) => write(path, text.as_bytes()),
        None => print(&text),
    }
}

/// Remarks printed beside the estimates of a trace.
struct ExternalCommand {
    /// Rules that are not the default ones.
    rules: String,
    /// Quantities that such a sample cannot tell.
    notes: String,
}

fn replay(
    args: &ReplayArgs,
    given: &GivenFlags,
    one_in: OneIn,
    path: &Path,
    policies: &[(RowPolicy, Option<Config>)],
) -> Result<(Vec<SampledEstimate>, ExternalCommand), Failure> {
    let source = args.input.open(path)?;
    let page_size = source.header().page_size;
    let recording = source.header().recording.as_ref();
    let own = recording.map(|recording| args.loaded(given).policies(Some(recording))).transpose()?;
    let recorded_kernel = recording.map(recorded::kernel);
    let kernel = args.kernel.or(recorded_kernel).unwrap_or_default();
    let recorded_bytes = recording.and_then(|recording| recording.memory_max);
    let options =
        LoadOptions { default_via: args.via.into(), max_accesses: args.max_accesses, ..LoadOptions::default() };
    let mut source = Clocked::new(source, args.max_accesses, &args.watch);
    let samples = Samples::load(&mut source, &options, &args.sample.samples(args.seed))?;
    if let [path] = args.traces.as_slice() {
        check_on_sample(&given.partial(), &samples.traces[0], &path.display().to_string())?;
    }
    let footprint = samples.footprint_pages;
    let question = Question {
        one_in,
        page_size,
        sizes: &sizes(args, given, &samples.traces[0].name, (page_size, footprint), recorded_bytes)?,
        kernel,
        policies: own.as_deref().unwrap_or(policies),
        swap_max_pages: args.swap_max.pages(page_size, footprint),
        threads: flags::threads(args.threads),
        watch: args.watch.clone(),
    };
    let estimates = estimate(&samples, &question).map_err(|e| format!("{}: {e}", path.display()))?;
    let notes = notes(args, one_in, &samples, &estimates);
    let rules = rules::line(
        (kernel, args.kernel.is_some() && recorded_kernel.is_some()),
        rules::of_policies(question.policies),
    );
    Ok((estimates, ExternalCommand { rules, notes }))
}

/// Remarks on quantities that a sample of that kind cannot tell, if any.
fn notes(args: &ReplayArgs, one_in: OneIn, samples: &Samples, estimates: &[SampledEstimate]) -> String {
    let mut text = String::new();
    if one_in.0 == 1 {
        return text;
    }
    if samples.mapped > 0 && args.sample.sample_unit == UnitArg::Page {
        let percent = 100.0 * samples.mapped as f64 / samples.accesses as f64;
        text += &format!(
            "note: {percent:.0}% of the accesses are to files by mapping, where faults map neighbours, and a sample \
             has others; --sample-unit node keeps 64 in a row together, but is a sample of fewer\n"
        );
    }
    let least = estimates.iter().flat_map(|e| &e.samples).map(|sample| sample.memory_pages).min().unwrap_or(0);
    if least < FEW_PAGES {
        text += &format!(
            "note: the smallest memory is {least} pages of a sample, in which single pages show: take more than \
             {one_in}\n"
        );
    }
    text
}
