//! Memory cgroups of this machine, of the first or the second version.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where cgroups are mounted by custom.
const MOUNT: &str = "/sys/fs/cgroup";

/// A group.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    /// As `/proc/PID/cgroup` has it.
    path: String,
    second: bool,
    /// Made by this program, and removed when it is dropped.
    own: bool,
}

/// Where the hierarchy with the memory controller is, and whether it is of the second version.
fn hierarchy() -> Result<(PathBuf, bool), String> {
    let first = Path::new(MOUNT).join("memory");
    if first.join("memory.limit_in_bytes").exists() || first.join("memory.usage_in_bytes").exists() {
        return Ok((first, false));
    }
    let controllers = fs::read_to_string(Path::new(MOUNT).join("cgroup.controllers")).unwrap_or_default();
    match controllers.split_whitespace().any(|c| c == "memory") {
        true => Ok((PathBuf::from(MOUNT), true)),
        false => Err(format!("no memory cgroups below {MOUNT}")),
    }
}

/// The group of a process as `/proc/PID/cgroup` has it.
pub fn of_process(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    path_in(&text)
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

impl Group {
    /// The group of a path: one of cgroupfs, or as `/proc/PID/cgroup` has it.
    pub fn open(path: &Path) -> Result<Group, String> {
        let (root, second) = hierarchy()?;
        let inside = path.strip_prefix(&root).unwrap_or(path.strip_prefix("/").unwrap_or(path));
        let folder = root.join(inside);
        if !folder.join("cgroup.procs").exists() {
            return Err(format!("{}: is no memory cgroup (looked for {})", path.display(), folder.display()));
        }
        Ok(Group { path: format!("/{}", inside.display()), folder, second, own: false })
    }

    /// Makes a group with a limit, below that of this process where that is allowed.
    pub fn create(name: &str, limit_bytes: u64) -> Result<Group, String> {
        let (root, second) = hierarchy()?;
        let folder = root.join(name);
        fs::create_dir(&folder).map_err(|e| format!("{}: cannot be made: {e}; it takes root", folder.display()))?;
        let group = Group { path: format!("/{name}"), folder, second, own: true };
        group.put(if second { "memory.max" } else { "memory.limit_in_bytes" }, &limit_bytes.to_string())?;
        Ok(group)
    }

    fn put(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.folder.join(file);
        fs::write(&path, value).map_err(|e| format!("{}: cannot be written: {e}", path.display()))
    }

    /// The file in which a process writes itself to be in the group.
    pub fn procs(&self) -> io::Result<fs::File> {
        fs::File::options().write(true).open(self.folder.join("cgroup.procs"))
    }

    /// As `/proc/PID/cgroup` has it.
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
        self.text(file)?.trim().parse().ok()
    }

    /// Its limit in bytes; none: it has none.
    pub fn limit_bytes(&self) -> Option<u64> {
        match self.second {
            true => self.number("memory.max"),
            // No limit is the largest number of whole pages there.
            false => self.number("memory.limit_in_bytes").filter(|&bytes| bytes < 1 << 60),
        }
    }

    /// What it is charged for, in bytes.
    pub fn usage_bytes(&self) -> Option<u64> {
        self.number(if self.second { "memory.current" } else { "memory.usage_in_bytes" })
    }

    /// Its swappiness, which groups of the second version do not have.
    pub fn swappiness(&self) -> Option<u32> {
        self.number("memory.swappiness").map(|n| n as u32)
    }
}

pub(crate) fn contains(outer: &str, path: &str) -> bool {
    let outer = outer.trim_end_matches('/');
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Drop for Group {
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

    #[test]
    fn groups_contain_those_below() {
        assert!(contains("/a", "/a") && contains("/a", "/a/b") && contains("/", "/a"));
        assert!(!contains("/a", "/ab") && !contains("/a/b", "/a"));
    }
}
