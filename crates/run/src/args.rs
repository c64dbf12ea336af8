//! The flags of `refault run`.

use clap::{Args, ValueEnum};
use refault::memory_size::Size;
use refault_cli::Failure;
use refault_mm::{Kernel, Policy};
use refault_pager::store::{Codec, Pool, nameless_file, swap_directory};
use refault_pager::tree::TreeConfig;
use refault_pager::{PoolConfig, RegionConfig};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const DETAILS: &str = "\
What does not fit in --memory-max is in a compressed pool, and what does not shrink, or has been there longest, in a swap file. The pool \
is part of --memory-max: without a file (--swap-file none) a program that has twice as much memory works in a sixth of the limit if \
its pages shrink to less than half, and not at all if they do not. It comes back when it is touched. The program needs no change and notices nothing but the time.

An experiment still: stress tests of several threads find every byte, but they have run for an hour or two, not days, on one kernel.

Sizes are bytes with K, M, G or T (powers of 1024), or pages (4096p).

Limited is anonymous memory (heap, stacks of threads, what is mapped without a file) of the program and of all processes that it starts \
together, with the pool and the pager's own tables. Files, which the kernel caches and drops by itself, are not.

Exit status: that of the program; if a signal ended it, refault ends by the same. 2: it could not be run, or what it ended well with could not be written, and one line says why.

Examples:
  A sort in a tenth of the memory that it asks for
    refault run --memory-max 100M -- sort -S 1G big.txt -o sorted.txt
  The swap file on another disk, figures for machines
    refault run --memory-max 1G --swap-max 8G --pool zstd --swap-file /mnt/fast --json run.json -- python3 job.py
  What would other policies and sizes have made of it?
    refault run --memory-max 1G --swap-max 8G --record job.parquet -- ./job
    refault replay job.parquet --memory 25%,50%

crates/run/docs/run.md says more; `refault doctor` says what this machine allows.";

/// Flags of `refault run`.
#[derive(Debug, Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct RunArgs {
    /// Memory for the program and all that it starts, with the pool and the pager: bytes with K, M,
    /// G or T; at least 4M
    #[arg(long, value_name = "SIZE", value_parser = Size::absolute)]
    memory_max: Size,

    /// Beyond so much, counted likewise, the thread that touches memory that is not in place waits,
    /// the longer the further beyond
    #[arg(long, value_name = "SIZE", value_parser = Size::absolute)]
    memory_high: Option<Size>,

    /// How much of the program's memory may be out of memory, before compression [default: four
    /// times --memory-max]
    #[arg(long, value_name = "SIZE", value_parser = Size::absolute)]
    swap_max: Option<Size>,

    /// The codec of the compressed pool; none: no pool, all goes to the file of --swap-file
    #[arg(long, value_name = "CODEC", default_value = "lz4")]
    pool: PoolArg,

    /// Part of --memory-max that the pool may take, at most three quarters [default: a fifth;
    /// without a swap file half; with --overhead-beside as much as --memory-max]
    #[arg(long, value_name = "SIZE", value_parser = Size::absolute)]
    pool_max: Option<Size>,

    /// Whether the engine decides, while it runs, how much of that the pool gets, from what loads
    /// from the pool and from the swap file cost; false: always all of it
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pool_adapts: bool,

    /// The pool and the pager's own memory come beside --memory-max and not out of it, as zram and
    /// the kernel's tables do beside the limit of a cgroup. The pool has all that it may have then
    #[arg(long)]
    pub(crate) overhead_beside: bool,

    /// A directory for a swap file, which has no name there and is gone with the run; none: no
    /// file, all that leaves memory is in the pool [default: TMPDIR, /var/tmp or /tmp, the first
    /// that is on a disk]
    #[arg(long, value_name = "DIR")]
    swap_file: Option<PathBuf>,

    /// On a machine with at most so many processors, keep those without work from halting while
    /// pages are touched that are not in place, and faster than a page in 1/4 ms; 0: never. It
    /// takes the right to open /dev/cpu_dma_latency
    #[arg(long, value_name = "N", default_value_t = RegionConfig::AWAKE_CPUS)]
    awake_cpus: usize,

    /// Policy that decides what leaves memory; the names are those of `refault replay`
    #[arg(long, value_name = "POLICY", default_value = "mglru", value_parser = policy)]
    pub(crate) policy: Policy,

    /// The kernel whose rules that policy follows: 2022-v14, 6.1, 6.6-rc, 6.6, 6.12, 6.18 or 7.2;
    /// list prints what each is
    #[arg(long, value_name = "NAME", default_value = "6.12", value_parser = refault_cli::kernel_parser())]
    kernel: Kernel,

    /// Write the figures as a JSON object to a file; - is standard output. The schema is in
    /// crates/run/docs/run.md
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write what was touched as a trace that `refault replay` takes
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// The files of --json, --record and --metrics have the arguments of the PROGRAM, too, which
    /// may be passwords, and not its name alone
    #[arg(long)]
    command_line: bool,

    /// Write the figures as OpenMetrics text to a file, anew each second and at the end, as the
    /// textfile collector of Prometheus' node exporter reads them
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,

    /// No line of figures at the end
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// The program and its arguments, behind --
    #[arg(required = true, last = true, value_name = "PROGRAM [ARGUMENTS]")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PoolArg {
    Lz4,
    Zstd,
    None,
}

