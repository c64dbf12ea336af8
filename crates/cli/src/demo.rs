//! `refault demo`: a replay and a report of a trace that comes with the program.

use crate::replay::{self, ReplayArgs};
use crate::report::{self, ReportArgs};
use crate::{Failure, GivenFlags, page, print};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use refault_trace::{AtomicFile, TraceError};
use std::io::Write;
use std::path::Path;

/// A trace of `sqlite3`; `data/README.md` says how it was made.
const TRACE: &[u8] = include_bytes!("demo.parquet");

/// Files that it writes into the current directory.
const FILE: &str = "refault-demo.parquet";
const PAGE: &str = "refault-demo.html";

const MORE: &str = "\
It writes refault-demo.parquet, the trace, and refault-demo.html, the report, into the current
directory. The trace is of sqlite3: half a million accesses to 17 MiB.";

/// Flags of `refault demo`.
#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub struct DemoArgs {
    /// Open the report in a browser (xdg-open)
    #[arg(long)]
    open: bool,
}

/// Commands that are shown.
#[derive(Debug, Parser)]
struct Shown {
    #[command(subcommand)]
    command: ShownCommand,
}

#[derive(Debug, Subcommand)]
enum ShownCommand {
    Replay(Box<ReplayArgs>),
    Report(Box<ReportArgs>),
}

/// Runs `refault demo`.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    let failed = |e: std::io::Error| TraceError::io(FILE.to_owned(), "cannot be written", &e);
    let mut file = AtomicFile::create(Path::new(FILE))?;
    file.write_all(TRACE).map_err(failed)?;
    file.commit()?;
    show(&["replay", FILE])?;
    print("\n")?;
    show(&["report", FILE, "--output", PAGE])?;
    if args.open {
        page::open(Path::new(PAGE))?;
    }
    print(&format!(
        "\n{PAGE} has the curve, the largest files and regions, and when memory was short. Go on with\n  \
         refault replay {FILE} --memory 30% --policy all\n  \
         refault size {FILE} --target 'hit_rate>95%'\n"
    ))
}

/// Prints a command and runs it.
fn show(words: &[&str]) -> Result<(), Failure> {
    print(&format!("$ refault {}\n", words.join(" ")))?;
    let command = Shown::command();
    let matches = command.clone().try_get_matches_from([&["refault"], words].concat())?;
    let given = GivenFlags::new(&command, &matches);
    match Shown::from_arg_matches(&matches)?.command {
        ShownCommand::Replay(args) => replay::run(&args, &given),
        ShownCommand::Report(args) => report::run(&args, &given),
    }
}
