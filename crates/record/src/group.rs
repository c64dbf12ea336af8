//! Memory cgroups of this machine, of the first or the second version.

use crate::hierarchy::Hierarchy;
use rustc_hash::FxHashMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Prefixes of the groups that this program makes; the number of a process follows.
pub(crate) const PREFIXES: [&str; 2] = ["refault-record-", "refault-play-"];

/// A group.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    /// Path, as in `/proc/PID/cgroup`.
    path: String,
    /// Where its hierarchy is mounted.
    root: PathBuf,
    second: bool,
    /// Made by this program, and removed when it is dropped.
    own: bool,
}

/// The group of a process as `/proc/PID/cgroup` has it.
pub fn of_process(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    path_in(&text)
}

/// The number of the group that this process is in.
pub(crate) fn own_id() -> Option<u64> {
    Cgroup::open(Path::new(&of_process(std::process::id())?)).ok()?.id()
}

/// The line of the memory controller, or of the second version.
fn path_in(text: &str) -> Option<String> {
    let mut second = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if controllers.split(',').any(|c| c == "memory") {
            return Some(path.to_owned());
        }
        if controllers.is_empty() {
            second = Some(path.to_owned());
        }
    }
    second
}

/// The paths of all memory groups, as `/proc/PID/cgroup` has them.
pub fn paths() -> Result<Vec<String>, String> {
    let hierarchy = Hierarchy::find()?;
    let (mut found, mut folders) = (Vec::new(), vec![hierarchy.place.clone()]);
    while let Some(folder) = folders.pop() {
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        found.push(hierarchy.folder(&folder).1);
    }
    found.sort();
    Ok(found)
}

/// All memory groups by number: that is the inode of the folder.
pub(crate) fn numbered() -> Vec<(u64, String)> {
    let Ok(hierarchy) = Hierarchy::find() else { return Vec::new() };
    let own = fs::metadata(&hierarchy.place).map_or(0, |metadata| metadata.ino());
    let (mut found, mut folders) = (Vec::new(), vec![(own, hierarchy.place.clone())]);
    while let Some((id, folder)) = folders.pop() {
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
        folders.extend(below.map(|e| (e.ino(), e.path())));
        found.push((id, hierarchy.folder(&folder).1));
    }
    found
}

impl Cgroup {
    /// The group of a path: one of cgroupfs, or as `/proc/PID/cgroup` has it.
    pub fn open(path: &Path) -> Result<Cgroup, String> {
        let hierarchy = Hierarchy::find()?;
        let (folder, inside) = hierarchy.folder(path);
        if !folder.join("cgroup.procs").exists() {
            return Err(format!("{}: is no memory cgroup (looked for {})", path.display(), folder.display()));
        }
        Ok(Cgroup { path: inside, folder, root: hierarchy.place, second: hierarchy.second, own: false })
    }

    #[cfg(test)]
    pub(crate) fn open_at(folder: &Path) -> Cgroup {
        Cgroup { path: "/".to_owned(), folder: folder.to_owned(), root: folder.to_owned(), second: true, own: false }
    }

    /// Makes a group with a limit.
    pub fn create(name: &str, limit_bytes: u64) -> Result<Cgroup, String> {
        Cgroup::create_in(&Hierarchy::find()?, name, limit_bytes)
    }

    fn create_in(hierarchy: &Hierarchy, name: &str, limit_bytes: u64) -> Result<Cgroup, String> {
        hierarchy.switch_on()?;
        let root = &hierarchy.place;
        sweep(root);
        let (folder, path) = hierarchy.folder(name.as_ref());
        fs::create_dir(&folder).map_err(|e| format!("{}: cannot be made: {e}; it takes root", folder.display()))?;
        let group = Cgroup { path, folder, root: root.clone(), second: hierarchy.second, own: true };
        group.put(if group.second { "memory.max" } else { "memory.limit_in_bytes" }, &limit_bytes.to_string())?;
        Ok(group)
    }

    fn put(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.folder.join(file);
        fs::write(&path, value).map_err(|e| format!("{}: cannot be written: {e}", path.display()))
    }

    /// File that a process writes its number to, to enter the group.
    pub fn procs(&self) -> io::Result<fs::File> {
        fs::File::options().write(true).open(self.folder.join("cgroup.procs"))
    }

    /// Moves this process into the group; what is returned knows the way back.
    pub fn enter(&self) -> Result<GroupMove, String> {
        let before = of_process(std::process::id()).ok_or("this process is in no memory cgroup")?;
        let elsewhere = GroupMove { before: Cgroup::open(Path::new(&before))? };
        self.put("cgroup.procs", "0")?;
        Ok(elsewhere)
    }

    /// Path of the group, as in `/proc/PID/cgroup`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether a group is this one or below it.
    pub fn contains(&self, path: &str) -> bool {
        contains(&self.path, path)
    }

