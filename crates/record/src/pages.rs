//! Mappings of a file and of anonymous memory, a page at a time.

use refault_syscalls::{PAGE, memory};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A mapping, for as long as this lives.
#[derive(Debug)]
struct Vma {
    start: usize,
    bytes: usize,
}

impl Vma {
    /// Maps a file, or anonymous memory.
    fn new(file: Option<&File>, bytes: usize, writable: bool) -> io::Result<Vma> {
        Ok(Vma { start: memory::map(file.map(|file| (file, 0)), bytes, writable)?, bytes })
    }

    fn page(&self, page: u32) -> usize {
        let at = page as usize * PAGE;
        assert!(at < self.bytes, "page {page} is beyond the mapping");
        self.start + at
    }

    /// Whether a page is in memory, mapped or not.
    fn is_there(&self, page: u32) -> io::Result<bool> {
        let mut there = [0];
        memory::residency(self.page(page), &mut there)?;
        Ok(there[0] & 1 != 0)
    }

    fn touch(&self, page: u32, writes: bool) {
        let at = self.page(page) as *mut u8;
        // SAFETY: the page is one of a mapping that is readable, and writable where anybody writes.
        // Other processes do not know the file; volatile accesses are not left out.
        unsafe {
            match writes {
                true => at.write_volatile(1),
                false => _ = at.read_volatile(),
            }
        }
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is that of the mapping, and the advice changes nothing of its contents.
        unsafe { memory::advise(self.start, self.bytes, advice) }
    }
}

impl Drop for Vma {
    fn drop(&mut self) {
        // SAFETY: nothing points into it any more: addresses are given out for a call at a time.
        _ = unsafe { memory::unmap(self.start, self.bytes) };
    }
}

/// Pages of a trace at their numbers, of a file and of anonymous memory.
#[derive(Debug)]
pub(crate) struct TracePages {
    /// Asked, and never touched: `mincore` then looks into the page cache.
    asked: Vma,
    touched: Vma,
    anon: Vma,
}

impl TracePages {
    /// Mappings of `pages` pages of a file, and as much anonymous memory.
    pub(crate) fn new(file: &File, pages: u64) -> io::Result<TracePages> {
        let bytes = pages.max(1) as usize * PAGE;
        let anon = Vma::new(None, bytes, true)?;
        // A kernel without large pages says that it does not know the advice, which is as well.
        let _ = anon.advise(libc::MADV_NOHUGEPAGE);
        // SAFETY: advice on an open descriptor.
        match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) } {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        Ok(TracePages { asked: Vma::new(Some(file), bytes, false)?, touched: Vma::new(Some(file), bytes, true)?, anon })
    }

    pub(crate) fn is_file_there(&self, page: u32) -> io::Result<bool> {
        self.asked.is_there(page)
    }

    pub(crate) fn is_anon_there(&self, page: u32) -> io::Result<bool> {
        self.anon.is_there(page)
    }

    pub(crate) fn touch_file(&self, page: u32, writes: bool) {
        self.touched.touch(page, writes);
    }

    pub(crate) fn touch_anon(&self, page: u32, writes: bool) {
        self.anon.touch(page, writes);
    }

    /// Brings in this page and no other, without counting as an access.
    pub(crate) fn bring_in(&self, file: &File, page: u32) -> io::Result<()> {
        advise_page(file, page, libc::POSIX_FADV_WILLNEED)
    }

    /// Has this page leave memory.
    pub(crate) fn send_out(&self, file: &File, page: u32) -> io::Result<()> {
        advise_page(file, page, libc::POSIX_FADV_DONTNEED)
    }
}

fn advise_page(file: &File, page: u32, advice: libc::c_int) -> io::Result<()> {
    let at = i64::from(page) * PAGE as i64;
    // SAFETY: advice on an open descriptor.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), at, PAGE as i64, advice) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_there_once_they_are_touched() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(16 * PAGE as u64).expect("writable");
        let pages = TracePages::new(&file, 16).expect("mapped");
        assert!(!pages.is_file_there(3).expect("asked") && !pages.is_anon_there(3).expect("asked"));
        pages.bring_in(&file, 3).expect("advised");
        // A write takes no page but its own.
        pages.touch_file(3, true);
        pages.touch_anon(3, true);
        assert!(pages.is_file_there(3).expect("asked") && pages.is_anon_there(3).expect("asked"));
        assert!(!pages.is_file_there(9).expect("asked") && !pages.is_anon_there(9).expect("asked"));
    }
}
