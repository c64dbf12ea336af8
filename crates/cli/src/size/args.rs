//! The flags of `refault size`.

use crate::flags::kernel;
use crate::flags::settings::{self, Set};
use crate::flags::size::Size as MemorySize;
use crate::flags::swap::SwapArgs;
use crate::replay::sample::SampleArgs;
use crate::replay::{SwapMax, ViaArg};
use crate::trace_cmd::InputArgs;
use crate::{Failure, GivenFlags, Watch};
use clap::{Args, ValueEnum};
use refault::recording::WarmUp;
use refault::runner::parse_scale;
use refault::size::{FlagsOf, Limit, MetricTarget, SizeRange, SizeRequest, check_flags, policy_of_groups};
use refault_mm::{Kernel, Policy};
use std::path::PathBuf;
use std::str::FromStr;

const DETAILS: &str = "\
Targets: METRIC<VALUE for what falls with memory, METRIC>VALUE for what grows (<= and >= too).
  some.avg10<1%, some.avg60, some.avg300   memory pressure of the group, the highest of the run; also full.avg10, ...
  some<1%, full<1%                         the share of the whole run
  refaults_per_s<100, swap_ins_per_s<10    of the whole run; no swap-ins of a recording
  refaults_per_access<1%, swap_ins_per_access<0.1%
  hit_rate>99%                             of the measured accesses of the group's tasks
  misses<10k                               the same, in number
  read_bytes<1G, read_bytes_per_s<10M      read from disks, of a recording; reads_per_s<500 are requests
  ops_per_s>1.5k                           the sum over the group's tasks
  p99<5ms; p50, p90, p999, max_latency     of the group's operations

A trace has no devices that take time, so of a trace only hit_rate, misses, refaults_per_access, \
swap_ins_per_access and, if it has times, refaults_per_s and swap_ins_per_s can be asked for.

A size at which a task of the group is killed for lack of memory, or at which the machine gets stuck, does not meet \
any target.

Both ends of the range are tried, then two sizes at a time that divide what is left into three, until the answer is \
known to a step of --resolution. Exit status: 0 when there is an answer, 1 when even the largest size does not meet \
the target, 2 for a mistake.

Examples:
  How little memory can the service have and lose less than 1% of its time to memory?
    refault size tenants.toml --group /web --target 'some.avg60<1%'
  How much must be protected for its latency?
    refault size tenants.toml --group /web --limit low --target 'p99<2ms' --range 0..256M --resolution 8M
  How much memory holds 95% of the accesses of a trace?
    refault size data/sqlite.parquet --target 'hit_rate>95%'
  The same of a trace of billions, by one page in a hundred?
    refault size week.parquet --target 'hit_rate>95%' --sample 1%
  How much must a tenant of a trace have, when all share 2 GB?
    refault size tenants.parquet --group /web --limit low --memory 2G --target 'refaults_per_access<0.1%'

docs/reference/size.md says more.";

/// Flags of `refault size`.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = DETAILS)]
pub struct SizeArgs {
    /// A scenario file (.toml), a trace of any format that `refault trace info` reads, or what
    /// `refault record` wrote
    #[arg(value_name = "SCENARIO|TRACE")]
    pub(super) subject: PathBuf,

    /// The group, by its path, such as /web; a trace or a recording without one is sized as a whole
    #[arg(long, short, value_name = "PATH")]
    pub(super) group: Option<String>,

    /// Target to meet, such as 'some.avg60<1%', 'p99<5ms', 'hit_rate>99%'; quote it, < is special
    /// in a shell. The long help (--help) lists all [default: of a trace or a recording a summary:
    /// what other sizes cost, beyond which one memory is not worth its price, what can be cut]
    #[arg(long = "target", short = 't', value_name = "TARGET")]
    pub(super) asked: Option<MetricTarget>,

    /// Limit of the group: memory.max, memory.high, memory.low or memory.min
    #[arg(long, short, value_name = "LIMIT", default_value = "max")]
    pub(super) limit: LimitArg,

    /// Smallest and largest size to try: bytes with K, M, G or T (powers of 1024), pages (4096p),
    /// or percent of the machine's memory, of a trace of the pages that it touches [default: up to
    /// what the group has in files and memory, or all the memory there is; for max and high from
    /// 1/32 of that, for low and min from 0]
    #[arg(long, value_name = "LOW..HIGH")]
    pub(super) range: Option<SizeRange>,

    /// How exactly the answer must be known: a size as for --range [default: 1/64 of the range,
    /// rounded up to a power of two]
    #[arg(long, value_name = "SIZE", value_parser = SizeRange::size)]
    pub(super) resolution: Option<MemorySize>,

    /// Limits of the groups, a file as for `refault replay`; that of --limit is tried on top of
    /// them
    #[arg(long, value_name = "FILE")]
    pub(super) memcg_limits: Option<PathBuf>,

    /// lru, lru-2013, lru-none, lru-shadow, mglru or mglru-shadow [default: of a scenario or a
    /// recording its own, of a trace mglru]
    #[arg(long, short, value_name = "POLICY")]
    pub(super) policy: Option<PolicyArg>,

