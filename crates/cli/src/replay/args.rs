//! The flags of `refault replay`.

use super::policy::PolicyList;
use super::recorded::FOREIGN;
use super::sample::SampleArgs;
use crate::flags::kernel;
use crate::flags::settings::{self, Set, Thp};
use crate::flags::size::Size;
use crate::flags::swap::SwapArgs;
use crate::trace_cmd::InputArgs;
use crate::{GivenFlags, Watch};
use clap::{Args, ValueEnum};
use refault::loaded::LoadedReplay;
use refault::replay::{Replay, curve_sizes, usual_sizes};
use refault::runner::parse_scale;
use refault::scenario::Tier;
use refault_mm::Kernel;
use refault_mm::tiering::PromotionPolicy;
use refault_trace::{LoadOptions, Via};
use std::path::PathBuf;
use std::str::FromStr;

const EXAMPLES: &str = "\
Examples:
  What each policy makes of a trace at a tenth, a quarter and half of its footprint:
    refault replay OLTP.lis.zst --policy all
  Hit rate against memory, drawn:
    refault replay OLTP.lis.zst --curve
  A job of 512 MiB without swap, for a script:
    refault replay job.parquet --memory 512M --swap-max 0 --policy mglru --json
  The same of a trace of billions, by one page in a hundred:
    refault replay week.parquet --sample 1% --curve
  A recorded program in other sizes, on the machine that was recorded:
    refault replay nginx.parquet --memory 64M,128M,256M
  A trace of billions, larger than memory, access by access:
    refault replay week.parquet --stream --memory 10% --policy lru,mglru
  What four tenants of one trace do to each other, with limits of their own:
    refault replay tenants.parquet --memcg-column --memcg-limits limits.toml
  A machine in virtual time, and how its memory moves:
    refault replay db-switch.toml --scale 32 --policy lru-none,lru-2013
    refault replay db-switch.toml --scale 32 --series db-switch.csv

docs/reference/replay.md says what is charged, what a hit is, and what each column counts; docs/reference/replay-scenario.md what scenarios are.";

/// Flags of `refault replay`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ReplayArgs {
    /// Traces of any format that `refault trace info` reads, `-` is standard input; or scenario
    /// files (.toml)
    #[arg(value_name = "TRACE")]
    pub(super) traces: Vec<PathBuf>,

    /// Memory sizes: bytes with K, M, G or T (powers of 1024), pages (4096p), or percent of the
    /// pages that the trace touches (25%) [default: 10%,25%,50%; with --curve 16 sizes from 2% to
    /// 100%]
    #[arg(long, short, value_name = "LIST", value_delimiter = ',')]
    pub(super) memory: Vec<Size>,

    /// Policies: lru, lru-2013, lru-none, lru-shadow, mglru, mglru-shadow, opt, or all of these; as
    /// plug-ins for pages of files also fifo, clock, lru-exact, mru, lfu, sieve, s3fifo, arc, 2q,
    /// lirs, w-tinylfu, mglru-ext, get-scan; a scenario has one of its own, and no opt
    #[arg(long, short, value_name = "LIST", default_value = "lru,mglru,opt")]
    pub(super) policy: PolicyList,

    /// The kernel whose rules the engine follows: 2022-v14, 6.1, 6.6-rc, 6.6, 6.12, 6.18 or 7.2;
    /// list prints what each is [default: 6.12; of a scenario its own]
    #[arg(long, value_name = "NAME", value_parser = kernel::parser())]
    pub(super) kernel: Option<Kernel>,

    /// Swap for anonymous memory: a size as for --memory, or max for no limit; 0 is no swap
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

    /// Seed of what is random in the engine (the salt of the Bloom filters of multi-gen LRU); of a
    /// scenario, of everything, and its own by default
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,

    /// Replay only the first N accesses [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_accesses: Option<u64>,

    /// For a trace that is larger than memory: read it twice, once for its pages and once for its
    /// accesses, and keep none of these. Not with the policy opt, which must know the future
    #[arg(long, conflicts_with_all = ["sample", "memcg_column", "tier"])]
    pub(super) stream: bool,

    /// Replay the pages of a recording each by itself, without readahead, as those of a trace, in
    /// the place of the machine that was recorded
    #[arg(long)]
    pub(super) page_by_page: bool,

    /// Permit sizes above the footprint of the trace, where every policy holds everything
    #[arg(long)]
    pub(super) beyond_footprint: bool,

    /// Set a variant of the engine for every policy; repeat for more. `--set help` lists keys and
    /// defaults
    #[arg(long, value_name = "KEY=VALUE", value_parser = settings::parser())]
    pub(super) set: Vec<Set>,

    /// Sizes of anonymous folios, as SIZE=WHEN: 16k to 2m, each always, inherit, madvise or never,
    /// as 64k=always; also enabled=WHEN, defrag=WHEN and swap-in=on. Repeat, or separate by commas
    /// [default: single pages only]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) thp: Vec<Thp>,

    /// Threads; they share one decoded trace [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,

    #[command(flatten)]
    pub(super) groups: GroupArgs,

    #[command(flatten)]
    pub(super) sample: SampleArgs,

    #[command(flatten)]
    pub(super) lab: LabArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(flatten)]
    pub(super) input: InputArgs,

    /// Set by programs that are not the command.
    #[arg(skip = crate::bars::watch())]
    pub(crate) watch: Watch,
}

