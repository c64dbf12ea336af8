//! The file of a recording that has not ended.

use refault_trace::PartFile;
use std::fs;
use std::path::{Path, PathBuf};

/// The unfinished file is removed unless somebody keeps it: there is nothing in it that could be
/// read.
pub(crate) struct Unfinished {
    part: PathBuf,
    kept: bool,
}

impl Unfinished {
    /// Part file of this output.
    pub(crate) fn new(output: &Path) -> Result<Unfinished, String> {
        let part = PartFile::part_of(output).map_err(|e| e.to_string())?;
        Ok(Unfinished { part, kept: false })
    }

    /// There is something in it.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// An error that says where what was recorded is.
    pub(crate) fn with_hint(&self, error: String) -> String {
        let full = ["No space left", "Disk quota exceeded", "File too large"].iter().any(|what| error.contains(what));
        let what_to_do = if full { "; make room, or name a file of another disk with -o" } else { "" };
        let error = error + what_to_do;
        match self.kept && self.part.exists() {
            true => format!("{error}; what was recorded until then is in {}", self.part.display()),
            false => error,
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.part);
        }
    }
}
