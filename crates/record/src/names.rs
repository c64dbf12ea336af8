//! Files by inode: their paths and lengths, while somebody uses them.
//!
//! Of ext2, ext3 and ext4 the kernel opens a file by its number. Elsewhere the process that uses it
//! has it open or mapped. What is left is looked for at the end, in the folders where programs ran.

use crate::assemble::Files;
use crate::event::Inode;
use crate::ring::now_ns;
use crate::scan::Mapping;
use refault_trace::ObjectKind;
use rustc_hash::FxHashMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The magic number of ext2 to ext4 in `statfs`.
const EXT: i64 = 0xEF53;

/// Entries of folders that are looked at to find names, and for how long.
const MOST_ENTRIES: usize = 4_000_000;
const LONGEST: Duration = Duration::from_secs(10);

/// A mounted file system.
#[derive(Debug)]
struct Mount {
    place: PathBuf,
    /// Its root, where files can be opened by number.
    by_number: Option<File>,
}

/// What is known of what has a number in records.
#[derive(Clone, Debug)]
struct Known {
    inode: Inode,
    path: Option<PathBuf>,
    pages: Option<u64>,
    /// It is no file, but the memory of this process.
    memory_of: Option<String>,
}

/// What a process had mapped, and when that was read.
#[derive(Debug, Default)]
struct Mapped {
    all: Vec<Mapping>,
    read: Option<Instant>,
}

/// What is mapped is read again after this long at the earliest.
const REREAD: Duration = Duration::from_millis(5);

/// The files of this machine.
#[derive(Debug, Default)]
pub struct Names {
    mounts: FxHashMap<u32, Mount>,
    /// By number in records.
    files: Vec<Known>,
    /// Descriptors that were looked at for a process and did not help, so that they are not again
    /// and again.
    in_vain: FxHashMap<u32, u32>,
    /// Where files without a name are looked for.
    roots: Vec<PathBuf>,
    /// By process: what it had mapped when it was last looked at.
    mapped: FxHashMap<u32, Mapped>,
}

/// A device as events have it.
fn device(metadata: &fs::Metadata) -> u32 {
    let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
    major << 20 | minor
}

fn pages(metadata: &fs::Metadata) -> u64 {
    metadata.size().div_ceil(4096)
}

impl Names {
    /// Reads what is mounted.
    pub fn new() -> Names {
        let mut names = Names::default();
        names.read_mounts();
        names
    }

    /// Names are looked for below this folder, at the end, before other places.
    pub fn look_below(&mut self, folder: PathBuf) {
        if !self.roots.contains(&folder) {
            self.roots.push(folder);
        }
    }

    fn read_mounts(&mut self) {
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        for line in text.lines() {
            let Some((dev, place)) = mount(line) else { continue };
            // The root of a file system before parts of it that are mounted elsewhere.
            self.mounts.entry(dev).or_insert_with(|| Mount { by_number: by_number(&place), place });
        }
    }

    /// A file that the kernel opens by its number.
    fn by_number(&self, inode: Inode) -> Option<(PathBuf, fs::Metadata)> {
        let root = self.mounts.get(&inode.dev)?.by_number.as_ref()?;
        let file = open_by_number(root, u32::try_from(inode.ino).ok()?)?;
        let metadata = file.metadata().ok().filter(|m| m.ino() == inode.ino)?;
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        Some((path, metadata))
    }

    /// A file that a process has open or mapped.
    fn of_process(&mut self, inode: Inode, pid: u32) -> Option<(PathBuf, fs::Metadata)> {
        let tries = self.in_vain.entry(pid).or_insert(0);
        if *tries > 1000 {
            return None;
        }
        *tries += 1;
        for folder in ["fd", "map_files"] {
            let entries = fs::read_dir(format!("/proc/{pid}/{folder}")).into_iter().flatten().flatten();
            for entry in entries {
                let is_it = |m: &fs::Metadata| m.ino() == inode.ino && device(m) == inode.dev;
                if let Some(metadata) = fs::metadata(entry.path()).ok().filter(is_it) {
                    self.in_vain.remove(&pid);
                    return Some((fs::read_link(entry.path()).ok()?, metadata));
                }
            }
        }
        None
    }

    /// What a process has mapped at an address: as it was when it was last looked at, or now if
    /// nothing was there.
    fn mapping(&mut self, pid: u32, address: u64) -> Option<&Mapping> {
        let page = address >> 12;
        let place = |all: &[Mapping]| {
            let at = all.partition_point(|m| m.pages.end <= page);
            all.get(at).is_some_and(|m| m.pages.contains(&page)).then_some(at)
        };
        let Mapped { all, read } = self.mapped.entry(pid).or_default();
        let mut found = place(all);
        // Faults of a process that is gone, or that grow a stack, find nothing again and again.
        if found.is_none() && read.is_none_or(|read| read.elapsed() > REREAD) {
            (*all, *read) = (maps(pid), Some(Instant::now()));
            found = place(all);
        }
        found.and_then(|at| all.get(at))
    }

