//! Where runs that are under way are found: a file for each, by the number of its process.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The directory of the files; none: it belongs to someone else.
pub(crate) fn directory() -> Option<PathBuf> {
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

/// The runs that are under way: the number of each, and its file. Files of runs that were killed
/// are passed over.
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
