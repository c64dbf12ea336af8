//! Files by inode: their paths and lengths, while somebody uses them.
//!
//! On ext2, ext3 and ext4 the kernel opens a file by its number (`numbers`). Elsewhere the process
//! that uses it has it open or mapped. Files that are left are looked for at the end, in the
//! folders where programs ran (`search`). `mounts` says where file systems are, and which are
//! memory.

mod mounts;
mod numbers;
mod search;

use crate::assemble::{Files, NewFile};
use crate::event::Inode;
use crate::residency::{PIECE, Residency, pages_in_memory};
use crate::ring::now_ns;
use crate::scan::Vma;
use mounts::Mounts;
use numbers::Links;
use refault_trace::ObjectKind;
use rustc_hash::FxHashMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Facts of an object that has a number in records.
#[derive(Clone, Debug)]
struct KnownFile {
    inode: Inode,
    path: Option<PathBuf>,
    pages: Option<u64>,
    /// Its file system is memory.
    shmem: bool,
    /// Process whose memory it is; none: it is a file.
    memory_of: Option<String>,
}

/// Mappings of a process, and when they were read.
#[derive(Debug, Default)]
struct Mapped {
    all: Vec<Vma>,
    read: Option<Instant>,
}

/// Mappings are read again after this long at the earliest.
const REREAD: Duration = Duration::from_millis(5);

/// The files of this machine.
#[derive(Debug)]
pub struct Names {
    mounts: Mounts,
    links: Links,
    /// Files by their numbers in records.
    files: Vec<KnownFile>,
    /// Descriptors that were looked at for a process and did not help, so that they are not again
    /// and again.
    in_vain: FxHashMap<u32, u32>,
    /// Where a file can be opened as long as a process has it open or mapped.
    hints: FxHashMap<Inode, PathBuf>,
    /// Where files without a name are looked for.
    roots: Vec<PathBuf>,
    /// Mappings of a process when it was last looked at, by process.
    mapped: FxHashMap<u32, Mapped>,
}

/// Description of an object, for the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectDescription {
    /// Its name: a path, if that is known.
    pub name: String,
    /// A file, or anonymous memory.
    pub kind: ObjectKind,
    /// Length in pages; none: not known.
    pub pages: Option<u64>,
    /// Whether its file system is memory.
    pub shmem: bool,
}

/// A device as events have it.
pub(crate) fn device(metadata: &fs::Metadata) -> u32 {
    let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
    major << 20 | minor
}

/// The number of a file, as events have it.
pub(crate) fn inode(metadata: &fs::Metadata) -> Inode {
    Inode { dev: device(metadata), ino: metadata.ino() }
}

pub(crate) fn pages(metadata: &fs::Metadata) -> u64 {
    metadata.size().div_ceil(4096)
}

/// Opens a file, but nothing that waits: no pipe, and no device.
pub(crate) fn open_file(path: &std::path::Path) -> std::io::Result<File> {
    let open = |flags| OpenOptions::new().read(true).custom_flags(flags | libc::O_NONBLOCK).open(path);
    // The owner alone may say that the time of access is to stay.
    open(libc::O_NOATIME).or_else(|_| open(0))
}

impl Names {
    /// Reads what is mounted.
    pub fn new() -> Names {
        Names {
            mounts: Mounts::read(),
            links: Links::new(),
            files: Vec::new(),
            in_vain: FxHashMap::default(),
            hints: FxHashMap::default(),
            roots: Vec::new(),
            mapped: FxHashMap::default(),
        }
    }

    /// Names are looked for below this folder, at the end, before other places.
    pub fn look_below(&mut self, folder: PathBuf) {
        if !self.roots.contains(&folder) {
            self.roots.push(folder);
        }
    }

    /// A file can be opened at this path, as long as a process has it open or mapped.
    pub(crate) fn hint(&mut self, inode: Inode, path: PathBuf) {
        self.hints.insert(inode, path);
    }

    /// Whether files of a device are files of a disk that is mounted here.
    pub(crate) fn is_of_disk(&self, dev: u32) -> bool {
        self.mounts.has(dev) && !self.mounts.is_memory_here(dev)
    }

    /// A file that the kernel opens by its number.
    fn by_number(&self, inode: Inode) -> Option<(PathBuf, fs::Metadata)> {
        let file = numbers::open(self.mounts.by_number(inode.dev)?, inode.ino, libc::O_PATH)?;
        let metadata = file.metadata().ok().filter(|m| m.ino() == inode.ino)?;
        Some((self.links.path(&file)?, metadata))
    }

    /// A file to ask the kernel about, and not to be read.
    pub(crate) fn open(&self, inode: Inode) -> Option<File> {
        let is_it = |m: &fs::Metadata| m.is_file() && m.ino() == inode.ino;
        let readable = libc::O_RDONLY | libc::O_NOATIME | libc::O_NONBLOCK;
        let by_number = self.mounts.by_number(inode.dev).and_then(|root| numbers::open(root, inode.ino, readable));
        by_number.or_else(|| {
            let path = self.hints.get(&inode)?;
            fs::metadata(path).ok().filter(|m| is_it(m) && device(m) == inode.dev)?;
            open_file(path).ok().filter(|file| file.metadata().is_ok_and(|m| is_it(&m)))
        })
    }

