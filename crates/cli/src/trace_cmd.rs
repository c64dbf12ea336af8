//! `refault trace`: what a trace holds, conversion to the native format, generated workloads.

mod convert;
mod generate;
mod info;
mod input;
mod progress;

pub use input::InputArgs;

use clap::{Args, Subcommand};

/// Any error of a subcommand; its text is one line.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Inspect, convert and generate traces
#[derive(Debug, Args)]
pub struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Show what a trace holds: accesses, distinct pages, objects, reads and writes
    Info(info::InfoArgs),
    /// Convert a trace of any format to the native one (Parquet with zstd)
    Convert(convert::ConvertArgs),
    /// Generate a workload from a specification and a seed, as a native trace
    Generate(generate::GenerateArgs),
}

/// Runs `refault trace ...`.
pub fn run(args: TraceArgs) -> Result<(), Failure> {
    match args.command {
        TraceCommand::Info(args) => info::run(&args),
        TraceCommand::Convert(args) => convert::run(&args),
        TraceCommand::Generate(args) => generate::run(&args),
    }
}