fn policy(name: &str) -> Result<Policy, String> {
    let known = || Policy::ALL.map(Policy::name).join(", ");
    let found = Policy::ALL.into_iter().find(|p| p.name() == name);
    found.ok_or_else(|| format!("known are {}", known()))
}

const MOST_BYTES: u64 = RegionConfig::MAX_BYTES as u64;

fn bytes(flag: &str, size: &Size) -> Result<usize, Failure> {
    match size.pages(4096, 0).checked_mul(4096) {
        Some(bytes) if bytes <= MOST_BYTES => Ok(bytes as usize),
        _ => Err(format!("{flag} {size}: at most 1T").into()),
    }
}

/// Fails where the swap file could not be made: the error names the flag.
fn check_directory(dir: &Path) -> Result<(), Failure> {
    if !dir.is_dir() {
        return Err(format!("--swap-file {}: is no directory", dir.display()).into());
    }
    let say = |e| {
        format!("--swap-file {}: no file can be made there ({e}); name a directory on a disk, or none", dir.display())
    };
    Ok(nameless_file(dir).map(drop).map_err(say)?)
}

impl RunArgs {
    /// Where the swap file is made, if there is to be one.
    pub(crate) fn swap_directory(&self) -> Option<PathBuf> {
        match &self.swap_file {
            Some(dir) if dir.as_os_str() == "none" => None,
            Some(dir) => Some(dir.clone()),
            None => swap_directory(),
        }
    }

    /// The program as files say it: its arguments may be passwords.
    pub(crate) fn said_words(&self) -> Vec<String> {
        let words = if self.command_line { &self.command[..] } else { &self.command[..1] };
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    pub(crate) fn config(&self) -> Result<TreeConfig, Failure> {
        let memory_max = bytes("--memory-max", &self.memory_max)?;
        let swap_max = match &self.swap_max {
            Some(size) => bytes("--swap-max", size)?,
            None => memory_max.saturating_mul(4).min(MOST_BYTES as usize),
        };
        let memory_high = self.memory_high.as_ref().map(|size| bytes("--memory-high", size)).transpose()?;
        let codec = match self.pool {
            PoolArg::Lz4 => Some(Codec::Lz4),
            PoolArg::Zstd => Some(Codec::Zstd),
            PoolArg::None => None,
        };
        let file = self.swap_directory();
        // A fifth is what zswap takes by default (max_pool_percent).
        let share = match (self.overhead_beside, file.is_some()) {
            (true, _) => 1,
            (false, true) => 5,
            (false, false) => 2,
        };
        let max_bytes = match &self.pool_max {
            Some(size) => bytes("--pool-max", size)?,
            None => memory_max / share,
        };
        if memory_max < RegionConfig::MIN_MEMORY {
            return Err(format!("--memory-max {}: at least 4M", self.memory_max).into());
        }
        if let (Some(high), Some(size)) = (memory_high, &self.memory_high)
            && high < RegionConfig::MIN_MEMORY
        {
            return Err(format!("--memory-high {size}: at least 4M").into());
        }
        if let (None, Some(size)) = (codec, &self.pool_max) {
            return Err(format!("--pool-max {size}: there is no pool with --pool none").into());
        }
        let pool_max = self.pool_max.as_ref().map_or_else(|| format!("of {max_bytes} bytes"), Size::to_string);
        if max_bytes < Pool::MIN_BYTES {
            return Err(format!("--pool-max {pool_max}: at least {}K", Pool::MIN_BYTES >> 10).into());
        }
        if !self.overhead_beside && max_bytes > memory_max / 4 * 3 {
            return Err(format!("--pool-max {pool_max}: is more than three quarters of --memory-max").into());
        }
        if codec.is_none() && file.is_none() && swap_max > 0 {
            return Err("--pool none needs --swap-file, or --swap-max 0".into());
        }
        if let Some(dir) = &file {
            check_directory(dir)?;
        }
        let memory = RegionConfig {
            memory_high: memory_high.unwrap_or(usize::MAX),
            swap_max,
            policy: self.policy,
            kernel: self.kernel,
            pool: codec.map(|codec| PoolConfig { codec, max_bytes }),
            pool_adapts: self.pool_adapts,
            overhead_beside: self.overhead_beside,
            swap_directory: file,
            awake_cpus: self.awake_cpus,
            ..RegionConfig::new(swap_max.max(4096), memory_max)
        };
        let record = match &self.record {
            Some(path) => {
                let beside = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(".".as_ref());
                Some(nameless_file(beside).map_err(|e| format!("--record {}: {e}", path.display()))?)
            }
            None => None,
        };
        Ok(TreeConfig { memory, record })
    }
}
