//! Files of ext2 to ext4 by their numbers, and the paths of open files.

use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The magic number of ext2 to ext4 in `statfs`.
const EXT: i64 = 0xEF53;

/// The root of a file system whose files can be opened by number.
pub(super) fn root(place: &Path) -> Option<File> {
    let name = CString::new(place.as_os_str().as_bytes()).ok()?;
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

/// Opens a file by its number.
pub(super) fn open(root: &File, ino: u64, flags: libc::c_int) -> Option<File> {
    let ino = u32::try_from(ino).ok()?;
    let mut handle = Handle { bytes: 8, kind: 1, ino, generation: 0 };
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: the structure is laid out as `struct file_handle` with its 8 bytes behind it, and
    // lives during the call.
    let fd = unsafe { libc::open_by_handle_at(root.as_raw_fd(), (&raw mut handle).cast(), flags) };
    // SAFETY: the descriptor is new, and nothing else owns it.
    (fd >= 0).then(|| unsafe { File::from_raw_fd(fd) })
}

/// Folder in which the kernel has a link for each open file of this process: walking to it each
/// time takes half of the time.
#[derive(Debug)]
pub(super) struct Links(Option<File>);

impl Links {
    pub(super) fn new() -> Links {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        Links(OpenOptions::new().read(true).custom_flags(flags).open("/proc/self/fd").ok())
    }

    /// The path of an open file.
    pub(super) fn path(&self, file: &File) -> Option<PathBuf> {
        let name = CString::new(file.as_raw_fd().to_string()).ok()?;
        let mut room = [0u8; libc::PATH_MAX as usize];
        let folder = self.0.as_ref()?.as_raw_fd();
        // SAFETY: the name ends with a zero, and the kernel writes no more than there is room for.
        let length = unsafe { libc::readlinkat(folder, name.as_ptr(), room.as_mut_ptr().cast(), room.len()) };
        Some(PathBuf::from(OsStr::from_bytes(room.get(..usize::try_from(length).ok()?)?)))
    }
}
