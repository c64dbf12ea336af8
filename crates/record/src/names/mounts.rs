//! Mounts, and whether their file systems are memory.

use super::{device, numbers};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::{self, File};
use std::os::fd::FromRawFd;
use std::path::PathBuf;

/// A mounted file system.
#[derive(Debug)]
struct Mount {
    place: PathBuf,
    /// Its root, where files can be opened by number.
    by_number: Option<File>,
    /// Its files are memory.
    is_memory: bool,
}

/// The file systems of this machine, by device.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    here: FxHashMap<u32, Mount>,
    /// Device of memory without a path: shared anonymous memory, segments of System V, memfd.
    internal: Option<u32>,
    /// Whether a device that is mounted elsewhere, such as in a container, is memory.
    elsewhere: FxHashMap<u32, bool>,
}

impl Mounts {
    pub(super) fn read() -> Mounts {
        let mut mounts = Mounts { internal: internal(), ..Mounts::default() };
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        for line in text.lines() {
            let Some((dev, place, is_memory)) = mount(line) else { continue };
            // The root of a file system before parts of it that are mounted elsewhere.
            let new = || Mount { by_number: numbers::root(&place), place, is_memory };
            mounts.here.entry(dev).or_insert_with(new);
        }
        mounts
    }

    pub(super) fn has(&self, dev: u32) -> bool {
        self.here.contains_key(&dev)
    }

    pub(super) fn by_number(&self, dev: u32) -> Option<&File> {
        self.here.get(&dev)?.by_number.as_ref()
    }

    /// Where these are mounted.
    pub(super) fn places(&self, devices: &FxHashSet<u32>) -> Vec<PathBuf> {
        self.here.iter().filter(|(dev, _)| devices.contains(dev)).map(|(_, mount)| mount.place.clone()).collect()
    }

    pub(super) fn is_memory_here(&self, dev: u32) -> bool {
        self.here.get(&dev).is_some_and(|mount| mount.is_memory) || self.internal == Some(dev)
    }

    /// Whether files of a device, which a process uses, are memory. Containers have mounts of their
    /// own.
    pub(super) fn is_memory(&mut self, dev: u32, pid: u32) -> bool {
        if self.has(dev) || self.internal == Some(dev) {
            return self.is_memory_here(dev);
        }
        *self.elsewhere.entry(dev).or_insert_with(|| {
            let text = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
            text.lines().filter_map(mount).any(|(other, _, is_memory)| other == dev && is_memory)
        })
    }
}

/// The device of a memfd, which is that of all shared memory without a path.
fn internal() -> Option<u32> {
    // SAFETY: the name ends with a zero; the descriptor is new, and nothing else owns it.
    let file = unsafe {
        let fd = libc::memfd_create(c"refault".as_ptr(), libc::MFD_CLOEXEC);
        (fd >= 0).then(|| File::from_raw_fd(fd))
    };
    file?.metadata().ok().map(|metadata| device(&metadata))
}

/// Device and place of a line of `mountinfo`, and whether it is memory.
fn mount(line: &str) -> Option<(u32, PathBuf, bool)> {
    let (before, after) = line.split_once(" - ")?;
    let mut words = before.split(' ').skip(2);
    let (major, minor) = words.next()?.split_once(':')?;
    let dev = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
    let place = words.nth(1)?.replace("\\040", " ");
    let kind = after.split(' ').next()?;
    Some((dev, PathBuf::from(place), matches!(kind, "tmpfs" | "devtmpfs" | "ramfs")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo() {
        let line = "36 35 98:7 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount(line), Some((98 << 20 | 7, PathBuf::from("/mnt 2"), false)));
        let line = "25 30 0:22 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=8g";
        assert_eq!(mount(line), Some((22, PathBuf::from("/dev/shm"), true)));
        assert_eq!(mount("36 35"), None);
        assert_eq!(mount(""), None);
    }

    #[test]
    fn shared_memory_is_memory_and_a_disk_is_none() {
        let mut mounts = Mounts::read();
        let internal = internal().expect("memfd");
        assert!(mounts.is_memory(internal, std::process::id()));
        let folder = fs::metadata("/proc/self").expect("there");
        assert!(!mounts.is_memory(device(&folder), std::process::id()));
    }
}
