//! The flags of `refault report`.

use crate::flags::kernel;
use crate::flags::size::Size;
use crate::replay::policy::PolicyList;
use crate::replay::{SwapMax, ViaArg};
use crate::trace_cmd::InputArgs;
use crate::{GivenFlags, Watch};
use clap::Args;
use refault::report::ReportRequest;
use refault::runner::parse_scale;
use refault_mm::Kernel;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  How much memory is enough for a trace, which policy, who takes it, when?
    refault report sqlite.parquet -o sqlite.html --open
  With the limit that there is today
    refault report job.parquet --limit 512M -o job.html
  What a change has brought
    refault report before.json after.json -o change.html
  What was in an old report, beside a new recording
    refault report old.html new.parquet -o both.html

docs/reference/report.md says what each page holds.";

/// Flags of `refault report`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ReportArgs {
    /// Traces and recordings, scenarios (.toml), JSON of replay, size, bench, verify and run, or
    /// pages that this command made; several stand beside each other
    #[arg(value_name = "INPUT", required = true)]
    pub(super) inputs: Vec<PathBuf>,

    /// The page, written whole or not at all
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub(super) output: PathBuf,

    /// Open it in a browser (xdg-open)
    #[arg(long)]
    pub(super) open: bool,

    /// Traces: today's limit, a line in the charts; details are of that size. Bytes with K, M, G or
    /// T, pages (4096p), or percent of the footprint (25%) [default: that of a recording]
    #[arg(long, value_name = "SIZE")]
    pub(super) limit: Option<Size>,

    /// Traces: the size that details are of [default: --limit, or the knee of the curve]
    #[arg(long, value_name = "SIZE")]
    pub(super) at: Option<Size>,

    /// Traces: the sizes of the curve [default: 16 sizes from 2% to 100%]
    #[arg(long, short, value_name = "LIST", value_delimiter = ',')]
    pub(super) memory: Vec<Size>,

    /// Policies, as in replay; of a scenario its own by default
    #[arg(long, short, value_name = "LIST", default_value = "lru,mglru,opt")]
    pub(super) policy: PolicyList,

    /// The kernel whose rules the engine follows: 2022-v14, 6.1, 6.6-rc, 6.6, 6.12, 6.18 or 7.2;
    /// list prints what each is [default: 6.12; of a recording and of a scenario its own]
    #[arg(long, value_name = "NAME", value_parser = kernel::parser())]
    pub(super) kernel: Option<Kernel>,

    /// Traces: swap for anonymous memory, a size or max
    #[arg(long, value_name = "SIZE", default_value = "max")]
    pub(super) swap_max: SwapMax,

    /// Traces: how file pages are touched where the trace does not say
    #[arg(long, value_name = "HOW", default_value = "fd")]
    pub(super) via: ViaArg,

    /// Random seed; by default a scenario uses its own
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,

    /// Traces: only the first N accesses [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_accesses: Option<u64>,

    /// Scenarios: divide sizes, amounts of work and times by K
    #[arg(long, value_name = "K", default_value = "1", value_parser = parse_scale)]
    pub(super) scale: f64,

    /// Traces with memory cgroups: limits of the groups, a TOML file as in replay
    #[arg(long, value_name = "FILE")]
    pub(super) memcg_limits: Option<PathBuf>,

    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,

    #[command(flatten)]
    pub(super) input: InputArgs,

    /// Set by programs that are not the command.
    #[arg(skip = crate::bars::watch())]
    pub(crate) watch: Watch,
}

impl ReportArgs {
    /// The request of the library, of whose flags `given` were.
    pub(super) fn request(&self, given: &GivenFlags) -> ReportRequest {
        ReportRequest {
            policies: self.policy.0.clone(),
            memory: self.memory.clone(),
            limit: self.limit.clone(),
            at: self.at.clone(),
            kernel: self.kernel,
            swap_max: self.swap_max.size().cloned(),
            via: self.via.into(),
            seed: self.seed,
            max_accesses: self.max_accesses,
            limits: self.memcg_limits.clone(),
            threads: self.threads,
            // A flag may be for another of several inputs.
            flags: if self.inputs.len() == 1 { given.partial() } else { Vec::new() },
            watch: self.watch.clone(),
        }
    }
}
