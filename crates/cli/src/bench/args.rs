//! The flags of `refault bench`.

use crate::Watch;
use crate::flags::memory::MaxMemoryArgs;
use clap::Args;
use refault::bench::Bench;
use refault::runner::parse_scale;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  All of them, each in seconds:
    refault bench
  One in full size, with every check:
    refault bench db-switch --scale 1 --check
  How much of a result is chance:
    refault bench stock-level --seeds 5
  Your own, a scenario with a [published] section:
    refault bench ./mine.toml --json

docs/reference/bench.md says what the numbers mean.";

/// Flags of `refault bench`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct BenchArgs {
    /// Benchmarks by name or by the beginning of several (thp-swap for thp-swap-a, ...), or
    /// scenario files with a [published] section [default: all that --list names]
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,

    /// Divide sizes, amounts of work and times by K; 1 is full size [default: as --list says, so
    /// that one takes seconds]
    #[arg(long, value_name = "K", value_parser = parse_scale)]
    pub(super) scale: Option<f64>,

    /// Seed of everything random [default: that of the scenario, or the seeds that it asks for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    pub(super) seed: Option<u64>,

    /// Run with the seeds 1 to N, and show how far they are apart
    #[arg(long, value_name = "N", conflicts_with = "seed", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) seeds: Option<u64>,

    /// Check what must hold at every sample: memory, requests, bytes and pressure add up
    #[arg(long)]
    pub(super) check: bool,

    /// Exit with status 1 if a row misses its band that is not known to, or one that is known to
    /// miss is met
    #[arg(long)]
    pub(super) strict: bool,

    /// Print a line for each band, and what is missing where one is missed
    #[arg(long, conflicts_with = "json")]
    pub(super) summary: bool,

    /// Run with half and double of each value that the scenario has chosen, one at a time, and say
    /// which rows leave their bands with which
    #[arg(long, conflicts_with_all = ["json", "summary", "strict", "output", "seeds"])]
    pub(super) vary: bool,

    /// Threads, one a run [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,

    /// Print JSON; the schema is in docs/reference/bench.md
    #[arg(long)]
    pub(super) json: bool,

    /// Write the result into a file, whole or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) max_memory: MaxMemoryArgs,

    /// List the benchmarks, and run none
    #[arg(long, conflicts_with_all = ["names", "scale", "seed", "seeds", "check", "strict", "summary", "vary", "threads", "json", "output"])]
    pub(super) list: bool,

    /// Set by programs that are not the command.
    #[arg(skip = crate::bars::watch())]
    pub(crate) watch: Watch,
}

impl BenchArgs {
    /// The request of the library.
    pub(super) fn request(&self) -> Bench {
        Bench {
            names: self.names.clone(),
            scale: self.scale,
            seed: self.seed,
            seeds: self.seeds,
            check: self.check,
            threads: self.threads,
            watch: self.watch.clone(),
        }
    }
}