    fn find(&mut self, inode: Inode, pid: u32) -> Option<(PathBuf, fs::Metadata)> {
        self.by_number(inode).or_else(|| self.of_process(inode, pid))
    }

    /// Looks for what has no name yet in the folders where it may be.
    pub fn search(&mut self) {
        let mut wanted: FxHashMap<Inode, Vec<usize>> = FxHashMap::default();
        for (at, file) in self.files.iter().enumerate() {
            let mount = self.mounts.get(&file.inode.dev);
            // What cannot be opened by its number is deleted, and in no folder.
            let is_there = mount.is_some_and(|m| m.by_number.is_none() || self.by_number(file.inode).is_some());
            if file.path.is_none() && file.memory_of.is_none() && is_there {
                wanted.entry(file.inode).or_default().push(at);
            }
        }
        let mut roots = std::mem::take(&mut self.roots);
        roots.extend(
            self.mounts.iter().filter(|(dev, _)| wanted.keys().any(|i| i.dev == **dev)).map(|(_, m)| m.place.clone()),
        );
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

    /// The name, the kind and the length in pages of every object, by its number in records.
    pub fn all(&self, anonymized: bool) -> Vec<(String, ObjectKind, Option<u64>)> {
        let of = |(at, file): (usize, &Known)| {
            let kind = if file.memory_of.is_some() { ObjectKind::Anon } else { ObjectKind::File };
            let name = match (&file.path, &file.memory_of) {
                (_, Some(_)) if anonymized => format!("memory {at}"),
                _ if anonymized => format!("file {at}"),
                (_, Some(process)) => format!("memory of {process}"),
                (Some(path), _) => path.display().to_string(),
                (None, _) => unnamed(file.inode, self.mounts.contains_key(&file.inode.dev)),
            };
            (name, kind, file.pages)
        };
        self.files.iter().enumerate().map(of).collect()
    }

    /// `read_ahead_kb` of the device with most files, in pages.
    pub fn read_ahead_pages(&self) -> Option<u32> {
        let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
        self.files.iter().filter(|f| f.path.is_some()).for_each(|f| *counts.entry(f.inode.dev).or_default() += 1);
        read_ahead_pages(*counts.iter().max_by_key(|(dev, count)| (**count, **dev))?.0)
    }

    /// The same for the device of each file, by its number in records.
    pub fn read_ahead_by_file(&self) -> Vec<Option<u32>> {
        let mut known: FxHashMap<u32, Option<u32>> = FxHashMap::default();
        let of = |dev: u32| *known.entry(dev).or_insert_with(|| read_ahead_pages(dev));
        self.files.iter().map(|file| file.inode.dev).map(of).collect()
    }
}

fn read_ahead_pages(dev: u32) -> Option<u32> {
    let path = format!("/sys/class/bdi/{}:{}/read_ahead_kb", dev >> 20, dev & 0xfffff);
    let kib: u32 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(kib / 4)
}

fn unnamed(inode: Inode, is_mounted: bool) -> String {
    let (major, minor, ino) = (inode.dev >> 20, inode.dev & 0xfffff, inode.ino);
    match is_mounted {
        true => format!("inode {ino} of device {major}:{minor}"),
        // Block devices themselves are files of an internal file system.
        false => format!("internal file {ino} of {major}:{minor}"),
    }
}

fn same_device(path: &Path, dev: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| device(&m) == dev)
}

impl Files for Names {
    fn pages(&mut self, inode: Inode, pid: u32) -> Option<u64> {
        let (_, metadata) = self.find(inode, pid)?;
        Some(pages(&metadata))
    }

    fn now_ns(&mut self) -> u64 {
        now_ns()
    }

    fn of_descriptor(&mut self, pid: u32, fd: u64) -> Option<Inode> {
        let metadata = fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok().filter(fs::Metadata::is_file)?;
        Some(Inode { dev: device(&metadata), ino: metadata.ino() })
    }

    fn of_memory(&mut self, pid: u32, address: u64, bytes: u64) -> Vec<(Inode, u64, u64)> {
        let mappings = maps(pid);
        mappings.iter().filter_map(|mapping| mapped(mapping, address, address.saturating_add(bytes))).collect()
    }

    fn is_anonymous(&mut self, pid: u32, address: u64) -> bool {
        self.mapping(pid, address).is_some_and(|m| m.file.is_none() && !m.shared)
    }

    fn executable(&mut self, pid: u32, address: u64) -> Option<(Inode, u64, u64)> {
        let mapping = self.mapping(pid, address).filter(|m| m.executable && !m.is_shm)?;
        Some((mapping.file?, mapping.offset, mapping.pages.end - mapping.pages.start))
    }

    fn memory_numbered(&mut self, object: u32, pid: u32) {
        debug_assert_eq!(object as usize, self.files.len());
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let memory_of = Some(format!("{} {pid}", comm.trim_end()).trim_start().to_owned());
        self.files.push(Known { inode: Inode { dev: 0, ino: 0 }, path: None, pages: None, memory_of });
    }

    fn memory_ended(&mut self, pid: u32) {
        self.mapped.remove(&pid);
    }

