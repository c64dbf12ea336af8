//! Where memory cgroups are: the hierarchy of the first or the second version that has the
//! controller, wherever it is mounted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// Where it is mounted.
    pub(crate) place: PathBuf,
    /// Part of it that is seen: the whole, but in a container without a namespace for groups.
    root: PathBuf,
    /// Whether it is of the second version.
    pub(crate) second: bool,
}

impl Hierarchy {
    /// Finds the hierarchy of this machine.
    pub(crate) fn find() -> Result<Hierarchy, String> {
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Hierarchy::in_mounts(&text).ok_or_else(|| "no memory cgroups are mounted here".to_owned())
    }

    fn in_mounts(text: &str) -> Option<Hierarchy> {
        let mut second = None;
        for line in text.lines() {
            // Behind the dash: the type of the file system, its device, its options.
            let Some((before, after)) = line.split_once(" - ") else { continue };
            let mut of = after.split(' ');
            let (kind, options) = (of.next(), of.nth(1));
            let mut before = before.split(' ').skip(3).map(|word| PathBuf::from(word.replace("\\040", " ")));
            let Some((root, place)) = before.next().zip(before.next()) else { continue };
            let second_version = kind == Some("cgroup2");
            if kind == Some("cgroup") && options.is_some_and(|all| all.split(',').any(|word| word == "memory")) {
                return Some(Hierarchy { place, root, second: false });
            }
            if second_version && second.is_none() && has_memory(&place.join("cgroup.controllers")) {
                second = Some(Hierarchy { place, root, second: true });
            }
        }
        second
    }

    #[cfg(test)]
    pub(crate) fn at(place: &Path, second: bool) -> Hierarchy {
        Hierarchy { place: place.to_owned(), root: "/".into(), second }
    }

    /// Its folder of a path, which is one of cgroupfs or as `/proc/PID/cgroup` has it, and the path
    /// as that has it.
    pub(crate) fn folder(&self, path: &Path) -> (PathBuf, String) {
        let inside = match path.strip_prefix(&self.place) {
            Ok(inside) => inside,
            Err(_) => path.strip_prefix(&self.root).or_else(|_| path.strip_prefix("/")).unwrap_or(path),
        };
        let root = Some(&self.root).filter(|root| !root.starts_with("/.."));
        let full = Path::new("/").join(root.map_or("".as_ref(), |root| root.as_path())).join(inside);
        // A path that ends in a slash is another one to the kernel.
        (self.place.join(inside), full.components().collect::<PathBuf>().display().to_string())
    }

    /// Groups right below the root have a limit from now on. It stays switched on: another
    /// recorder may have made one meanwhile.
    pub(crate) fn switch_on(&self) -> Result<(), String> {
        let file = self.place.join("cgroup.subtree_control");
        if !self.second || has_memory(&file) {
            return Ok(());
        }
        fs::write(&file, "+memory").map_err(|e| match e.kind() {
            io::ErrorKind::ResourceBusy => format!(
                "{}: a group with a limit cannot be made: processes are in the group above it, as in a container; \
                 give --cgroup, or record on the host",
                self.place.display()
            ),
            _ => format!("{}: cannot be switched to +memory: {e}; it takes root", file.display()),
        })
    }
}

fn has_memory(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|word| word == "memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_with_the_controller_is_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = dir.path().display();
        let first = "33 31 0:28 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";
        let second = format!("42 31 0:27 /../.. {place} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
        let other = "41 31 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\nnonsense\n";
        // As with systemd's hybrid setup: the second version has no controllers.
        let hybrid = format!("{second}{other}{first}");
        let found = Hierarchy::in_mounts(&hybrid).expect("found");
        assert_eq!(found, Hierarchy::at(Path::new("/sys/fs/cgroup/memory"), false));
        assert_eq!(Hierarchy::in_mounts(&format!("{other}{second}")), None);
        fs::write(dir.path().join("cgroup.controllers"), "cpu memory\n").expect("writable");
        let found = Hierarchy::in_mounts(&format!("{other}{second}")).expect("found");
        assert!(found.second && found.place == dir.path());
        assert_eq!(found.folder(Path::new("/a/b")), (dir.path().join("a/b"), "/a/b".to_owned()));
    }

    #[test]
    fn paths_of_a_part_are_found_in_it() {
        let part = Hierarchy { place: "/sys/fs/cgroup".into(), root: "/docker/1a".into(), second: false };
        let found = |path: &str| part.folder(Path::new(path));
        for path in ["/docker/1a/web", "/sys/fs/cgroup/web", "/sys/fs/cgroup/web/"] {
            assert_eq!(found(path), ("/sys/fs/cgroup/web".into(), "/docker/1a/web".to_owned()), "{path}");
        }
        let whole = Hierarchy::at(Path::new("/sys/fs/cgroup"), true);
        assert_eq!(whole.folder(Path::new("/")).1, "/");
        assert_eq!(whole.folder(Path::new("web")), ("/sys/fs/cgroup/web".into(), "/web".to_owned()));
    }

    #[test]
    fn the_controller_is_switched_on_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("cgroup.subtree_control");
        fs::write(&file, "cpu\n").expect("writable");
        Hierarchy::at(dir.path(), false).switch_on().expect("nothing to do");
        assert_eq!(fs::read_to_string(&file).expect("there"), "cpu\n");
        let second = Hierarchy::at(dir.path(), true);
        second.switch_on().expect("writable");
        assert_eq!(fs::read_to_string(&file).expect("there"), "+memory");
        fs::write(&file, "cpu memory\n").expect("writable");
        second.switch_on().expect("nothing to do");
        assert_eq!(fs::read_to_string(&file).expect("there"), "cpu memory\n");
        fs::remove_file(&file).and_then(|()| fs::create_dir(&file)).expect("ours");
        assert!(second.switch_on().expect_err("a folder").contains("cannot be switched to +memory"));
    }
}
