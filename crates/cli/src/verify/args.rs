//! The flags of `refault verify`.

use super::load::Loaded;
use crate::flags::size::Size;
use clap::Args;
use refault_mm::{Config, Policy};
use std::path::{Path, PathBuf};

/// Flags of `refault verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// What refault record wrote
    pub(super) recording: PathBuf,

    /// The limit of the group [default: that of the recording]
    #[arg(long, short, value_name = "SIZE", value_parser = Size::absolute)]
    pub(super) memory: Option<Size>,

    /// The policy, by its name in refault replay [default: that of the recording's kernel: mglru
    /// where it was on, else lru]
    #[arg(long, short, value_name = "NAME")]
    pub(super) policy: Option<String>,

    /// read_ahead_kb in pages; 0 is off [default: that of the recording]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(0..=65536))]
    pub(super) read_ahead: Option<u32>,

    /// Leave what the group had besides the files of the recording out of account
    #[arg(long)]
    pub(super) files_only: bool,

    /// Exit with status 1 unless the lab is within its bounds
    #[arg(long)]
    pub(super) strict: bool,

    /// Print one JSON object; the schema is in docs/reference/record.md
    #[arg(long)]
    pub(super) json: bool,
}

/// What a recording is replayed with.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) policy: Policy,
    pub(super) config: Config,
    /// None: no limit.
    pub(super) memory_pages: Option<u64>,
    pub(super) files_only: bool,
}

impl VerifyArgs {
    /// Those of a recording without flags.
    pub(super) fn of(recording: &Path) -> VerifyArgs {
        VerifyArgs {
            recording: recording.to_owned(),
            memory: None,
            policy: None,
            read_ahead: None,
            files_only: false,
            strict: false,
            json: true,
        }
    }

    pub(super) fn settings(&self, loaded: &Loaded) -> Result<Settings, String> {
        let recording = &loaded.recording;
        let policy = match &self.policy {
            Some(name) => Policy::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| {
                let names: Vec<_> = Policy::ALL.iter().map(|p| p.name()).collect();
                format!("--policy {name}: is none of {}", names.join(", "))
            })?,
            None if recording.lru_gen => Policy::Mglru,
            None => Policy::Lru,
        };
        let mut config = Config::new(policy);
        if let Some(swappiness) = recording.swappiness {
            config.swappiness = swappiness.min(200);
        }
        config.readahead.file_pages = self.read_ahead.or(recording.read_ahead_pages).unwrap_or(32).min(1 << 16);
        config.readahead.history = true;
        let has_usage = recording.series.column("usage").is_some() && recording.group.is_some();
        // What the kernel takes for itself is in the usage of the group.
        config.memcg.charge_kernel &= self.files_only || !has_usage;
        config.check()?;
        let memory = self.memory.as_ref().map(|size| size.pages(4096, 0));
        if memory == Some(0) {
            return Err("--memory: is less than one page".to_owned());
        }
        let memory_pages = memory.or(recording.memory_max.map(|bytes| bytes / 4096));
        Ok(Settings { policy, config, memory_pages, files_only: self.files_only || !has_usage })
    }
}
