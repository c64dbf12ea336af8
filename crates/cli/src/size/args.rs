//! The flags of `refault size`.

use super::grid::Grid;
use super::search::{Probe, Verdict, search, walk};
use super::target::Target;
use crate::flags::kernel;
use crate::flags::settings::{self, Set};
use crate::flags::size::Size;
use crate::replay::policy::RowPolicy;
use crate::replay::rules::words as rules_in_words;
use crate::replay::sample::SampleArgs;
use crate::replay::{SwapMax, ViaArg};
use crate::trace_cmd::InputArgs;
use crate::{Failure, Given, Watch};
use clap::{Args, ValueEnum};
use refault::recording::WarmUp;
use refault::runner::parse_scale;
use refault_lab::scenario::LimitChanges;
use refault_mm::{Config, Kernel, MemcgLimits, Policy};
use std::collections::BTreeMap;
use std::fmt;
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

    /// What must be met, such as 'some.avg60<1%', 'p99<5ms', 'hit_rate>99%'; quote it, < is special
    /// in a shell. The long help (--help) lists all [default: of a trace or a recording a summary:
    /// what other sizes cost, beyond which one memory is not worth its price, what can be cut]
    #[arg(long = "target", short = 't', value_name = "TARGET")]
    pub(super) asked: Option<Target>,

    /// The target, once it is known that there is one.
    #[arg(skip = Target::none())]
    pub(super) target: Target,

    /// Which limit of the group: memory.max, memory.high, memory.low or memory.min
    #[arg(long, short, value_name = "LIMIT", default_value = "max")]
    pub(super) limit: Limit,

    /// Smallest and largest size to try: bytes with K, M, G or T (powers of 1024), pages (4096p),
    /// or percent of the machine's memory, of a trace of the pages that it touches [default: up to
    /// what the group has in files and memory, or all the memory there is; for max and high from
    /// 1/32 of that, for low and min from 0]
    #[arg(long, value_name = "LOW..HIGH")]
    pub(super) range: Option<SizeRange>,

    /// How exactly the answer must be known: a size as for --range [default: 1/64 of the range,
    /// rounded up to a power of two]
    #[arg(long, value_name = "SIZE", value_parser = part_of_whole)]
    pub(super) resolution: Option<Size>,

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

/// What only traces have.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Traces")]
pub struct SizeTraceArgs {
    /// memory.max of all groups together, a size as for --range, or max [default: max]
    #[arg(long, short, value_name = "SIZE")]
    pub(super) memory: Option<Size>,

    /// Swap for anonymous memory: a size as for --range, or max for no limit; 0 is no swap
    #[arg(long, value_name = "SIZE", default_value = "max")]
    pub(super) swap_max: SwapMax,