    /// The text of one of its files.
    pub fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(file)).ok()
    }

    fn number(&self, file: &str) -> Option<u64> {
        number(&self.folder.join(file))
    }

    /// Numbers of this group and of the groups below it, as samples of the second version have
    /// them.
    pub(crate) fn ids(&self) -> Option<Ids> {
        self.second.then(|| Ids { folder: self.folder.clone(), known: FxHashMap::default() })
    }

    /// The same of either version, as programs in the kernel have them.
    pub(crate) fn ids_of_programs(&self) -> Ids {
        Ids { folder: self.folder.clone(), known: FxHashMap::default() }
    }

    /// Its own number.
    pub(crate) fn id(&self) -> Option<u64> {
        fs::metadata(&self.folder).ok().map(|metadata| metadata.ino())
    }

    /// The version of its hierarchy.
    pub(crate) fn version(&self) -> u8 {
        if self.second { 2 } else { 1 }
    }

    /// Whether nobody has removed it.
    pub fn is_there(&self) -> bool {
        self.folder.exists()
    }

    /// The least that it and the groups around it may have, in bytes; none: there is no limit.
    pub fn limit_bytes(&self) -> Option<u64> {
        let around = self.folder.ancestors().take_while(|folder| folder.starts_with(&self.root));
        // Above `memory.high` a group is made to give back as much as it takes.
        let files: &[&str] = if self.second { &["memory.max", "memory.high"] } else { &["memory.limit_in_bytes"] };
        let limits = around.flat_map(|folder| files.iter().filter_map(move |file| number(&folder.join(file))));
        // No limit is the word `max`, and the largest number of whole pages in the first version.
        limits.min().filter(|&bytes| bytes < 1 << 60)
    }

    /// The swap that it and the groups around it may use, in bytes; none: there is no limit.
    pub(crate) fn swap_bytes(&self) -> Option<u64> {
        let around = self.folder.ancestors().take_while(|folder| folder.starts_with(&self.root));
        let limits = around.filter_map(|folder| match self.second {
            true => number(&folder.join("memory.swap.max")),
            // The first version limits memory and swap together.
            false => {
                let both = number(&folder.join("memory.memsw.limit_in_bytes")).filter(|&bytes| bytes < 1 << 60)?;
                Some(both.saturating_sub(number(&folder.join("memory.limit_in_bytes"))?))
            }
        });
        limits.min()
    }

    /// The processes in it and below.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let (mut found, mut folders) = (Vec::new(), vec![self.folder.clone()]);
        while let Some(folder) = folders.pop() {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
            let below = fs::read_dir(&folder).into_iter().flatten().flatten();
            folders.extend(below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        }
        found
    }

    /// Memory that is charged to it, in bytes.
    pub fn usage_bytes(&self) -> Option<u64> {
        self.number(if self.second { "memory.current" } else { "memory.usage_in_bytes" })
    }

    /// `oom_kill` of the group and its descendants, since it was made.
    pub fn oom_kills(&self) -> u64 {
        let file = if self.second { "memory.events" } else { "memory.oom_control" };
        self.text(file).as_deref().and_then(oom_kills_in).unwrap_or(0)
    }

    /// Its swappiness, which groups of the second version do not have.
    pub fn swappiness(&self) -> Option<u32> {
        self.number("memory.swappiness").map(|n| n as u32)
    }
}

/// The groups of a part of the hierarchy, by number: that of a group of the second version is the
/// inode of its folder, and no other group ever gets it.
#[derive(Debug)]
pub(crate) struct Ids {
    folder: PathBuf,
    known: FxHashMap<u64, bool>,
}

impl Ids {
    /// Whether a group is among them. One that was not seen before is looked for.
    #[inline]
    pub(crate) fn contain(&mut self, id: u64) -> bool {
        self.known.get(&id).copied().unwrap_or_else(|| self.look(id))
    }

    fn look(&mut self, id: u64) -> bool {
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            let Ok(metadata) = fs::metadata(&folder) else { continue };
            self.known.insert(metadata.ino(), true);
            let below = fs::read_dir(&folder).into_iter().flatten().flatten();
            folders.extend(below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        }
        *self.known.entry(id).or_insert(false)
    }
}

