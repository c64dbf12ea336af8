//! System calls that glibc has a function for only since it is newer than the one that packages are
//! linked with, 2.17.

use std::ffi::CStr;

/// A new file without a path, in memory, that no program inherits; negative: `errno` says why not.
pub fn memfd_create(name: &CStr) -> libc::c_long {
    // SAFETY: the name ends with a zero, and outlives the call.
    unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), libc::MFD_CLOEXEC) }
}

/// Fills `bytes` at random; how many were, or negative.
pub fn getrandom(bytes: &mut [u8]) -> libc::c_long {
    // SAFETY: the call fills as many bytes as said.
    unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) }
}

/// The number of this thread.
pub fn gettid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}
