//! Mappings of files and of anonymous memory.

use super::checked;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

/// Maps so many bytes of a file, from an offset on and shared, or of anonymous memory, private and
/// without a reserve of swap: the first address. Nothing is unmapped but by [`unmap`].
pub fn map(file: Option<(&File, u64)>, bytes: usize, writable: bool) -> io::Result<usize> {
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    let (flags, fd, offset) = match file {
        Some((file, offset)) => (libc::MAP_SHARED, file.as_raw_fd(), offset as libc::off_t),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1, 0),
    };
    // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, fd, offset) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start as usize) }
}

/// Unmaps a range.
///
/// # Safety
/// The range is of a mapping of the caller's, and nobody refers to it.
pub unsafe fn unmap(start: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: the caller's contract.
    checked(unsafe { libc::munmap(start as *mut _, bytes) }).map(drop)
}

/// Advises the kernel about a range (`madvise`).
///
/// # Safety
/// The range is of a mapping of the caller's; of advice that drops content, nobody refers to it, or
/// the thread that does is served when it faults.
pub unsafe fn advise(start: usize, bytes: usize, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: the caller's contract.
    checked(unsafe { libc::madvise(start as *mut _, bytes, advice) }).map(drop)
}

/// Asks which pages from an address on are in memory, mapped or not, without touching them: bit 0
/// of a byte for each.
pub fn residency(start: usize, pages: &mut [u8]) -> io::Result<()> {
    // SAFETY: the kernel writes a byte for each page of the range into `pages`, which has as many;
    // addresses without a mapping are an error.
    checked(unsafe { libc::mincore(start as *mut _, pages.len() * super::PAGE, pages.as_mut_ptr()) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE;

    #[test]
    fn pages_are_in_memory_once_they_are_touched() {
        let start = map(None, 4 * PAGE, true).unwrap();
        // SAFETY: the range is this mapping, and the advice changes no content.
        _ = unsafe { advise(start, 4 * PAGE, libc::MADV_NOHUGEPAGE) };
        // SAFETY: the second page of a mapping that nobody else knows.
        unsafe { ((start + PAGE) as *mut u8).write_volatile(1) };
        let mut there = [0; 4];
        residency(start, &mut there).unwrap();
        assert_eq!(there.map(|byte| byte & 1), [0, 1, 0, 0]);
        // SAFETY: nobody refers to it.
        unsafe { unmap(start, 4 * PAGE).unwrap() };
        assert!(residency(start, &mut there).is_err(), "no mapping is there");
    }
}
