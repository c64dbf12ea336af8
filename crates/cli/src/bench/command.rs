//! `refault bench`, from its flags to its output.

use super::args::BenchArgs;
use super::{summary, text, vary};
use crate::replay::{check_output, write};
use crate::{Failure, print};
use refault::bench::{BenchReport, Differences, known};
use serde::Serialize;
use std::path::Path;

/// Runs `refault bench ...`. False: the known misses are not what came out, and that was to be
/// told.
pub fn run(args: &BenchArgs) -> Result<bool, Failure> {
    if args.list {
        print(&text::list(&known()?))?;
        return Ok(true);
    }
    let request = args.request();
    let benchmarks = request.benchmarks()?;
    if let Some(path) = &args.output {
        check_output(args.names.iter().map(Path::new), path)?;
    }
    let runner = request.runner();
    if args.vary {
        for benchmark in &benchmarks {
            print(&vary::table(benchmark, &refault::bench::vary(benchmark, &runner)?))?;
        }
        return Ok(true);
    }
    let reports = refault::bench::run(&benchmarks, &runner)?;
    let text = match () {
        () if args.json => json(&reports)?,
        () if args.summary => summary::summary(&reports),
        () => text::text(&reports),
    };
    match &args.output {
        Some(path) => write(path, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(!args.strict || Differences::of(&reports).is_none())
}

/// All reports as one object.
fn json(reports: &[BenchReport]) -> Result<String, Failure> {
    #[derive(Serialize)]
    struct All<'a> {
        refault: &'static str,
        benchmarks: &'a [BenchReport],
    }
    let all = All { refault: env!("CARGO_PKG_VERSION"), benchmarks: reports };
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}
