//! `refault bench`, from its flags to its output.

use super::args::BenchArgs;
use super::benchmark::{Bench, benches, builtin};
use super::misses::Differences;
use super::report::Report;
use super::{json, summary, text, vary};
use crate::replay::{check_output, write};
use crate::{Failure, print};
use refault::runner::Runner;
use std::path::Path;

/// Runs `refault bench ...`. False: the known misses are not what came out, and that was to be
/// told.
pub fn run(args: &BenchArgs) -> Result<bool, Failure> {
    if args.list {
        print(&text::list(&builtin()?))?;
        return Ok(true);
    }
    let benches = benches(args)?;
    if let Some(path) = &args.output {
        check_output(args.names.iter().map(Path::new), path)?;
    }
    if args.vary {
        let runner = Runner::new(args.threads, args.check, &args.watch);
        for bench in &benches {
            print(&vary::vary(bench, &runner)?)?;
        }
        return Ok(true);
    }
    let reports = reports(args, &benches)?;
    let text = match () {
        () if args.json => json::json(&reports)?,
        () if args.summary => summary::summary(&reports),
        () => text::text(&reports),
    };
    match &args.output {
        Some(path) => write(path, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(!args.strict || Differences::of(&reports).is_none())
}

/// Text that `--json` prints.
pub(crate) fn result(args: &BenchArgs) -> Result<String, Failure> {
    json::json(&reports(args, &benches(args)?)?)
}

fn reports(args: &BenchArgs, benches: &[Bench]) -> Result<Vec<Report>, Failure> {
    let jobs: Vec<_> = benches.iter().flat_map(Bench::jobs).collect();
    let done = Runner::new(args.threads, args.check, &args.watch).run("running", &jobs)?;
    let mut rest = done.as_slice();
    let mut reports = Vec::new();
    for bench in benches {
        let (of_bench, others) = rest.split_at(bench.published.variants.len() * bench.seeds.len());
        reports.push(Report::new(bench, of_bench)?);
        rest = others;
    }
    Ok(reports)
}