impl ReplayArgs {
    /// How a trace is loaded.
    pub(super) fn load_options(&self, keep_time: bool) -> LoadOptions {
        LoadOptions {
            default_via: self.via.into(),
            keep_time,
            max_accesses: self.max_accesses,
            ..LoadOptions::default()
        }
    }

    /// The request of the library for a trace that was loaded, of whose flags `given` were.
    pub(super) fn loaded(&self, given: &GivenFlags) -> LoadedReplay<'static> {
        LoadedReplay {
            request: self.request(),
            has_policies: given.has("policy"),
            has_sizes: !self.memory.is_empty() || self.output.curve,
            is_curve: self.memory.is_empty() && self.output.curve,
            has_swappiness: given.has("swappiness"),
            foreign: FOREIGN.into_iter().find(|flag| given.has(flag)),
            page_by_page: self.page_by_page,
            plug_ins: &[],
        }
    }

    /// The request of the library.
    pub(super) fn request(&self) -> Replay {
        Replay {
            policies: self.policy.0.clone(),
            memory: match (self.memory.is_empty(), self.output.curve) {
                (true, true) => curve_sizes(),
                (true, false) => usual_sizes(),
                (false, _) => self.memory.clone(),
            },
            beyond_footprint: self.beyond_footprint,
            unlimited: self.groups.memcg_column,
            swap_max: self.swap_max.size().cloned(),
            swap: self.swap.swap.clone(),
            compression: self.swap.compression.clone(),
            kernel: self.kernel,
            swappiness: self.swappiness,
            set: self.set.clone(),
            thp: self.thp.clone(),
            seed: self.seed,
            windows: self.output.windows.map(|n| n as usize),
            bits: self.output.miss_bits.is_some(),
            lru_gen: self.output.lru_gen,
            swap_map: self.output.swap_map,
            threads: self.threads,
            watch: self.watch.clone(),
        }
    }
}

/// Memory cgroups.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory cgroups")]
pub struct GroupArgs {
    /// Each access comes from the memory cgroup that the trace says; --memory limits all of them
    /// together. Results are per group
    #[arg(long)]
    pub(super) memcg_column: bool,

    /// Limits of the groups, a TOML file with lines such as [group."/web"] and memory.max = "2G";
    /// also memory.min, low, high, swap.max. With a max or high in it --memory is max by default.
    /// In a scenario it replaces those of the groups that it names
    #[arg(long, value_name = "FILE")]
    pub(super) memcg_limits: Option<PathBuf>,
}

/// Flags that only scenarios have.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scenarios")]
pub struct LabArgs {
    /// Divide sizes, amounts of work and times by K, 1 or more
    #[arg(long, value_name = "K", default_value = "1", value_parser = parse_scale)]
    pub(super) scale: f64,

    /// Check what must hold at every sample: memory, requests, bytes and pressure add up
    #[arg(long)]
    pub(super) check: bool,

