//! `refault bench`, from its flags to its output.

use super::args::BenchArgs;
use super::benchmark::{Bench, benches, builtin};
use super::report::Report;
use super::{json, text};
use crate::runner::Runner;
use crate::{Failure, print};

/// Runs `refault bench ...`. False: a band is not met, and that was to be told.
pub fn run(args: &BenchArgs) -> Result<bool, Failure> {
    if args.list {
        print(&text::list(&builtin()?))?;
        return Ok(true);
    }
    let benches = benches(args)?;
    let jobs: Vec<_> = benches.iter().flat_map(Bench::jobs).collect();
    let done = Runner::new(args.threads, args.check).run("running", &jobs)?;
    let mut rest = done.as_slice();
    let mut reports = Vec::new();
    for bench in &benches {
        let (of_bench, others) = rest.split_at(bench.published.variants.len() * bench.seeds.len());
        reports.push(Report::new(bench, of_bench)?);
        rest = others;
    }
    print(&if args.json { json::json(&reports)? } else { text::text(&reports) })?;
    Ok(!args.strict || reports.iter().flat_map(Report::verdicts).all(|within| within))
}
