//! Published benchmarks in the lab: numbers of ours beside those that were published.
//!
//! | file | what is in it |
//! |---|---|
//! | `builtin` | the benchmarks that are compiled in, and their scales |
//! | `benchmark` | [`Bench`], the request; which scenario, how small, with which seeds |
//! | `result` | [`BenchReport`]: rows, bands, verdicts |
//! | `misses` | which of what is missed was known, by the mechanism that is missing |
//! | `vary` | the same with other values of a scenario |
//! | `half_to_double` | how many published changes come out by half to double; what was calibrated |
//! | `serialise` | a report as `--json` has it |
//!
//! It calls the `runner`.

mod benchmark;
mod builtin;
mod half_to_double;
mod misses;
mod result;
mod serialise;
mod vary;

pub use benchmark::{Bench, Benchmark, known};
pub use builtin::{BUILTIN, default_scale};
pub use half_to_double::{CalibratedValue, HalfToDouble, is_half_to_double};
pub use misses::{Differences, KNOWN, Missed, MissingMechanism, all_missing, missing};
pub use result::{BenchReport, BenchRow, Number, Ratio, Variant, spread};
pub use vary::{BandedFigure, Variation, vary};

use crate::Failure;
use crate::runner::Runner;

/// Runs the benchmarks that a request names; a report of each.
///
/// # Errors
/// A name that is none, a scenario that cannot be read or run, or cancel.
pub fn bench(request: &Bench) -> Result<Vec<BenchReport>, Failure> {
    run(&request.benchmarks()?, &request.runner())
}

/// Runs benchmarks; a report of each.
///
/// # Errors
/// A scenario that cannot be run, or cancel.
pub fn run(benchmarks: &[Benchmark], runner: &Runner) -> Result<Vec<BenchReport>, Failure> {
    let jobs: Vec<_> = benchmarks.iter().flat_map(Benchmark::jobs).collect();
    let done = runner.run("running", &jobs)?;
    let mut rest = done.as_slice();
    let mut reports = Vec::new();
    for benchmark in benchmarks {
        let (own, others) = rest.split_at(benchmark.published.variants.len() * benchmark.seeds.len());
        reports.push(BenchReport::new(benchmark, own)?);
        rest = others;
    }
    Ok(reports)
}
