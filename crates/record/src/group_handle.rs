//! The folder of a memory cgroup by its number, without a walk through all: the number is what the
//! kernel's handle of the folder has.

use crate::hierarchy::Hierarchy;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

/// Type of a handle that is the number of a node of kernfs (`FILEID_KERNFS`).
const OF_KERNFS: i32 = 0xfe;

/// The head of a handle, and the number.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    id: [u8; 8],
}

/// A hierarchy whose groups can be opened by number.
#[derive(Debug)]
pub(crate) struct GroupHandles {
    root: File,
}

impl GroupHandles {
    /// The hierarchy; none: Linux is older than 5.5, or `CAP_DAC_READ_SEARCH` is lacking.
    pub(crate) fn new(hierarchy: &Hierarchy) -> Option<GroupHandles> {
        use std::os::unix::fs::MetadataExt as _;
        let root = File::open(&hierarchy.place).ok()?;
        let own = root.metadata().ok()?.ino();
        let handles = GroupHandles { root };
        handles.folder(own).ok().flatten().filter(|folder| *folder == hierarchy.place).map(|_| handles)
    }

    /// The folder of a group; none: it is gone.
    pub(crate) fn folder(&self, id: u64) -> io::Result<Option<PathBuf>> {
        let mut handle = Handle { bytes: 8, kind: OF_KERNFS, id: id.to_ne_bytes() };
        let (root, handle) = (self.root.as_raw_fd(), &raw mut handle);
        // SAFETY: the descriptor is open, and the handle has as many bytes as it says.
        let fd = unsafe { libc::syscall(libc::SYS_open_by_handle_at, root, handle, libc::O_PATH | libc::O_CLOEXEC) };
        if fd < 0 {
            let e = io::Error::last_os_error();
            return if e.raw_os_error() == Some(libc::ESTALE) { Ok(None) } else { Err(e) };
        }
        // SAFETY: the call gave a descriptor, which nobody else has.
        let opened = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_number() {
        let Some((hierarchy, handles)) = Hierarchy::find().ok().and_then(|h| Some((h.clone(), GroupHandles::new(&h)?)))
        else {
            return;
        };
        use std::os::unix::fs::MetadataExt as _;
        for entry in fs::read_dir(&hierarchy.place).expect("mounted").flatten().take(50) {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                assert_eq!(handles.folder(metadata.ino()).expect("allowed"), Some(entry.path()));
            }
        }
        assert_eq!(handles.folder(u64::MAX / 3).expect("allowed"), None, "no such group");
    }
}
