//! `refault trace`: what a trace holds, conversion to the native format, generated workloads.
//!
//! `info`, `convert` and `generate` are one subcommand each; `input` has the flags by which traces
//! are read, which `replay` and `size` take, too. It calls the readers and writers of traces;
//! `main` calls `run`.

mod convert;
mod generate;
mod info;
mod input;

pub use input::InputArgs;
pub(crate) use input::note;

use crate::Failure;
use clap::{Args, Subcommand};

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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::path::PathBuf;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        trace: TraceArgs,
    }

    /// Runs a command line in a directory of its own, `{}` standing for the directory; tells what
    /// is left there.
    fn in_directory(name: &str, line: &[&str]) -> (Result<(), String>, Vec<String>) {
        let directory: PathBuf = std::env::temp_dir().join(format!("refault-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a writable temporary directory");
        std::fs::write(directory.join("in.txt"), "1\n2\n2\n3\n").expect("writable");
        std::fs::write(directory.join("bad.txt"), "1\n2\nx\n").expect("writable");
        let place = directory.display().to_string();
        let words = line.iter().map(|word| word.replace("{}", &place));
        let parsed = Cli::try_parse_from(std::iter::once("trace".to_owned()).chain(words));
        let done = parsed.map_err(|e| e.to_string()).and_then(|cli| run(cli.trace).map_err(|e| e.to_string()));
        let entries = std::fs::read_dir(&directory).expect("there");
        let mut left: Vec<_> =
            entries.map(|entry| entry.expect("there").file_name().to_string_lossy().into_owned()).collect();
        left.retain(|name| !name.ends_with(".txt"));
        std::fs::remove_dir_all(&directory).expect("ours");
        (done, left)
    }

    #[test]
    fn convert_writes_one_file() {
        let (done, left) = in_directory("convert", &["convert", "{}/in.txt", "{}/out.parquet", "--collapse", "1"]);
        assert_eq!(done, Ok(()));
        assert_eq!(left, ["out.parquet"]);
    }

    #[test]
    fn a_broken_input_leaves_nothing() {
        let (done, left) = in_directory("broken", &["convert", "{}/bad.txt", "{}/out.parquet"]);
        let error = done.expect_err("x is no page");
        assert!(error.ends_with("bad.txt:3: page \"x\" is not a number"), "{error}");
        assert_eq!(left, Vec::<String>::new());
    }

    #[test]
    fn unwritable_outputs_are_named() {
        for (out, want) in [("{}", "is a directory"), ("{}/no/out", "no/out: cannot be written: No such file")] {
            let (done, left) = in_directory("unwritable", &["generate", out, "--phase", "5: A:loop:3"]);
            let error = done.expect_err(want);
            assert!(error.contains(want), "{error}");
            assert_eq!(left, Vec::<String>::new());
        }
    }

    #[test]
    fn a_mistake_in_a_phase_is_named() {
        let (done, left) = in_directory("phase", &["generate", "{}/out.parquet", "--phase", "5: A:lop:3"]);
        assert!(done.expect_err("lop").contains("pattern \"lop\" is not known"));
        assert_eq!(left, Vec::<String>::new());
    }
}
