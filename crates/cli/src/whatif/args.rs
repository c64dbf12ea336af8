//! The flags of `refault whatif`.

use crate::flags::settings::{self, Set};
use crate::flags::size::Size as MemorySize;
use crate::flags::time::time;
use crate::flags::{kernel, memory};
use crate::replay::{ViaArg, is_scenario};
use crate::trace_cmd::InputArgs;
use crate::{Failure, GivenFlags, Watch};
use clap::Args;
use refault::replay::swap::Compression;
use refault::runner::parse_scale;
use refault::size::policy_of_groups;
use refault::whatif::{FailIf, FileAdvice, LimitChange, ReplaySwap, WhatIf, WhatIfInput, WhatIfRequest, whatif};
use refault_lab::scenario::Scenario;
use refault_mm::{Kernel, Policy};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

const DETAILS: &str = "\
Without a list, each of these is tried by itself: other kernels, the other kind of lists, limits of 50%, 75%, 125% and \
150% of today's, and what the input has of swappiness, swap and readahead. With lists, these are, crossed.

Exit status: 0; 1 when a --fail-if holds; 2 for a mistake.

Examples:
  refault whatif web.parquet --kernel 6.18 --fail-if 'misses>+5%'
  refault whatif web.parquet --kernel 6.12,6.18 --limit 75%,100%
  refault whatif data/sqlite.parquet --memory 8M --from-kernel 6.1 --from-policy lru
  refault whatif heap.parquet --swap none,zswap,disk --compression ratio=3

docs/reference/whatif.md says more.";

/// Flags of `refault whatif`.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = DETAILS)]
pub struct WhatIfArgs {
    /// A trace of any format that `refault trace info` reads, what `refault record` wrote, or a
    /// scenario (.toml)
    #[arg(value_name = "INPUT")]
    pub(super) subject: PathBuf,

    /// Kernels to try, by their profiles: 6.1, 6.6, 6.12, 6.18, 7.2, 2022-v14, 6.6-rc; list prints
    /// what each is
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = kernel::parser())]
    kernel: Vec<Kernel>,

    /// Policies to try
    #[arg(long, short, value_name = "LIST", value_delimiter = ',', value_parser = policy_of_groups)]
    policy: Vec<Policy>,

    /// Limits to try: bytes (64M), pages (4096p), or percent of today's
    #[arg(long, short, value_name = "LIST", value_delimiter = ',', value_parser = LimitChange::from_str)]
    limit: Vec<LimitChange>,

    /// Swappiness to try, 0 to 200
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=200))]
    swappiness: Vec<u32>,

    /// Largest windows of readahead to try, of recordings: sizes such as 0, 128K, 8M
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = MemorySize::absolute)]
    read_ahead: Vec<MemorySize>,

    /// Kinds of swap to try: none, zram, disk (a solid-state one) and zswap; of traces with a size
    /// if need be, as zram:2G
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ReplaySwap::from_str)]
    swap: Vec<ReplaySwap>,

    /// Advice to try, of recordings: random, which MADV_RANDOM and POSIX_FADV_RANDOM are, for all
    /// files
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = FileAdvice::from_str)]
    advice: Vec<FileAdvice>,

    /// min_ttl_ms to try, of scenarios under mglru: times such as 1s, 500ms
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = time)]
    min_ttl: Vec<Duration>,

    /// A variant of the engine to try; repeat for more. `--set help` lists keys and defaults
    #[arg(long, value_name = "KEY=VALUE", value_parser = settings::parser())]
    set: Vec<Set>,

    /// Exit with status 1 if a change makes such a difference, METRIC>+N% or METRIC<-N%: misses,
    /// read_bytes, hit_rate (in points); of scenarios ops_per_s, p99, some, swap_ins_per_s
    #[arg(long, value_name = "DIFFERENCE", value_parser = FailIf::from_str)]
    pub(super) fail_if: Vec<FailIf>,

    /// Today's limit: a size as for --limit, percent of what is touched [default: as recorded, of a
    /// trace 50%]
    #[arg(long, short, value_name = "SIZE")]
    memory: Option<MemorySize>,

    /// Today's kernel [default: as recorded, of a trace 6.12]
    #[arg(long, value_name = "NAME", value_parser = kernel::parser())]
    from_kernel: Option<Kernel>,

    /// Today's policy [default: as recorded, of a trace mglru]
    #[arg(long, value_name = "POLICY", value_parser = policy_of_groups)]
    from_policy: Option<Policy>,

    /// Today's swap, of traces [default: zram of any size]
    #[arg(long, value_name = "KIND[:SIZE]")]
    from_swap: Option<ReplaySwap>,

    /// Compression of the pages of traces on zram and zswap, as in `refault replay`
    #[arg(long, value_name = "LIST")]
    compression: Option<Compression>,

    /// Take a recording page by page, without its machine and readahead, and with the touches of
    /// anonymous memory that it has
    #[arg(long)]
    page_by_page: bool,

    /// Scenarios: the group whose figures are compared, and whose memory.max is --limit of
    /// [default: the machine, and the only group with a memory.max]
    #[arg(long, short, value_name = "PATH")]
    group: Option<String>,

    /// Scenarios: divide sizes, amounts of work and times by K, 1 or more
    #[arg(long, value_name = "K", default_value = "1", value_parser = parse_scale)]
    scale: f64,

    /// Runs of each machine, from which the uncertainty comes [default: 5, of scenarios 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    starts: Option<u16>,

    /// The first seed [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// How file pages are touched where a trace does not say: by mapping or by descriptor
    #[arg(long, value_name = "HOW", default_value = "fd")]
    via: ViaArg,

    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Print JSON; the schema is in docs/reference/whatif.md
    #[arg(long)]
    pub(super) json: bool,

    /// Write the result into a file, whole or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) input: InputArgs,

    /// Set by programs that are not the command.
    #[arg(skip = crate::bars::watch())]
    watch: Watch,
}

