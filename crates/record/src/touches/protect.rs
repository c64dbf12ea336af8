//! Memory of another process that is write-protected in a way that the kernel lifts by itself: a
//! userfaultfd of that process, with asynchronous protection (Linux 6.7). Pages that were written
//! since are then known by `PAGEMAP_SCAN`.
//!
//! Only a process itself can make one, so that it is made in its place ([`super::inject`]), taken
//! over, and closed there. It ends with the recorder.

use super::inject::Traced;
use crate::scan::Vma;
use refault_syscalls::owned;
use refault_syscalls::uffd::{self, REGISTER_MODE_WP, Range, Register, UFFDIO_REGISTER, UffdFeature};
use std::os::fd::{AsRawFd, OwnedFd};

/// Write protection that the kernel lifts by itself, also where there is no page yet.
const FEATURES: u64 = UffdFeature::PAGEFAULT_FLAG_WP.bit | UffdFeature::WP_UNPOPULATED.bit | UffdFeature::WP_ASYNC.bit;

#[derive(Debug)]
pub(super) struct Protection {
    uffd: OwnedFd,
}

impl Protection {
    /// Opens the protection of a process.
    pub(super) fn of(pid: u32) -> Result<Protection, String> {
        // SAFETY: takes numbers, and gives a new descriptor.
        let handle = unsafe { owned(libc::syscall(libc::SYS_pidfd_open, pid, 0)) }.map_err(|e| e.to_string())?;
        let traced = Traced::stop(pid)?;
        let made = traced.calls(|call| {
            let number = call([libc::SYS_userfaultfd as u64, libc::O_CLOEXEC as u64, 0, 0])
                .map_err(|e| format!("userfaultfd: {e}"))?;
            // SAFETY: takes a descriptor of ours that is open, and numbers; gives a new descriptor.
            let ours = unsafe { owned(libc::syscall(libc::SYS_pidfd_getfd, handle.as_raw_fd(), number, 0)) };
            let closed = call([libc::SYS_close as u64, number, 0, 0]);
            closed.and(ours).map_err(|e| format!("the userfaultfd of a process: {e}"))
        });
        drop(traced);
        let protection = Protection { uffd: made?? };
        uffd::handshake(&protection.uffd, FEATURES).map_err(|e| format!("userfaultfd: {e}"))?;
        Ok(protection)
    }

    /// Watches the private memory of these mappings that can be written. Memory that is watched
    /// already stays so; memory that somebody else watches, or that cannot be watched, is left
    /// alone.
    pub(super) fn watch(&self, mappings: &[Vma]) {
        for mapping in mappings.iter().filter(|m| m.writable && !m.shared) {
            let (start, end) = (mapping.pages.start << 12, mapping.pages.end << 12);
            let range = Range { start, len: end - start };
            let mut arg = Register { range, mode: REGISTER_MODE_WP, ioctls: 0 };
            // SAFETY: the structure is that of the request, which is about the memory of the other
            // process: writes to it are let through by the kernel.
            let _ = unsafe { uffd::request(&self.uffd, UFFDIO_REGISTER, &mut arg) };
        }
    }
}

/// Whether a userfaultfd of this kernel can do that.
pub(super) fn is_possible() -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("it works on x86-64 only".to_owned());
    }
    let fd = uffd::open(false).map_err(|e| format!("userfaultfd: {e}"))?;
    uffd::handshake(&fd, FEATURES).map(drop).map_err(|e| match e.raw_os_error() {
        Some(libc::EINVAL) => "no asynchronous write protection in this kernel (Linux 6.7)".to_owned(),
        _ => format!("userfaultfd: {e}"),
    })
}
