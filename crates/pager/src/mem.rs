//! Anonymous memory by system call.

use std::io;

use crate::calls::{self, Call};
pub use crate::pagemap::Pagemap;
use refault_syscalls::memory;

/// An anonymous private mapping, unmapped when dropped.
///
/// It never has huge pages (they would have to be split page by page) and children do not inherit
/// it: a child has no one who serves its faults, and would read zeros where its parent has data.
#[derive(Debug)]
pub struct AnonymousMapping {
    start: usize,
    len: usize,
    /// Process that made it. In a child of that process, something else may be at its address.
    process: u32,
}

impl AnonymousMapping {
    /// Maps `len` bytes, a multiple of the page size. No memory is used until it is touched.
    pub fn new(len: usize) -> io::Result<AnonymousMapping> {
        let start = calls::made(Call::Map, || memory::map(None, len, true))?;
        let mapping = AnonymousMapping { start, len, process: std::process::id() };
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

    /// Whether this process made it. A child of `fork` has neither the memory nor the threads that
    /// serve it.
    pub fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Whether the address is inside.
    pub fn contains(&self, address: usize) -> bool {
        (self.start..self.start + self.len).contains(&address)
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is this mapping, and neither advice given here changes its content.
        calls::made(Call::Advise, || unsafe { memory::advise(self.start, self.len, advice) })
    }

    /// A thread that writes to it gets a signal from now on.
    pub(crate) fn forbid_writes(&self) -> io::Result<()> {
        // SAFETY: the range is this mapping, and its content stays as it is.
        let make = || unsafe { libc::mprotect(self.start as *mut _, self.len, libc::PROT_READ) };
        calls::number(Call::ForbidWrites, make).map(drop)
    }

    /// Drops the pages of a part of it: they are missing afterwards, and their content is lost.
    ///
    /// # Safety
    /// No reference points into the range, or the faults of the thread that uses it are served.
    pub unsafe fn discard(&self, address: usize, len: usize) -> io::Result<()> {
        debug_assert!(self.contains(address) && address + len <= self.start + self.len);
        // SAFETY: the range is inside this mapping; that nobody is surprised is the caller's
        // contract.
        unsafe { calls::discard(address, len) }
    }
}

impl Drop for AnonymousMapping {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        // SAFETY: the mapping is ours alone; those who were given addresses of it had to let go
        // before it was dropped.
        _ = calls::made(Call::Unmap, || unsafe { memory::unmap(self.start, self.len) });
    }
}
