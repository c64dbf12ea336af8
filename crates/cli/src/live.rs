//! Where runs and recordings that are under way are found: a file for each, by the number of its
//! process.

use crate::Failure;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The file of this process, by which `refault top` finds it. It goes when this is dropped, and its
/// directory with the last file.
pub struct LiveFile(Option<PathBuf>);

/// Tries to make a file in a directory that other runs remove when they end.
const TRIES: u32 = 10;

impl LiveFile {
    /// Makes the directory and an empty file, which its owner writes. The folder that the directory
    /// is in must be there: a name that the environment has wrong is said and not made.
    pub fn new() -> Result<LiveFile, Failure> {
        remove_stale();
        let Some((dir, variable)) = directory() else { return Ok(LiveFile(None)) };
        let file = dir.join(format!("{}.prom", std::process::id()));
        for _ in 0..TRIES {
            if let Err(e) = fs::DirBuilder::new().mode(0o700).create(&dir)
                && e.kind() == ErrorKind::NotFound
            {
                let folder = dir.parent().unwrap_or(&dir).display();
                return Err(format!("{variable} {folder}: is not there; make that folder, or name another").into());
            }
            // From now on the directory is not empty, and nobody removes it.
            match fs::File::create(&file) {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                // A run that `refault top` cannot find goes on.
                _ => break,
            }
        }
        Ok(LiveFile(Some(file)))
    }

    /// Where it is; none: there is no place for it.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        let Some(file) = &self.0 else { return };
        _ = fs::remove_file(file);
        // With files of other runs in it, it stays.
        _ = file.parent().map(fs::remove_dir);
    }
}

/// A command as it is shown: its first words.
pub fn shown(command: &[std::ffi::OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ").chars().take(200).collect()
}

/// The directory of the files, and the variable that says where; none: it belongs to someone else.
fn directory() -> Option<(PathBuf, &'static str)> {
    let own = fs::metadata("/proc/self").ok()?.uid();
    // After `su` the folder may be that of the user before, which is gone with them.
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_dir());
    let found = match runtime {
        Some(dir) => (dir.join("refault"), "XDG_RUNTIME_DIR"),
        None => (std::env::temp_dir().join(format!("refault-{own}")), "TMPDIR"),
    };
    match fs::symlink_metadata(&found.0) {
        Ok(there) => (there.is_dir() && there.uid() == own).then_some(found),
        Err(_) => Some(found),
    }
}

/// Removes the files of runs that were killed.
fn remove_stale() {
    for (pid, path) in files() {
        if !is_running(pid) {
            _ = fs::remove_file(path);
        }
    }
}

fn is_running(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

/// Runs under way: the process id of each, and its file. Files of killed runs are passed over, as
/// are those that nothing is written to yet.
pub fn runs() -> Vec<(u32, PathBuf)> {
    let mut all = files();
    all.retain(|(pid, path)| is_running(*pid) && fs::metadata(path).is_ok_and(|file| file.len() > 0));
    all.sort();
    all
}

/// All files, and the processes that they are named for.
fn files() -> Vec<(u32, PathBuf)> {
    let Some(entries) = directory().and_then(|(dir, _)| fs::read_dir(dir).ok()) else { return Vec::new() };
    let run = |path: PathBuf| {
        let pid = path.file_stem()?.to_str()?.parse().ok()?;
        (path.extension()? == "prom").then_some((pid, path))
    };
    entries.filter_map(|entry| run(entry.ok()?.path())).collect()
}
