//! System calls that the recorder, the pager and the command share, each once.
//!
//! | file | contents |
//! |---|---|
//! | `pagemap` | entries of `/proc/PID/pagemap`, and the request `PAGEMAP_SCAN` |
//! | `uffd` | userfaultfd: numbers, structures, descriptors |
//! | `maps` | lines of `/proc/PID/maps` |
//! | `memory` | mappings of files and of anonymous memory, advice, `mincore` |
//! | `heap`, `bound` | the allocator of the programs, and a bound on what it takes |
//! | `machine`, `file_limit` | sizes and limits that the system tells; writes beyond `ulimit -f` |
//! | `newer` | calls that old C libraries have no function for |
//!
//! It imports no crate of the workspace, decides nothing, and injects no faults: the pager does
//! that around the calls.
#![deny(missing_docs)]

mod bound;
mod file_limit;
mod heap;
pub mod machine;
pub mod maps;
pub mod memory;
pub mod newer;
pub mod pagemap;
pub mod uffd;

pub use bound::{advise_when_full, bound_heap, resident_bytes, without_bound};
pub use file_limit::say_file_limit;
pub use heap::HugeHeap;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Bytes of a page: the programs know machines with pages of 4 KiB.
pub const PAGE: usize = 4096;

/// The descriptor that a system call returned, or the error that it set.
///
/// # Safety
/// The number is an error (negative), or a descriptor that is new and that nothing else owns.
pub unsafe fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: the caller's contract.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The result of a call that returns a negative number and sets `errno` where it fails.
fn checked<T: Copy + Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
}
