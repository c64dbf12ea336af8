//! The flags of `refault size`.

use super::target::Target;
use crate::lab::parse_scale;
use crate::replay::policy::RowPolicy;
use crate::replay::size::Size;
use clap::{Args, ValueEnum};
use refault_mm::Policy;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

const DETAILS: &str = "\
Targets: METRIC<VALUE for what falls with memory, METRIC>VALUE for what grows (<= and >= too).
  some.avg10<1%, some.avg60, some.avg300   memory pressure of the group: the highest of the run; full.* likewise
  some<1%, full<1%                         the share of the whole run
  refaults_per_s<100, swap_ins_per_s<10    of the whole run
  refaults_per_access<1%, swap_ins_per_access<0.1%
  hit_rate>99%                             of the measured accesses of the group's tasks
  ops_per_s>1.5k                           the sum over the group's tasks
  p99<5ms; p50, p90, p999, max_latency     of the group's operations

A size at which a task of the group is killed for lack of memory, or at which the machine gets stuck, does not
meet any target.

Both ends of the range are tried, then two sizes at a time that divide what is left into three, until the answer is
known to a step of --resolution. Exit status: 0 when there is an answer, 1 when even the largest size does not meet
the target, 2 for a mistake.

Examples:
  How little memory can the service have and lose less than 1% of its time to memory?
    refault size tenants.toml --group /web --target 'some.avg60<1%'
  How much must be protected for its latency?
    refault size tenants.toml --group /web --limit low --target 'p99<2ms' --range 0..256M --resolution 8M

docs/lab.md says more.";

/// Flags of `refault size`.
#[derive(Debug, Args)]
#[command(after_long_help = DETAILS)]
pub struct SizeArgs {
    /// A scenario file (.toml)
    #[arg(value_name = "SCENARIO")]
    pub(super) subject: PathBuf,

    /// The group, by its path in the scenario
    #[arg(long, short, value_name = "PATH")]
    pub(super) group: String,

    /// What must be met, such as 'some.avg60<1%', 'p99<5ms', 'hit_rate>99%'; quote it, < is special in a shell.
    /// The long help (--help) lists all
    #[arg(long, short, value_name = "TARGET")]
    pub(super) target: Target,

    /// Which limit of the group
    #[arg(long, short, value_name = "LIMIT", default_value = "max")]
    pub(super) limit: Limit,

    /// Smallest and largest size to try: bytes with K, M, G or T (powers of 1024), pages (4096p), or percent of the
    /// machine's memory [default: up to what the group has in files and memory, or the machine's memory; for max and
    /// high from 1/32 of that, for low and min from 0]
    #[arg(long, value_name = "LOW..HIGH")]
    pub(super) range: Option<Range>,

    /// How exactly the answer must be known, a size [default: 1/64 of the range, rounded up to a power of two]
    #[arg(long, value_name = "SIZE")]
    pub(super) resolution: Option<Size>,

    /// Policy in the place of the scenario's own
    #[arg(long, short, value_name = "POLICY")]
    pub(super) policy: Option<PolicyArg>,

    /// Seed of everything random [default: that of the scenario]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Divide sizes, amounts of work and times of the scenario by K, 1 or more; averages of pressure stay 10, 60 and
    /// 300 seconds
    #[arg(long, value_name = "K", default_value = "1", value_parser = parse_scale)]
    pub(super) scale: f64,

    /// Threads; two sizes are tried at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,

    /// Print JSON; the schema is in docs/lab.md
    #[arg(long)]
    pub(super) json: bool,

    /// Write the result into a file, whole or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// `--limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Limit {
    /// memory.max
    Max,
}

impl Limit {
    /// The name of its file in cgroupfs.
    pub(super) fn file(self) -> &'static str {
        match self {
            Limit::Max => "memory.max",
        }
    }
}

/// `--range`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    pub(super) low: Size,
    pub(super) high: Size,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let (low, high) = text.split_once("..").ok_or_else(|| format!("{text:?} is not a range; write 64M..1G"))?;
        Ok(Range { low: low.parse()?, high: high.parse()? })
    }
}

/// `--policy`: one that the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyArg(pub(super) Policy);

impl FromStr for PolicyArg {
    type Err = String;

    fn from_str(text: &str) -> Result<PolicyArg, String> {
        let known = || Policy::ALL.map(Policy::name).join(", ");
        match RowPolicy::all().find(|policy| policy.name() == text) {
            Some(RowPolicy::Linux(policy)) => Ok(PolicyArg(policy)),
            Some(RowPolicy::Opt) => Err(format!("opt knows no groups; one of {} does", known())),
            None => Err(format!("unknown policy {text:?}; one of {}", known())),
        }
    }
}

impl fmt::Display for PolicyArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}
