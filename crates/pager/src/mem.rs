//! Anonymous memory by system call, and what the kernel says about its pages.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::uffd::PAGE;

/// An anonymous private mapping, unmapped when dropped.
///
/// It never has huge pages (they would have to be split page by page) and children do not inherit it: a child has no one who
/// serves its faults, and would read zeros where its parent has data.
#[derive(Debug)]
pub struct Mapping {
    start: usize,
    len: usize,
}

impl Mapping {
    /// Maps so many bytes, a multiple of the page size. No memory is used until it is touched.
    pub fn new(len: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = Mapping { start: start as usize, len };
        mapping.advise(libc::MADV_DONTFORK)?;
        // A kernel without huge pages does not know this one.
        _ = mapping.advise(libc::MADV_NOHUGEPAGE);
        Ok(mapping)
    }

    /// Its first address.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// Whether the address is inside.
    pub fn contains(&self, address: usize) -> bool {
        (self.start..self.start + self.len).contains(&address)
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is this mapping, and neither advice given here changes its content.
        let result = unsafe { libc::madvise(self.start as *mut _, self.len, advice) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Whoever writes to it gets a signal from now on.
    pub(crate) fn forbid_writes(&self) -> io::Result<()> {
        // SAFETY: the range is this mapping, and its content stays as it is.
        let result = unsafe { libc::mprotect(self.start as *mut _, self.len, libc::PROT_READ) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Drops the pages of a part of it: they are missing afterwards, and their content is lost.
    ///
    /// # Safety
    /// Nobody refers to them, or whoever does is served when it faults.
    pub unsafe fn discard(&self, address: usize, len: usize) -> io::Result<()> {
        debug_assert!(self.contains(address) && address + len <= self.start + self.len);
        // SAFETY: the range is inside this mapping; that nobody is surprised is the caller's contract.
        let result = unsafe { libc::madvise(address as *mut _, len, libc::MADV_DONTNEED) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone; those who were given addresses of it had to let go before it was dropped.
        unsafe { libc::munmap(self.start as *mut _, self.len) };
    }
}

/// `/proc/self/pagemap`: what is in the page tables of this process.
#[derive(Debug)]
pub struct Pagemap(File);

impl Pagemap {
    /// Opens it.
    pub fn open() -> io::Result<Pagemap> {
        Ok(Pagemap(File::open("/proc/self/pagemap")?))
    }

    /// Whether each of `n` pages from `address` on has content (in memory, or where the kernel itself swapped it to).
    pub fn populated(&self, address: usize, n: usize) -> io::Result<Vec<bool>> {
        const PRESENT_OR_SWAPPED: u64 = 3 << 62;
        let mut bytes = vec![0; n * 8];
        self.0.read_exact_at(&mut bytes, (address / PAGE * 8) as u64)?;
        let entries = bytes.chunks_exact(8).map(|b| u64::from_ne_bytes(b.try_into().expect("8 bytes")));
        Ok(entries.map(|e| e & PRESENT_OR_SWAPPED != 0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pagemap_sees_what_was_touched_and_what_was_discarded() {
        let m = Mapping::new(4 * PAGE).unwrap();
        let map = Pagemap::open().unwrap();
        // SAFETY: the second page of a mapping that nobody else knows.
        unsafe { *((m.start() + PAGE) as *mut u8) = 1 };
        assert_eq!(map.populated(m.start(), 4).unwrap(), [false, true, false, false]);
        // SAFETY: nobody refers to it.
        unsafe { m.discard(m.start() + PAGE, PAGE).unwrap() };
        assert_eq!(map.populated(m.start(), 4).unwrap(), [false; 4]);
    }
}