    /// The kernel whose rules the engine follows: 2022-v14, 6.1, 6.6-rc, 6.6, 6.12, 6.18 or 7.2;
    /// list prints what each is [default: 6.12; of a scenario or a recording its own]
    #[arg(long, value_name = "NAME", value_parser = kernel::parser())]
    pub(super) kernel: Option<Kernel>,

    /// Seed of everything random [default: that of the scenario; of traces 0]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Divide sizes, amounts of work and times of the scenario by K, 1 or more; averages of
    /// pressure stay 10, 60 and 300 seconds
    #[arg(long, value_name = "K", default_value = "1", value_parser = parse_scale)]
    pub(super) scale: f64,

    /// Threads; two sizes are tried at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,

    /// Print JSON; the schema is in docs/reference/size.md
    #[arg(long)]
    pub(super) json: bool,

    /// Write the result into a file, whole or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) trace: SizeTraceArgs,

    /// Set by programs that are not the command.
    #[arg(skip = crate::bars::watch())]
    pub(crate) watch: Watch,
}

/// Flags that only traces have.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Traces")]
pub struct SizeTraceArgs {
    /// memory.max of all groups together, a size as for --range, or max [default: max]
    #[arg(long, short, value_name = "SIZE")]
    pub(super) memory: Option<MemorySize>,

    /// Swap for anonymous memory: a size as for --range, or max for no limit; 0 is no swap
    #[arg(long, value_name = "SIZE", default_value = "max")]
    pub(super) swap_max: SwapMax,

    #[command(flatten)]
    pub(super) swap: SwapArgs,

    /// Preference of anonymous over file pages in reclaim, 0 to 200
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=200))]
    pub(super) swappiness: u32,

    /// How file pages are touched where the trace does not say: by mapping or by descriptor
    #[arg(long, value_name = "HOW", default_value = "fd")]
    pub(super) via: ViaArg,

    /// Size a cache that is asked for nothing but what the trace has, where hits of the page cache
    /// are not in it, as in traces of block devices; else these are refused
    #[arg(long)]
    pub(super) as_page_cache: bool,

    /// Start of a recording that is left out of account: a time (30s, 2m), a part of it
    /// (25%), or auto: nothing, for a warm service begins with what it had in memory, and what that
    /// leaves open is said
    #[arg(long, value_name = "TIME|PERCENT|auto", default_value = "auto")]
    pub(super) warm_up: WarmUp,

    /// Set a variant of the engine; `--set help` lists keys and defaults
    #[arg(long, value_name = "KEY=VALUE", value_parser = settings::parser())]
    pub(super) set: Vec<Set>,

    #[command(flatten)]
    pub(super) sample: SampleArgs,

    #[command(flatten)]
    pub(super) input: InputArgs,
}

impl SizeArgs {
    /// The request, of whose flags `given` were.
    pub(super) fn request(&self, given: &GivenFlags) -> SizeRequest {
        let of_trace = &self.trace;
        SizeRequest {
            target: self.asked.clone(),
            group: self.group.clone(),
            limit: self.limit.into(),
            range: self.range.clone(),
            resolution: self.resolution.clone(),
            memcg_limits: self.memcg_limits.clone(),
            policy: self.policy.map(|policy| policy.0),
            kernel: self.kernel,
            seed: self.seed,
            scale: self.scale,
            threads: self.threads,
            memory: of_trace.memory.clone(),
            swap_max: of_trace.swap_max.size().cloned(),
            swap: of_trace.swap.swap.clone(),
            compression: of_trace.swap.compression.clone(),
            swappiness: given.has("swappiness").then_some(of_trace.swappiness),
            via: of_trace.via.into(),
            as_page_cache: of_trace.as_page_cache,
            warm_up: of_trace.warm_up,
            set: of_trace.set.clone(),
            sampling: of_trace.sample.sampling(),
            flags: given.partial(),
        }
    }

    /// An error if a flag was given that belongs to another kind of input.
    pub(super) fn check_flags(&self, given: &GivenFlags, of: FlagsOf) -> Result<(), Failure> {
        Ok(check_flags(|flag| given.has(flag), &self.subject.display().to_string(), of)?)
    }
}

/// `--limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LimitArg {
    /// Nothing is charged above it.
    Max,
    /// Above it tasks reclaim, and sleep if that does not help.
    High,
    /// Below it the group is reclaimed only if other groups have nothing to give.
    Low,
    /// Not reclaimed below it.
    Min,
}

impl From<LimitArg> for Limit {
    fn from(limit: LimitArg) -> Limit {
        match limit {
            LimitArg::Max => Limit::Max,
            LimitArg::High => Limit::High,
            LimitArg::Low => Limit::Low,
            LimitArg::Min => Limit::Min,
        }
    }
}

/// `--policy`: one that the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyArg(pub(super) Policy);

impl FromStr for PolicyArg {
    type Err = String;

    fn from_str(text: &str) -> Result<PolicyArg, String> {
        policy_of_groups(text).map(PolicyArg)
    }
}