/// The line `oom_kill N` of `memory.events` or `memory.oom_control`.
fn oom_kills_in(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Removes groups that a killed process of this program left: their names end in its number. Groups
/// in use cannot be removed.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)));
        if let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok())
            && !Path::new("/proc").join(pid.to_string()).exists()
        {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// This process is in another group than it was.
#[derive(Debug)]
pub struct GroupMove {
    before: Cgroup,
}

impl GroupMove {
    /// Moves this process back.
    pub fn come_back(self) -> Result<(), String> {
        self.before.put("cgroup.procs", "0")
    }
}

pub(crate) fn contains(outer: &str, path: &str) -> bool {
    let outer = outer.trim_end_matches('/');
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if self.own {
            // Processes that have ended may take a moment to leave.
            for _ in 0..50 {
                if fs::remove_dir(&self.folder).is_ok() {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process() {
        assert_eq!(path_in("8:pids:/a\n4:memory:/b/c\n0::/\n"), Some("/b/c".to_owned()));
        assert_eq!(path_in("0::/user.slice/x\n"), Some("/user.slice/x".to_owned()));
        assert_eq!(path_in("8:pids:/a\n"), None);
    }

    fn text(folder: &Path, file: &str) -> String {
        fs::read_to_string(folder.join(file)).unwrap_or_default()
    }

    #[test]
    fn a_group_of_the_second_version_has_its_own_files() {
        let root = tempfile::tempdir().expect("a folder");
        fs::write(root.path().join("cgroup.subtree_control"), "cpu memory\n").expect("writable");
        let group = Cgroup::create_in(&Hierarchy::at(root.path(), true), "g", 1 << 20).expect("made");
        let folder = root.path().join("g");
        assert_eq!((text(&folder, "memory.max"), group.path()), ("1048576".to_owned(), "/g"));
        fs::write(folder.join("memory.current"), "4096\n").expect("writable");
        assert_eq!((group.limit_bytes(), group.usage_bytes(), group.swappiness()), (Some(1 << 20), Some(4096), None));
        // The least of what holds for it.
        fs::write(folder.join("memory.high"), "8192\n").expect("writable");
        assert_eq!(group.limit_bytes(), Some(8192));
        fs::write(root.path().join("memory.max"), "4096\n").expect("writable");
        assert_eq!(group.limit_bytes(), Some(4096));
        for file in [folder.join("memory.max"), folder.join("memory.high"), root.path().join("memory.max")] {
            fs::write(file, "max\n").expect("writable");
        }
        assert_eq!(group.limit_bytes(), None);
        group.put("cgroup.procs", "0").expect("entered");
        assert_eq!(text(&folder, "cgroup.procs"), "0");
        // Files of a real one go with the folder.
        for file in fs::read_dir(&folder).expect("there").flatten() {
            fs::remove_file(file.path()).expect("there");
        }
        drop(group);
        assert!(!folder.exists());
    }

    #[test]
    fn groups_that_were_left_are_removed() {
        let root = tempfile::tempdir().expect("a folder");
        let own = format!("refault-play-{}", std::process::id());
        for name in [&own, "refault-record-4194303", "refault-play-x", "web"] {
            fs::create_dir(root.path().join(name)).expect("writable");
        }
        sweep(root.path());
        let mut left: Vec<_> = fs::read_dir(root.path()).expect("there").flatten().map(|e| e.file_name()).collect();
        left.sort();
        assert_eq!(left, [own.as_str(), "refault-play-x", "web"]);
    }

    #[test]
    fn a_group_of_the_first_version_has_its_own_files() {
        let root = tempfile::tempdir().expect("a folder");
        let group = Cgroup::create_in(&Hierarchy::at(root.path(), false), "g", 1 << 20).expect("made");
        let folder = root.path().join("g");
        assert_eq!(text(&folder, "memory.limit_in_bytes"), "1048576");
        fs::write(folder.join("memory.limit_in_bytes"), "9223372036854771712\n").expect("writable");
        fs::write(folder.join("memory.swappiness"), "60\n").expect("writable");
        assert_eq!((group.limit_bytes(), group.swappiness()), (None, Some(60)));
    }

    #[test]
    fn kills_of_both_versions() {
        assert_eq!(oom_kills_in("low 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 1\n"), Some(3));
        assert_eq!(oom_kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), Some(2));
        assert_eq!(oom_kills_in("oom_kill_disable 0\n"), None);
    }

    #[test]
    fn groups_contain_those_below() {
        assert!(contains("/a", "/a") && contains("/a", "/a/b") && contains("/", "/a"));
        assert!(!contains("/a", "/ab") && !contains("/a/b", "/a"));
    }
    #[test]
    fn groups_are_known_by_number() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("g/inner");
        fs::create_dir_all(&inner).expect("writable");
        let id = |folder: &Path| fs::metadata(folder).expect("there").ino();
        let mut ids = Ids { folder: root.path().join("g"), known: FxHashMap::default() };
        assert!(ids.contain(id(&inner)) && ids.contain(id(&root.path().join("g"))));
        assert!(!ids.contain(id(root.path())));
        // One that is made later, and one that is gone.
        fs::create_dir(inner.join("new")).expect("writable");
        assert!(ids.contain(id(&inner.join("new"))));
        let gone = id(&inner.join("new"));
        fs::remove_dir(inner.join("new")).expect("empty");
        assert!(ids.contain(gone));
    }
}