    /// Replay traces on a machine with tiers of memory, as NAME=SIZE: dram, cxl, pmem or
    /// remote-numa, and a size as for --memory. Repeat, the fastest first; the CPU is on it.
    /// --scale K makes the periods of tiering K times shorter, for a trace that stands for one K
    /// times as large
    #[arg(long, value_name = "NAME=SIZE")]
    pub(super) tier: Vec<Tier>,

    /// With --tier, of a trace without times: what the program does between two accesses, in
    /// nanoseconds [default: 100]
    #[arg(long, value_name = "NS", requires = "tier", value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    pub(super) access_ns: Option<u64>,

    /// Policies of promotion, in the place of the scenario's own: mru, latency, latency+limit,
    /// latency+limit+auto, two-touch, two-touch-literal, combined, oracle
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) promotion: Vec<PromotionPolicy>,

    /// Write the time series into a file, comma-separated; for one scenario and one policy
    #[arg(long, value_name = "FILE")]
    pub(super) series: Option<PathBuf>,
}

/// Flags for the output: its form, and where it goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print JSON; the schema is in docs/reference/replay.md, of scenarios in
    /// docs/reference/replay-scenario.md
    #[arg(long)]
    pub(super) json: bool,

    /// Print comma-separated values
    #[arg(long, conflicts_with_all = ["json", "curve", "lru_gen", "swap_map"])]
    pub(super) csv: bool,

    /// Write the result into a file, whole or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Write the result as a page of HTML, too, which needs nothing else; `refault report` makes
    /// one that says more
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    /// Write the result as OpenMetrics text, too
    #[arg(long, value_name = "FILE")]
    pub(super) metrics: Option<PathBuf>,

    /// Draw hit rate against memory, 80 columns wide
    #[arg(long, conflicts_with = "json")]
    pub(super) curve: bool,

    /// Hit rate in N equal windows of the trace
    #[arg(long, value_name = "N", conflicts_with = "csv", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) windows: Option<u32>,

    /// Print all counters and sizes under their kernel names; columns with --csv, always there with
    /// --json
    #[arg(long)]
    pub(super) vmstat: bool,

    /// Print the generations of multi-gen LRU at the end, as lru_gen_full in debugfs does
    #[arg(long)]
    pub(super) lru_gen: bool,

    /// Show the clusters of the swap devices at the end (of a scenario: before the last task gives
    /// its memory back): lists by order, usage, and a picture; with --json as numbers
    #[arg(long)]
    pub(super) swap_map: bool,

    /// Write one bit an access, least significant first, 1 = miss; for one trace, policy and size
    #[arg(long, value_name = "FILE")]
    pub(super) miss_bits: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether the output is read by programs.
    pub(super) fn is_for_programs(&self) -> bool {
        self.json || self.csv
    }
}

/// `--via`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ViaArg {
    /// As mmap does.
    Map,
    /// As read and write do.
    Fd,
}

impl From<ViaArg> for Via {
    fn from(via: ViaArg) -> Via {
        match via {
            ViaArg::Map => Via::Map,
            ViaArg::Fd => Via::Fd,
        }
    }
}

/// `--swap-max`.
#[derive(Clone, Debug)]
pub enum SwapMax {
    /// No limit but the device.
    Max,
    /// Limit of this size.
    Size(Size),
}

impl FromStr for SwapMax {
    type Err = String;

    fn from_str(text: &str) -> Result<SwapMax, String> {
        match text {
            "max" => Ok(SwapMax::Max),
            _ => text.parse().map(SwapMax::Size).map_err(|e| format!("{e}, or max")),
        }
    }
}

impl SwapMax {
    /// The size, if there is a limit.
    pub(crate) fn size(&self) -> Option<&Size> {
        match self {
            SwapMax::Max => None,
            SwapMax::Size(size) => Some(size),
        }
    }

    /// The limit in pages.
    pub(crate) fn pages(&self, page_size: u32, footprint_pages: u64) -> u64 {
        match self {
            SwapMax::Max => u64::MAX,
            SwapMax::Size(size) => size.pages(page_size, footprint_pages),
        }
    }
}
