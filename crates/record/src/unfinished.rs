//! The file of a recording that has not ended.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The unfinished file is removed unless somebody keeps it: there is nothing in it that could be
/// read.
pub(crate) struct Unfinished {
    part: PathBuf,
    kept: bool,
}

impl Unfinished {
    /// Of this output.
    pub(crate) fn new(output: &Path) -> Unfinished {
        let mut part = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned()).into_os_string();
        part.push(".part");
        Unfinished { part: part.into(), kept: false }
    }

    /// Nobody else may read it: it has names of files, and says who used them.
    pub(crate) fn keep_private(&self) -> Result<(), String> {
        fs::set_permissions(&self.part, fs::Permissions::from_mode(0o600))
            .map_err(|e| format!("{}: cannot be kept from others: {e}", self.part.display()))
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
