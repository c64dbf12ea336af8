//! Where runs and recordings that are under way are found: a file for each, by the number of its
//! process.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The file of this process, by which `refault top` finds it. It goes when this is dropped.
pub(crate) struct LiveFile(Option<PathBuf>);

impl LiveFile {
    /// Makes the directory; the file is written by its owner.
    pub(crate) fn new() -> LiveFile {
        LiveFile(directory().map(|dir| {
            // Who cannot be found still runs.
            _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
            dir.join(format!("{}.prom", std::process::id()))
        }))
    }

    /// Where it is; none: there is no place for it.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        self.0.iter().for_each(|file| _ = fs::remove_file(file));
    }
}

/// A command as it is shown: its first words.
pub(crate) fn shown(command: &[std::ffi::OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ").chars().take(200).collect()
}

/// The directory of the files; none: it belongs to someone else.
fn directory() -> Option<PathBuf> {
    let own = std::fs::metadata("/proc/self").ok()?.uid();
    let dir = match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir).join("refault"),
        None => std::env::temp_dir().join(format!("refault-{own}")),
    };
    match std::fs::symlink_metadata(&dir) {
        Ok(there) => (there.is_dir() && there.uid() == own).then_some(dir),
        Err(_) => Some(dir),
    }
}

/// What is under way: the number of each, and its file. Files of what was killed are passed over.
pub(crate) fn runs() -> Vec<(u32, PathBuf)> {
    let Some(entries) = directory().and_then(|dir| std::fs::read_dir(dir).ok()) else { return Vec::new() };
    let run = |path: PathBuf| {
        let pid = path.file_stem()?.to_str()?.parse().ok()?;
        let is_there = PathBuf::from(format!("/proc/{pid}")).exists();
        (is_there && path.extension()? == "prom").then_some((pid, path))
    };
    let mut all: Vec<_> = entries.filter_map(|entry| run(entry.ok()?.path())).collect();
    all.sort();
    all
}
