//! A comparison as users ask for it: every field has the default of the command.

use crate::memory_size::Size;
use crate::recording::{LoadedRecording, Settings};
use refault_mm::{Kernel, Policy};

/// Request of a comparison with the recorded kernel.
#[derive(Clone, Debug, Default)]
pub struct Verify {
    /// The policy; none: that of the recorded kernel.
    pub policy: Option<Policy>,
    /// The kernel whose rules hold; none: the recorded one.
    pub kernel: Option<Kernel>,
    /// The limit of the group; percent are of the pages that are touched. None: the recorded one.
    pub memory: Option<Size>,
    /// The largest window of readahead, in pages of 4 KiB; 0 is off. None: that of the device of
    /// each file.
    pub read_ahead: Option<u32>,
    /// The largest order of a folio of any file. None: as large as the recording has seen them of
    /// each.
    pub large_folios: Option<u8>,
    /// Leave the room of what the group had besides files out of account.
    pub files_only: bool,
}

impl Verify {
    /// Settings of the replay of a recording.
    pub(super) fn settings(&self, loaded: &LoadedRecording) -> Result<Settings, String> {
        let mut settings = Settings::of(&loaded.recording, self.policy, self.kernel, self.files_only);
        let readahead = &mut settings.config.readahead.file_pages;
        *readahead = self.read_ahead.unwrap_or(*readahead);
        (settings.large_folios, settings.read_ahead) = (self.large_folios, self.read_ahead);
        settings.config.check()?;
        let memory = self.memory.as_ref().map(|size| (size, size.pages(4096, loaded.footprint_pages())));
        if let Some((size, 0)) = memory {
            return Err(format!("--memory {size}: is less than one page; give at least 1p"));
        }
        settings.memory_pages = memory.map(|(_, pages)| pages).or(settings.memory_pages);
        Ok(settings)
    }
}