    fn numbered(&mut self, inode: Inode, object: u32, pid: u32) {
        debug_assert_eq!(object as usize, self.files.len());
        let mut found = self.find(inode, pid);
        // Of several names the kernel tells the one that it looked up last: the process knows which
        // it used.
        if found.as_ref().is_some_and(|(_, metadata)| metadata.nlink() > 1) {
            found = self.of_process(inode, pid).or(found);
        }
        let length = found.as_ref().map(|(_, metadata)| pages(metadata));
        // A file whose name the kernel has forgotten has a number in the place of a path.
        let path = found.map(|(path, _)| path).filter(|path| path.is_absolute() && path.as_os_str() != "/");
        self.files.push(Known { inode, path, pages: length, memory_of: None });
    }
}

/// Device and place of a line of `mountinfo`.
fn mount(line: &str) -> Option<(u32, PathBuf)> {
    let mut words = line.split(' ').skip(2);
    let (major, minor) = words.next()?.split_once(':')?;
    let dev = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
    let place = words.nth(1)?.replace("\\040", " ");
    Some((dev, PathBuf::from(place)))
}

/// What a process has mapped.
fn maps(pid: u32) -> Vec<Mapping> {
    Mapping::parse_all(&fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default())
}

/// What of a file a mapping has between two addresses.
fn mapped(mapping: &Mapping, from: u64, to: u64) -> Option<(Inode, u64, u64)> {
    let inode = mapping.file.filter(|_| !mapping.is_shm)?;
    let (first, last) = ((from >> 12).max(mapping.pages.start), to.div_ceil(4096).min(mapping.pages.end));
    let pages = last.checked_sub(first)?;
    (pages > 0).then_some((inode, mapping.offset + first - mapping.pages.start, pages))
}

/// The root of a file system whose files can be opened by number.
fn by_number(place: &Path) -> Option<File> {
    let name = std::ffi::CString::new(place.as_os_str().as_bytes()).ok()?;
    // SAFETY: all zeros are a value of this structure of numbers.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends with a zero, and the kernel fills the structure.
    let found = unsafe { libc::statfs(name.as_ptr(), &mut about) } == 0;
    if !found || about.f_type as i64 != EXT {
        return None;
    }
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(place).ok()
}

/// A handle of ext4: number and generation. The generation 0 stands for any.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    ino: u32,
    generation: u32,
}

fn open_by_number(root: &File, ino: u32) -> Option<File> {
    let mut handle = Handle { bytes: 8, kind: 1, ino, generation: 0 };
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the structure is laid out as `struct file_handle` with its 8 bytes behind it, and
    // lives during the call.
    let fd = unsafe { libc::open_by_handle_at(root.as_raw_fd(), (&raw mut handle).cast(), flags) };
    // SAFETY: the descriptor is new, and nothing else owns it.
    (fd >= 0).then(|| unsafe { File::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo() {
        let line = "36 35 98:7 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount(line), Some((98 << 20 | 7, PathBuf::from("/mnt 2"))));
        assert_eq!(mount("36 35"), None);
        assert_eq!(mount(""), None);
    }

    #[test]
    fn a_file_of_this_process_is_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        fs::write(&path, vec![0; 10_000]).expect("writable");
        let open = File::open(&path).expect("there");
        let metadata = open.metadata().expect("there");
        let inode = Inode { dev: device(&metadata), ino: metadata.ino() };
        let mut names = Names::new();
        names.numbered(inode, 0, std::process::id());
        assert_eq!(names.pages(inode, std::process::id()), Some(3));
        let canonical = path.canonicalize().expect("there").display().to_string();
        assert_eq!(names.all(false), [(canonical, ObjectKind::File, Some(3))]);
        assert_eq!(names.all(true), [("file 0".to_owned(), ObjectKind::File, Some(3))]);
        assert_eq!(names.pages(Inode { dev: 0, ino: 1 }, std::process::id()), None);
    }

    #[test]
    fn a_file_of_two_names_has_the_one_that_its_process_used() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("there");
        let (used, other) = (root.join("used"), root.join("other"));
        fs::write(&used, "x").expect("writable");
        fs::hard_link(&used, &other).expect("a link");
        let open = File::open(&used).expect("there");
        // What looks it up last is another.
        drop(File::open(&other).expect("there"));
        let metadata = open.metadata().expect("there");
        let mut names = Names::new();
        names.numbered(Inode { dev: device(&metadata), ino: metadata.ino() }, 0, std::process::id());
        assert_eq!(names.all(false), [(used.display().to_string(), ObjectKind::File, Some(1))]);
    }

    #[test]
    fn a_file_without_a_process_is_searched_for() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("in")).expect("writable");
        let path = dir.path().join("in/file");
        fs::write(&path, "x").expect("writable");
        let metadata = fs::metadata(&path).expect("there");
        let mut names = Names::new();
        names.look_below(dir.path().to_owned());
        let inode = Inode { dev: device(&metadata), ino: metadata.ino() };
        names.files.push(Known { inode, path: None, pages: None, memory_of: None });
        names.search();
        assert_eq!(names.all(false), [(path.display().to_string(), ObjectKind::File, Some(1))]);
    }
}
