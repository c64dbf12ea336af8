//! Memory of another process that is write-protected in a way that the kernel lifts by itself: a
//! userfaultfd of that process, with asynchronous protection (Linux 6.7). Pages that were written
//! since are then known by `PAGEMAP_SCAN`.
//!
//! Only a process itself can make one, so that it is made in its place ([`super::inject`]), taken
//! over, and closed there. It ends with the recorder.

use super::inject::Traced;
use crate::scan::Mapping;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const API: u64 = 0xAA;
/// Write protection that the kernel lifts by itself, also where there is no page yet.
const FEATURES: u64 = 1 << 0 | 1 << 13 | 1 << 15;
const MODE_WP: u64 = 2;

const fn ioctl(number: u64, size: usize) -> libc::c_ulong {
    3 << 30 | (size as libc::c_ulong) << 16 | 0xAA << 8 | number as libc::c_ulong
}

/// Arguments of `UFFDIO_API`, and of `UFFDIO_REGISTER`, as the manual page has them.
type Api = [u64; 3];
type Register = [u64; 4];
const UFFDIO_API: libc::c_ulong = ioctl(0x3F, size_of::<Api>());
const UFFDIO_REGISTER: libc::c_ulong = ioctl(0x00, size_of::<Register>());

#[derive(Debug)]
pub(super) struct Protection {
    uffd: OwnedFd,
}

impl Protection {
    /// Opens the protection of a process.
    pub(super) fn of(pid: u32) -> Result<Protection, String> {
        // SAFETY: takes numbers.
        let handle = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).map_err(|e| e.to_string())?;
        let traced = Traced::stop(pid)?;
        let made = traced.calls(|call| {
            let number = call([libc::SYS_userfaultfd as u64, libc::O_CLOEXEC as u64, 0, 0])
                .map_err(|e| format!("userfaultfd: {e}"))?;
            // SAFETY: takes a descriptor of ours that is open, and numbers.
            let ours = owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, handle.as_raw_fd(), number, 0) });
            let closed = call([libc::SYS_close as u64, number, 0, 0]);
            closed.and(ours).map_err(|e| format!("the userfaultfd of a process: {e}"))
        });
        drop(traced);
        let protection = Protection { uffd: made?? };
        protection.ioctl(UFFDIO_API, &mut [API, FEATURES, 0]).map_err(|e| format!("userfaultfd: {e}"))?;
        Ok(protection)
    }

    /// Watches the private memory of these mappings that can be written. Memory that is watched
    /// already stays so; memory that somebody else watches, or that cannot be watched, is left
    /// alone.
    pub(super) fn watch(&self, mappings: &[Mapping]) {
        for mapping in mappings.iter().filter(|m| m.writable && !m.shared) {
            let (start, end) = (mapping.pages.start << 12, mapping.pages.end << 12);
            let _ = self.ioctl(UFFDIO_REGISTER, &mut [start, end - start, MODE_WP, 0]);
        }
    }

    fn ioctl<const N: usize>(&self, number: libc::c_ulong, argument: &mut [u64; N]) -> io::Result<()> {
        // SAFETY: the argument has the size that the number says, and lives during the call. The
        // memory that these requests are about is that of the other process.
        let done = unsafe { libc::ioctl(self.uffd.as_raw_fd(), number, argument.as_mut_ptr()) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: the descriptor is new, and nothing else owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a userfaultfd of this kernel can do that.
pub(super) fn is_possible() -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("it works on x86-64 only".to_owned());
    }
    // SAFETY: takes numbers.
    let uffd = owned(unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) });
    let uffd = uffd.map_err(|e| format!("userfaultfd: {e}"))?;
    Protection { uffd }.ioctl(UFFDIO_API, &mut [API, FEATURES, 0]).map_err(|e| match e.raw_os_error() {
        Some(libc::EINVAL) => "no asynchronous write protection in this kernel (Linux 6.7)".to_owned(),
        _ => format!("userfaultfd: {e}"),
    })
}
