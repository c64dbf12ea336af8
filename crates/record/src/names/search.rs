//! Names of files that nobody has open any more, by their numbers in folders.

use super::{KnownFile, Names, device, pages};
use crate::event::Inode;
use rustc_hash::FxHashMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Entries of folders that are looked at to find names, at most, and the longest time for it.
const MOST_ENTRIES: usize = 4_000_000;
const LONGEST: Duration = Duration::from_secs(10);

impl Names {
    /// Looks for what has no name yet in the folders where it may be.
    pub fn search(&mut self) {
        let mut wanted: FxHashMap<Inode, Vec<usize>> = FxHashMap::default();
        let nameless = |file: &KnownFile| file.path.is_none() && file.memory_of.is_none() && !file.shmem;
        for (at, file) in self.files.iter().enumerate().filter(|(_, file)| nameless(file)) {
            let dev = file.inode.dev;
            // A file that cannot be opened by its number is deleted, and in no folder.
            let can_be = self.mounts.by_number(dev).is_none() || self.by_number(file.inode).is_some();
            if self.mounts.has(dev) && can_be {
                wanted.entry(file.inode).or_default().push(at);
            }
        }
        let mut roots = std::mem::take(&mut self.roots);
        let devices: rustc_hash::FxHashSet<u32> = wanted.keys().map(|inode| inode.dev).collect();
        roots.extend(self.mounts.places(&devices));
        let (mut entries, until) = (0, Instant::now() + LONGEST);
        for root in roots {
            let mut folders = vec![root];
            while let Some(folder) = folders.pop() {
                if wanted.is_empty() || entries > MOST_ENTRIES || Instant::now() > until {
                    return;
                }
                let Ok(dev) = fs::metadata(&folder).map(|m| device(&m)) else { continue };
                for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                    entries += 1;
                    if entry.file_type().is_ok_and(|t| t.is_dir()) && same_device(&entry.path(), dev) {
                        folders.push(entry.path());
                    } else if let Some(found) = wanted.remove(&Inode { dev, ino: entry.ino() }) {
                        let length = fs::metadata(entry.path()).ok().map(|m| pages(&m));
                        for at in found {
                            let file = &mut self.files[at];
                            (file.path, file.pages) = (Some(entry.path()), file.pages.or(length));
                        }
                    }
                }
            }
        }
    }
}

fn same_device(path: &Path, dev: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| device(&m) == dev)
}

#[cfg(test)]
mod tests {
    use super::super::inode;
    use super::*;

    #[test]
    fn a_file_without_a_process_is_searched_for() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("in")).expect("writable");
        let path = dir.path().join("in/file");
        fs::write(&path, "x").expect("writable");
        let metadata = fs::metadata(&path).expect("there");
        let mut names = Names::new();
        names.look_below(dir.path().to_owned());
        let inode = inode(&metadata);
        names.files.push(KnownFile { inode, path: None, pages: None, shmem: false, memory_of: None });
        names.search();
        let found = &names.all(false)[0];
        assert_eq!((&found.name, found.pages), (&path.display().to_string(), Some(1)));
    }
}
