//! The flags of `refault verify`.

use crate::flags::size::Size;
use crate::recording::{Loaded, Settings};
use clap::Args;
use refault_mm::Policy;
use std::path::PathBuf;

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

impl VerifyArgs {
    pub(super) fn settings(&self, loaded: &Loaded) -> Result<Settings, String> {
        let mut settings = Settings::of(&loaded.recording, self.policy()?, None, self.files_only);
        let readahead = &mut settings.config.readahead.file_pages;
        *readahead = self.read_ahead.unwrap_or(*readahead);
        settings.config.check()?;
        let memory = self.memory.as_ref().map(|size| size.pages(4096, 0));
        if memory == Some(0) {
            return Err("--memory: is less than one page".to_owned());
        }
        settings.memory_pages = memory.or(settings.memory_pages);
        Ok(settings)
    }

    fn policy(&self) -> Result<Option<Policy>, String> {
        let Some(name) = &self.policy else { return Ok(None) };
        let found = Policy::ALL.into_iter().find(|policy| policy.name() == name);
        found.map(Some).ok_or_else(|| {
            let names: Vec<_> = Policy::ALL.iter().map(|policy| policy.name()).collect();
            format!("--policy {name}: is none of {}", names.join(", "))
        })
    }
}