impl WhatIfArgs {
    /// The result, by flags of which `given` were.
    pub(super) fn result(&self, given: &GivenFlags) -> Result<WhatIf, Failure> {
        let file = self.subject.display().to_string();
        if is_scenario(&self.subject) {
            if given.has("via") {
                return Err(format!("--via: is for a trace, and {file} is a scenario").into());
            }
            memory::advise_scenario(given.has("scale"));
            let scenario = Scenario::load(&self.subject)?;
            self.input.note_traces(&scenario);
            return whatif(WhatIfInput::Scenario { scenario: &scenario, file: &file }, &self.request(), &self.watch);
        }
        if given.has("scale") {
            return Err(format!("--scale: is for a scenario, and {file} is none").into());
        }
        let source = self.input.open(&self.subject)?;
        if source.header().recording.is_some() && given.has("via") {
            return Err(format!("--via: {file} is a recording, which says it itself").into());
        }
        whatif(WhatIfInput::Source(source), &self.request(), &self.watch)
    }

    fn request(&self) -> WhatIfRequest {
        WhatIfRequest {
            memory: self.memory.clone(),
            from_kernel: self.from_kernel,
            from_policy: self.from_policy,
            kernels: self.kernel.clone(),
            policies: self.policy.clone(),
            limits: self.limit.clone(),
            swappiness: self.swappiness.clone(),
            read_ahead: self.read_ahead.clone(),
            swap: self.swap.clone(),
            advice: self.advice.clone(),
            min_ttl: self.min_ttl.clone(),
            from_swap: self.from_swap.clone(),
            compression: self.compression.clone(),
            page_by_page: self.page_by_page,
            set: self.set.clone(),
            via: self.via.into(),
            starts: self.starts,
            group: self.group.clone(),
            scale: self.scale,
            seed: self.seed,
            threads: self.threads,
        }
    }
}
