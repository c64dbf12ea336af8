//! The flags of `refault explain`.

use crate::flags::time::time;
use crate::trace_cmd::InputArgs;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const DETAILS: &str = "\
Readings are files of the kernel as they are printed, one after the other: /proc/vmstat, /proc/meminfo, \
/proc/pressure/*, and of a group memory.stat, memory.events, memory.pressure, memory.max and more.

Examples:
  head -n -0 /proc/vmstat /proc/pressure/memory > before; sleep 60
  head -n -0 /proc/vmstat /proc/pressure/memory > after
  refault explain before after --for 60s
  refault explain --live --cgroup /system.slice/web.service --for 30s
  refault explain web.parquet

docs/reference/explain.md has the rules.";

/// Flags of `refault explain`.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = DETAILS)]
pub struct ExplainArgs {
    /// What `refault record` wrote, or two readings of the kernel's files, the earlier one first
    #[arg(value_name = "RECORDING | BEFORE AFTER", num_args = 0..=2, conflicts_with = "live")]
    pub(super) inputs: Vec<PathBuf>,

    /// Read this machine's files now, and once more after --for
    #[arg(long)]
    pub(super) live: bool,

    /// With --live: read the files of this memory cgroup, too, by its path, such as
    /// /system.slice/web.service
    #[arg(long, value_name = "PATH", requires = "live")]
    pub(super) cgroup: Option<PathBuf>,

    /// How long to wait with --live, or how far apart two files are: 10s, 5m [default: with --live
    /// 10s, of files not known]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(super) span: Option<Duration>,

    /// Print JSON; the schema is in docs/reference/explain.md
    #[arg(long)]
    pub(super) json: bool,

    /// Write the result into a file, whole or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) input: InputArgs,
}
