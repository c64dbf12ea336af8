//! Files that may have pages in memory before anybody uses them: those that processes have open or
//! mapped, and what lies beside them. The kernel has no list of the pages of a group.

use crate::event::Inode;
use crate::names::{inode, open_file, pages};
use crate::residency::{has_some, pages_in_memory};
use crate::scan::Vma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::{self, File, ReadDir};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Descriptors and mappings that are looked at, at most, and the longest time for it.
const MOST_OPEN: usize = 200_000;
const LONGEST: Duration = Duration::from_secs(2);

/// Entries of folders that are looked at, at most, and the longest time for it.
const MOST_ENTRIES: usize = 100_000;
const LONGEST_WALK: Duration = Duration::from_secs(10);

/// Folders that hold what all programs share, or what nobody uses again.
const SHARED: [&str; 13] =
    ["/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/log"];

/// Folders that many programs have, each with folders of its own below them.
const OF_MANY: [&str; 3] = ["/", "/tmp", "/var/tmp"];

/// A file that a process has open or mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InUse {
    pub(crate) inode: Inode,
    pub(crate) pid: u32,
    /// Where it can be opened.
    pub(crate) path: PathBuf,
}

/// Files that processes have open or mapped, and folders in which they have files open; true: there
/// were more.
pub(crate) fn in_use(pids: impl IntoIterator<Item = u32>) -> (Vec<InUse>, Vec<PathBuf>, bool) {
    let (mut files, mut folders) = (FxHashMap::default(), Vec::new());
    let (mut looked, until) = (0, Instant::now() + LONGEST);
    let mut pids = pids.into_iter();
    for pid in pids.by_ref() {
        if looked > MOST_OPEN || Instant::now() > until {
            break;
        }
        let root = root_of(pid);
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            looked += 1;
            let Some(metadata) = fs::metadata(entry.path()).ok().filter(fs::Metadata::is_file) else { continue };
            let folder = fs::read_link(entry.path()).ok().and_then(|path| path.parent().map(Path::to_owned));
            folders
                .extend(folder.filter(|folder| may_be_walked(folder)).map(|folder| inside(root.as_deref(), &folder)));
            let path = entry.path();
            files.entry(inode(&metadata)).or_insert_with_key(|&inode| InUse { inode, pid, path });
        }
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        for mapping in Vma::parse_all(&maps).into_iter().filter(|mapping| !mapping.is_shm) {
            looked += 1;
            let range = format!("{:x}-{:x}", mapping.pages.start << 12, mapping.pages.end << 12);
            let path = format!("/proc/{pid}/map_files/{range}").into();
            if let Some(inode) = mapping.file {
                files.entry(inode).or_insert(InUse { inode, pid, path });
            }
        }
        // A database works in the folder of its data.
        let home = fs::read_link(format!("/proc/{pid}/cwd")).ok().map(|home| inside(root.as_deref(), &home));
        folders.extend(home.filter(|home| folders.iter().any(|folder| folder != home && folder.starts_with(home))));
    }
    // The last is walked first: a log in a large folder takes no time from the data of a database.
    folders.sort_by_cached_key(|folder| (folder.components().count(), folder.clone()));
    folders.dedup();
    let mut files: Vec<InUse> = files.into_values().collect();
    files.sort_by_key(|file| file.inode);
    (files, folders, pids.next().is_some())
}

/// Where the files of a process are, if it has mounts of its own.
fn root_of(pid: u32) -> Option<PathBuf> {
    let space = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    (space(&pid.to_string()) != space("self")).then(|| PathBuf::from(format!("/proc/{pid}/root")))
}

fn inside(root: Option<&Path>, folder: &Path) -> PathBuf {
    root.map_or_else(|| folder.to_owned(), |root| root.join(folder.strip_prefix("/").unwrap_or(folder)))
}

fn may_be_walked(folder: &Path) -> bool {
    folder.is_absolute()
        && !OF_MANY.iter().any(|shared| folder == Path::new(shared))
        && !SHARED.iter().any(|shared| folder.starts_with(shared))
}

/// A walk through folders, a bit at a time.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    folders: Vec<PathBuf>,
    seen: FxHashSet<Inode>,
    /// The folder that is being read, and its device.
    current: Option<(ReadDir, u32)>,
    entries: usize,
    spent: Duration,
    /// Files that could not be looked at.
    pub(crate) failed: u32,
    /// There were more than may be looked at.
    pub(crate) cut: bool,
}

impl Walk {
    /// Through these folders, and all below them on the same file system.
    pub(crate) fn new(folders: Vec<PathBuf>) -> Walk {
        Walk { folders, ..Walk::default() }
    }

