//! The flags of `refault verify`.

use crate::GivenFlags;
use crate::flags::memory::MaxMemoryArgs;
use crate::flags::size::Size;
use clap::Args;
use refault::verify::Verify;
use refault_mm::Policy;
use std::path::{Path, PathBuf};

/// Flags that only a play has.
const OF_PLAY: [&str; 3] = ["repeats", "max-accesses", "folder"];

/// Flags of `refault verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Recording that refault record wrote, or page cache events of io-tracer: these want --memory
    #[arg(required_unless_present = "play", conflicts_with = "play")]
    pub(super) recording: Option<PathBuf>,

    /// Play this trace, of any format, on the kernel of this machine, in a memory cgroup of its
    /// own, and compare with that; it takes root
    #[arg(long, value_name = "TRACE", requires = "memory", conflicts_with_all = ["read_ahead", "large_folios", "files_only"])]
    pub(super) play: Option<PathBuf>,

    /// Compare with this recording of the same program instead of the lab, access by access: what
    /// the kernel has with itself. Only accesses by descriptor to files that both access in the
    /// same order
    #[arg(
        long,
        value_name = "RECORDING",
        requires = "recording",
        conflicts_with_all = ["play", "memory", "policy", "read_ahead", "large_folios", "files_only"]
    )]
    pub(super) beside: Option<PathBuf>,

    /// The limit of the group: bytes with K, M, G or T (powers of 1024), pages (4096p), or percent
    /// of the pages that are touched (25%); with --play several, separated by commas [default: that
    /// of the recording]
    #[arg(long, short, value_name = "LIST", value_delimiter = ',')]
    pub(super) memory: Vec<Size>,

    /// How often each size is played, 1 to 100 times: the kernel differs from itself
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) repeats: u32,

    /// Play the first N accesses only [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_accesses: Option<u64>,

    /// Where the sparse file is made that is played on: a file system with a page cache of its own,
    /// and no tmpfs [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,

    /// lru, lru-2013, lru-none, lru-shadow, mglru or mglru-shadow [default: that of the kernel:
    /// mglru where it was on, else lru]
    #[arg(long, short, value_name = "NAME")]
    pub(super) policy: Option<String>,

    /// The largest window of readahead, in pages of 4 KiB (read_ahead_kb / 4); 0 is off [default:
    /// that of the device of each file]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(0..=65536))]
    pub(super) read_ahead: Option<u32>,

    /// The largest order of a folio of any file; 0: each page is one [default: as large as the
    /// recording has seen them of each file]
    #[arg(long, value_name = "ORDER", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub(super) large_folios: Option<u8>,

    /// Leave what the group had besides the files of the recording out of account
    #[arg(long)]
    pub(super) files_only: bool,

    /// Exit with status 1 unless the lab can be trusted for all that is compared (hit rate, misses,
    /// refaults, disk reads, single accesses) and no event was lost; with --beside and --play as
    /// docs/reference/record.md says
    #[arg(long)]
    pub(super) strict: bool,

    /// Print one JSON object; the schema is in docs/reference/record.md
    #[arg(long)]
    pub(super) json: bool,

    /// Write the result into a file, whole or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) max_memory: MaxMemoryArgs,
}

impl VerifyArgs {
    /// The recordings, or the trace that is played.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Path> {
        [&self.recording, &self.beside, &self.play].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Fails on a flag of `--play` without it.
    pub(super) fn check_play(&self, given: &GivenFlags) -> Result<(), String> {
        match OF_PLAY.iter().find(|flag| self.play.is_none() && given.has(flag)) {
            Some(flag) => {
                Err(format!("--{flag}: is for --play, and no trace is played here; leave it out, or add --play TRACE"))
            }
            None => Ok(()),
        }
    }

    /// The request of a comparison with the recorded kernel.
    pub(super) fn request(&self) -> Result<Verify, String> {
        let policy = self.policy()?;
        if self.memory.len() > 1 {
            return Err("--memory: a recording is verified with one limit; --play takes several".to_owned());
        }
        Ok(Verify {
            policy,
            kernel: None,
            memory: self.memory.first().cloned(),
            read_ahead: self.read_ahead,
            large_folios: self.large_folios,
            files_only: self.files_only,
        })
    }

    pub(super) fn policy(&self) -> Result<Option<Policy>, String> {
        let Some(name) = &self.policy else { return Ok(None) };
        let found = Policy::ALL.into_iter().find(|policy| policy.name() == name);
        found.map(Some).ok_or_else(|| {
            let names: Vec<_> = Policy::ALL.iter().map(|policy| policy.name()).collect();
            format!("--policy {name}: is none of {}", names.join(", "))
        })
    }
}