    /// Looks which pages of a file are in memory, if that does not take long.
    fn look(&self, inode: Inode, metadata: Option<&fs::Metadata>) -> Residency {
        match metadata {
            Some(metadata) if !metadata.is_file() => Residency::Never,
            Some(metadata) if pages(metadata) > PIECE => Residency::Later,
            Some(metadata) => {
                let seen = self.open(inode).and_then(|file| pages_in_memory(&file, 0..pages(metadata)).ok());
                seen.map_or(Residency::Failed, |seen| Residency::Seen(seen, now_ns()))
            }
            // Internal files, such as that of a block device.
            None if !self.mounts.has(inode.dev) => Residency::Never,
            None => Residency::Failed,
        }
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
                    self.hints.insert(inode, entry.path());
                    return Some((fs::read_link(entry.path()).ok()?, metadata));
                }
            }
        }
        None
    }

    /// A file that was open or mapped somewhere.
    fn by_hint(&self, inode: Inode) -> Option<(PathBuf, fs::Metadata)> {
        let hint = self.hints.get(&inode)?;
        let is_it = |m: &fs::Metadata| m.ino() == inode.ino && device(m) == inode.dev;
        let metadata = fs::metadata(hint).ok().filter(is_it)?;
        // A path that is none of /proc is its own.
        Some((fs::read_link(hint).unwrap_or_else(|_| hint.clone()), metadata))
    }

    /// Mapping of a process at an address: as it was when it was last looked at, or now if nothing
    /// was there.
    fn mapping(&mut self, pid: u32, address: u64) -> Option<&Vma> {
        let page = address >> 12;
        let place = |all: &[Vma]| {
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
        self.by_number(inode).or_else(|| self.by_hint(inode)).or_else(|| self.of_process(inode, pid))
    }

    /// The length of a file in pages, and nothing else of it is kept.
    pub(crate) fn length(&mut self, inode: Inode, pid: u32) -> Option<u64> {
        let metadata = self.find(inode, pid).map(|(_, metadata)| metadata);
        self.hints.remove(&inode);
        metadata.filter(fs::Metadata::is_file).map(|metadata| pages(&metadata))
    }

    /// Descriptions of all objects, by their number in records.
    pub fn all(&self, anonymized: bool) -> Vec<ObjectDescription> {
        let of = |(at, file): (usize, &KnownFile)| {
            let kind = if file.memory_of.is_some() { ObjectKind::Anon } else { ObjectKind::File };
            let name = match (&file.path, &file.memory_of) {
                (_, Some(_)) if anonymized => format!("memory {at}"),
                _ if anonymized => format!("file {at}"),
                (_, Some(process)) => format!("memory of {process}"),
                (Some(path), _) => path.display().to_string(),
                (None, _) if file.shmem => format!("shared memory {}", file.inode.ino),
                (None, _) => unnamed(file.inode, self.mounts.has(file.inode.dev)),
            };
            ObjectDescription { name, kind, pages: file.pages, shmem: file.shmem }
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
        self.files.push(KnownFile {
            inode: Inode { dev: 0, ino: 0 },
            path: None,
            pages: None,
            shmem: false,
            memory_of,
        });
    }

    fn memory_ended(&mut self, pid: u32) {
        self.mapped.remove(&pid);
    }

    fn numbered(&mut self, inode: Inode, object: u32, pid: u32) -> NewFile {
        debug_assert_eq!(object as usize, self.files.len());
        let shmem = self.mounts.is_memory(inode.dev, pid);
        let mut found = self.find(inode, pid);
        // The kernel tells the one of several names that it looked up last: the process knows which
        // it used.
        if found.as_ref().is_some_and(|(_, metadata)| metadata.nlink() > 1) {
            found = self.of_process(inode, pid).or(found);
        }
        let metadata = found.as_ref().map(|(_, metadata)| metadata);
        let look = if shmem { Residency::Never } else { self.look(inode, metadata) };
        let length = metadata.map(pages);
        // A file whose name the kernel has forgotten has a number in the place of a path.
        let path = found.map(|(path, _)| path).filter(|path| path.is_absolute() && path.as_os_str() != "/");
        self.files.push(KnownFile { inode, path, pages: length, shmem, memory_of: None });
        NewFile { pages: length, look, shmem }
    }
}

/// Mappings of a process.
fn maps(pid: u32) -> Vec<Vma> {
    Vma::parse_all(&fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default())
}

/// Part of a file that a mapping has between two addresses.
fn mapped(mapping: &Vma, from: u64, to: u64) -> Option<(Inode, u64, u64)> {
    let inode = mapping.file.filter(|_| !mapping.is_shm)?;
    let (first, last) = ((from >> 12).max(mapping.pages.start), to.div_ceil(4096).min(mapping.pages.end));
    let pages = last.checked_sub(first)?;
    (pages > 0).then_some((inode, mapping.offset + first - mapping.pages.start, pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_this_process_is_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        fs::write(&path, vec![0; 10_000]).expect("writable");
        let open = File::open(&path).expect("there");
        let metadata = open.metadata().expect("there");
        let inode = Inode { dev: device(&metadata), ino: metadata.ino() };
        let mut names = Names::new();
        let numbered = names.numbered(inode, 0, std::process::id());
        // Pages that were written are in memory.
        assert!(
            matches!(&numbered.look, Residency::Seen(pages, _) if pages[..] == *std::slice::from_ref(&(0..3))),
            "{numbered:?}"
        );
        assert_eq!(names.pages(inode, std::process::id()), Some(3));
        let canonical = path.canonicalize().expect("there").display().to_string();
        let about = |name: String| ObjectDescription { name, kind: ObjectKind::File, pages: Some(3), shmem: false };
        assert_eq!(names.all(false), [about(canonical)]);
        assert_eq!(names.all(true), [about("file 0".to_owned())]);
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
        // The name that is looked up last is another.
        drop(File::open(&other).expect("there"));
        let metadata = open.metadata().expect("there");
        let mut names = Names::new();
        names.numbered(inode(&metadata), 0, std::process::id());
        assert_eq!(names.all(false)[0].name, used.display().to_string());
    }
}