    /// Goes on for a while: files that have something in memory, by their paths.
    pub(crate) fn go_on(&mut self, longest: Duration) -> Vec<(Inode, PathBuf)> {
        let (mut found, begun) = (Vec::new(), Instant::now());
        while begun.elapsed() < longest {
            if self.entries > MOST_ENTRIES || self.spent + begun.elapsed() > LONGEST_WALK {
                self.cut |= self.current.is_some() || !self.folders.is_empty();
                (self.current, self.folders) = (None, Vec::new());
            }
            let Some((folder, dev)) = &mut self.current else {
                let Some(next) = self.folders.pop() else { break };
                self.enter(&next);
                continue;
            };
            let dev = *dev;
            match folder.next() {
                Some(Ok(entry)) => {
                    self.entries += 1;
                    let kind = entry.file_type();
                    if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                        self.folders.push(entry.path());
                    } else if kind.is_ok_and(|kind| kind.is_file()) {
                        match look(&entry.path()) {
                            Ok(inode) => {
                                let new = inode.filter(|inode| inode.dev == dev && self.seen.insert(*inode));
                                found.extend(new.map(|inode| (inode, entry.path())));
                            }
                            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                            Err(_) => self.failed += 1,
                        }
                    }
                }
                Some(Err(_)) => {}
                None => self.current = None,
            }
        }
        self.spent += begun.elapsed();
        found
    }

    /// Enters a folder, but not one of another file system than that above it.
    fn enter(&mut self, folder: &Path) {
        let Ok(metadata) = fs::metadata(folder) else { return };
        let above = folder.parent().and_then(|above| fs::metadata(above).ok()).map(|above| inode(&above));
        let own = inode(&metadata);
        let is_below = above.is_some_and(|above| self.seen.contains(&above));
        if is_below && above.is_some_and(|above| above.dev != own.dev) || !self.seen.insert(own) {
            return;
        }
        self.current = fs::read_dir(folder).ok().map(|entries| (entries, own.dev));
    }

    /// Whether there is nothing more.
    pub(crate) fn is_done(&self) -> bool {
        self.current.is_none() && self.folders.is_empty()
    }
}

/// The number of a file that has something in memory.
fn look(path: &Path) -> io::Result<Option<Inode>> {
    let file: File = open_file(path)?;
    let metadata = file.metadata()?;
    if metadata.len() == 0 || !metadata.is_file() {
        return Ok(None);
    }
    let some = match has_some(&file)? {
        Some(some) => some,
        None => !pages_in_memory(&file, 0..pages(&metadata))?.is_empty(),
    };
    Ok(some.then(|| inode(&metadata)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_this_process_are_in_use() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let path = dir.path().join("open");
        fs::write(&path, "x").expect("writable");
        let file = File::open(&path).expect("there");
        let own = inode(&file.metadata().expect("there"));
        let (files, folders, cut) = in_use([std::process::id()]);
        assert!(files.iter().any(|file| file.inode == own && file.path.starts_with("/proc")), "{files:?}");
        assert!(folders.iter().any(|folder| dir.path().starts_with(folder)) && !cut, "{folders:?}");
        let program = inode(&fs::metadata("/proc/self/exe").expect("there"));
        assert!(files.iter().any(|file| file.inode == program), "what is mapped is in use");
    }

    #[test]
    fn a_walk_finds_what_is_in_memory_below_a_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let below = dir.path().join("a/b");
        fs::create_dir_all(&below).expect("writable");
        fs::write(below.join("full"), "x").expect("writable");
        fs::write(dir.path().join("empty"), "").expect("writable");
        let mut walk = Walk::new(vec![dir.path().to_owned()]);
        let mut found = Vec::new();
        while !walk.is_done() {
            found.extend(walk.go_on(Duration::from_millis(1)));
        }
        let names: Vec<_> = found.iter().map(|(_, path)| path.strip_prefix(dir.path()).expect("below")).collect();
        assert_eq!(names, [Path::new("a/b/full")]);
        assert!(!walk.cut && walk.failed == 0);
    }

    #[test]
    fn regression_a_log_above_does_not_keep_the_walk_from_the_data() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let data = dir.path().join("much/data");
        fs::create_dir_all(&data).expect("writable");
        let open = [dir.path().join("log"), data.join("table")].map(|path| {
            fs::write(&path, "x").expect("writable");
            File::open(&path).expect("there")
        });
        let (_, folders, _) = in_use([std::process::id()]);
        drop(open);
        let of_ours: Vec<_> = folders.iter().filter(|folder| folder.starts_with(dir.path())).collect();
        assert_eq!(of_ours, [dir.path(), data.as_path()], "the last is walked first");
    }

    #[test]
    fn what_all_programs_share_is_not_walked() {
        for folder in ["/", "/usr/lib/x86_64-linux-gnu", "/tmp", "/var/tmp", "/dev/shm", "pipe:"] {
            assert!(!may_be_walked(Path::new(folder)), "{folder}");
        }
        for folder in ["/var/lib/postgresql/15/main/base/5", "/srv", "/home/a", "/tmp/a"] {
            assert!(may_be_walked(Path::new(folder)), "{folder}");
        }
        assert_eq!(inside(Some(Path::new("/proc/7/root")), Path::new("/data")), Path::new("/proc/7/root/data"));
    }
}
