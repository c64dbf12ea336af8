//! `refault explain`: counters of a kernel at two moments in sentences, by the library.
//!
//! It calls `refault::explain`. `main` calls `run`.

use crate::flags::time::time;
use crate::replay::{check_output, write};
use crate::{Failure, bars, print};
use clap::Args;
use refault::explain::{Counters, Explanation, explain, explain_below, explain_live, explain_recording};
use std::path::{Path, PathBuf};
use std::time::Duration;

const DETAILS: &str = "\
Examples:
  head -n -0 /proc/vmstat /proc/pressure/memory > before; sleep 60
  head -n -0 /proc/vmstat /proc/pressure/memory > after
  refault explain before after --for 60s
  refault explain --live --cgroup /system.slice/web.service --for 30s
  below dump cgroup -b 10m -O csv -d > dump.csv; refault explain dump.csv --cgroup /system.slice/web.service

docs/reference/explain.md has the files that are read, and the rules.";

/// Flags of `refault explain`.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = DETAILS)]
pub struct ExplainArgs {
    /// A file that `refault record` wrote, a dump of below, or two readings of the kernel's files,
    /// the earlier one first
    #[arg(value_name = "RECORDING | DUMP | BEFORE AFTER", num_args = 0..=2, conflicts_with = "live")]
    inputs: Vec<PathBuf>,

    /// Read this machine's files now, and once more after --for
    #[arg(long)]
    live: bool,

    /// With --live: read the files of this memory cgroup, too, by its path, such as
    /// /system.slice/web.service; of a dump of several groups, which one
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,

    /// How long to wait with --live, or how far apart two files are: 10s, 5m [default: with --live
    /// 10s, of files not known]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    span: Option<Duration>,

    /// Print JSON; the schema is in docs/reference/explain.md
    #[arg(long)]
    json: bool,

    /// Write the result into a file, whole or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

const NO_GROUP: &str = "--cgroup: is for --live, and for a dump of below";

/// The time between two readings of this machine where none is given.
const SPAN: Duration = Duration::from_secs(10);

/// Runs `refault explain ...`.
pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        check_output(args.inputs.iter().map(PathBuf::as_path), path)?;
    }
    let seconds = args.span.map(|span| span.as_secs_f64());
    let explanation = match (args.live, args.inputs.as_slice()) {
        (true, _) => explain_live(args.cgroup.as_deref(), args.span.unwrap_or(SPAN), &bars::watch())?,
        (false, [file]) => match (explain_below(file, args.cgroup.as_deref()), &args.cgroup) {
            (Some(explained), _) => explained?,
            (None, Some(_)) => return Err(NO_GROUP.into()),
            (None, None) => of_recording(file)?,
        },
        (false, [..]) if args.cgroup.is_some() => return Err(NO_GROUP.into()),
        (false, [before, after]) => explain(&Counters::read(before)?, &Counters::read(after)?, seconds)?,
        (false, _) => return Err("give a recording, two files BEFORE AFTER, or --live".into()),
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&explanation)? + "\n",
        false => explanation.to_string(),
    };
    match &args.output {
        Some(path) => write(path, text.as_bytes()),
        None => print(&text),
    }
}

fn of_recording(path: &Path) -> Result<Explanation, Failure> {
    let opened = refault_trace::open(path, &refault_trace::OpenOptions::default());
    let source = opened.map_err(|e| format!("{e}; readings of the kernel's files are two, BEFORE AFTER"))?;
    let name = source.name().to_owned();
    match &source.header().recording {
        Some(recording) => explain_recording(recording, &name),
        None => Err(format!("{name}: is no recording of a kernel; give one, or two files BEFORE AFTER").into()),
    }
}