    /// Preference of anonymous over file pages in reclaim, 0 to 200
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=200))]
    pub(super) swappiness: u32,

    /// How file pages are touched where the trace does not say: by mapping or by descriptor
    #[arg(long, value_name = "HOW", default_value = "fd")]
    pub(super) via: ViaArg,

    /// What of the start of a recording is left out of account: a time (30s, 2m), a part of it
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
    /// The same, with the target that was asked for.
    pub(super) fn resolved(&self) -> SizeArgs {
        SizeArgs { target: self.asked.clone().unwrap_or_else(Target::none), ..self.clone() }
    }

    /// Tries sizes in the order in which a search wants them, or, without a target, on a scale.
    pub(super) fn tried<P: Probe, E>(
        &self,
        grid: Grid,
        probe: impl FnMut(&[u64]) -> Result<Vec<P>, E>,
    ) -> Result<(BTreeMap<u64, P>, Verdict), E> {
        match self.asked {
            Some(_) => search(grid, probe),
            None => walk(grid, probe),
        }
    }

    /// An error if a flag was given that belongs to the other kind of input.
    pub(super) fn refuse_foreign(&self, given: &Given, flags: &[&str], of: &str, is: &str) -> Result<(), Failure> {
        match flags.iter().find(|flag| given.has(flag)) {
            Some(flag) => Err(format!("--{flag}: is for {of}, and {} is {is}", self.subject.display()).into()),
            None => Ok(()),
        }
    }

    /// The policy of a trace that does not say one.
    pub(super) fn policy_of_trace(&self) -> Policy {
        self.policy.map_or(Policy::Mglru, |policy| policy.0)
    }

    /// The policy of a trace, with rules that are not the default ones.
    pub(super) fn policy_of_trace_text(&self, cfg: &Config) -> String {
        let policy = self.policy_of_trace();
        let of_policy = std::iter::once((RowPolicy::Linux(policy), cfg));
        let rules = rules_in_words(self.kernel.unwrap_or_default(), of_policy);
        rules.map_or_else(|| policy.name().to_owned(), |rules| format!("{policy} ({rules})"))
    }

    /// The engine of a trace.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        let mut cfg = kernel::config(self.kernel, self.policy_of_trace());
        (cfg.swappiness, cfg.seed) = (self.trace.swappiness, self.seed.unwrap_or(0));
        self.trace.set.iter().for_each(|set| set.apply(&mut cfg));
        cfg.check().map_err(|e| format!("--set: {e}; --set help lists what there is"))?;
        Ok(cfg)
    }

    /// The sizes to try: from the flags, or up to `whole`, what the group can use, but no more than
    /// `most`, which is all that there is (`most_text` for people). `pages` makes pages of a size.
    pub(super) fn grid(
        &self,
        pages: &dyn Fn(&Size) -> u64,
        whole: u64,
        most: u64,
        most_text: String,
    ) -> Result<Grid, Failure> {
        let step = match &self.resolution {
            Some(size) if size.is_max() => return Err("--resolution max: is not a size; write 1M".into()),
            Some(size) => match pages(size) {
                0 => return Err(format!("--resolution {size}: is less than a page; write 1p or more").into()),
                pages => Some(pages),
            },
            None => None,
        };
        let Some(range) = &self.range else {
            // Ends that are as round as the sizes between them.
            let high = whole.min(most).max(2);
            let round = step.unwrap_or(Grid::new(0, high, None).step);
            let high = high.next_multiple_of(round).min(most).max(2);
            let low = match self.limit.protects() {
                true => 0,
                false => (high / 32).next_multiple_of(round).max(1).min(high - 1),
            };
            return Ok(Grid::new(low, high, step));
        };
        let (low, high) = (pages(&range.low), pages(&range.high));
        let shown = format!("--range {}..{}", range.low, range.high);
        if range.low.is_max() || range.high.is_max() {
            return Err(format!("{shown}: max is no size; write 64M..1G").into());
        }
        if low >= high {
            return Err(format!("{shown}: is empty; write the smaller size first").into());
        }
        if high > most {
            return Err(format!("{shown}: {} is more than there is, {most_text}", range.high).into());
        }
        if low == 0 && !self.limit.protects() {
            return Err(
                format!("{shown}: a {} of nothing holds nothing; begin with 1p or more", self.limit.file()).into()
            );
        }
        Ok(Grid::new(low, high, step))
    }
}

/// `--limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Limit {
    /// Nothing is charged above it.
    Max,
    /// Above it tasks reclaim, and sleep if that does not help.
    High,
    /// Not reclaimed below it while other groups can give.
    Low,
    /// Not reclaimed below it.
    Min,
}

impl Limit {
    /// The name of its file in cgroupfs.
    pub(super) fn file(self) -> &'static str {
        match self {
            Limit::Max => "memory.max",
            Limit::High => "memory.high",
            Limit::Low => "memory.low",
            Limit::Min => "memory.min",
        }
    }

    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        self.file().trim_start_matches("memory.")
    }

    /// Whether it protects the group from others rather than others from it.
    pub(super) fn protects(self) -> bool {
        matches!(self, Limit::Low | Limit::Min)
    }

    /// Changed value of this limit, if there is one.
    pub(super) fn get(self, changes: &LimitChanges) -> Option<u64> {
        match self {
            Limit::Max => changes.max,
            Limit::High => changes.high,
            Limit::Low => changes.low,
            Limit::Min => changes.min,
        }
    }

    /// Sets it.
    pub(super) fn set(self, limits: &mut MemcgLimits, pages: u64) {
        match self {
            Limit::Max => limits.max = pages,
            Limit::High => limits.high = pages,
            Limit::Low => limits.low = pages,
            Limit::Min => limits.min = pages,
        }
    }
}

/// `--range`.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeRange {
    pub(super) low: Size,
    pub(super) high: Size,
}

impl FromStr for SizeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<SizeRange, String> {
        let (low, high) = text.split_once("..").ok_or_else(|| format!("{text:?} is not a range; write 64M..1G"))?;
        Ok(SizeRange { low: part_of_whole(low)?, high: part_of_whole(high)? })
    }
}

fn part_of_whole(text: &str) -> Result<Size, String> {
    Size::parse(text, "the machine's memory, or of the footprint of a trace")
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
