//! The calls on the memory of a mapped file.

use std::sync::Arc;

use crate::calls;
use crate::core::{FillMode, Operations, Source};
use crate::pagemap::Pagemap;
use crate::threads::{fatal, say};
use crate::uffd::{PAGE, Uffd};

/// Tries of a call that the kernel asks to repeat, at most.
const ATTEMPTS: u32 = 8;

/// The memory of a mapped file.
pub(super) struct FileMemory {
    pub(super) uffd: Arc<Uffd>,
    pub(super) start: usize,
    pub(super) pages: usize,
    pub(super) pagemap: Pagemap,
}

impl FileMemory {
    fn address(&self, page: u32) -> usize {
        self.start + page as usize * PAGE
    }

    /// Pages that are in the page tables.
    pub(super) fn present(&self) -> std::io::Result<Vec<bool>> {
        self.pagemap.populated(self.start, self.pages)
    }
}

/// The kernel is short of memory for a moment.
fn pause(attempt: u32) {
    std::thread::sleep(std::time::Duration::from_millis(1 << attempt));
}

impl Operations for FileMemory {
    /// A page, of the buffer that it was read into.
    fn fill(&self, first: u32, _pages: usize, source: Source<'_>, mode: FillMode) -> usize {
        let Source::Content([content, ..]) = source else { return 0 };
        for attempt in 0..ATTEMPTS {
            // SAFETY: the source is a buffer of a page; the destination a page of the mapping,
            // which is watched for writes, too.
            let done = unsafe { self.uffd.copy_in_mode(self.address(first), content.0.as_ptr(), PAGE, mode) };
            match done.errno {
                0 if done.bytes == PAGE => return 1,
                libc::EEXIST => fatal("a page that is not in memory is in the page tables"),
                0 | libc::EAGAIN => {}
                libc::ENOMEM => pause(attempt),
                _ => break,
            }
        }
        0
    }

    fn protect(&self, page: u32, protect: bool) -> bool {
        for attempt in 0..ATTEMPTS {
            // SAFETY: the page is of the mapping, which is watched for writes and served.
            match unsafe { self.uffd.write_protect(self.address(page), PAGE, protect) } {
                Ok(()) => return true,
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(e) if e.raw_os_error() == Some(libc::ENOMEM) => pause(attempt),
                Err(_) => break,
            }
        }
        false
    }

    fn wake(&self, page: u32) {
        if let Err(e) = self.uffd.wake(self.address(page), PAGE) {
            // It would wait for ever.
            fatal(&format!("the thread that waits for a page cannot be woken: {e}"));
        }
    }

    fn poison(&self, page: u32, why: Option<&str>) {
        if let Some(why) = why {
            say(&format!("page {page} of the file that is mapped at {:#x} is lost: {why}", self.start));
        }
        // SAFETY: the page is of the mapping, which is watched.
        if let Err(e) = unsafe { self.uffd.poison_for_certain(self.address(page)) } {
            // A thread that touches it would wait for ever.
            fatal(&format!("a page that is lost cannot be marked: {e}"));
        }
    }

    fn discard(&self, first: u32, pages: usize) -> std::io::Result<()> {
        // SAFETY: the pages are of the mapping. Either they are protected and the file has what
        // they hold, or nothing is there but the mark of a page that is lost: nothing is lost, and
        // the thread that touches them faults and waits for the lock under which this is done.
        unsafe { calls::discard(self.address(first), pages * PAGE) }
    }

    fn is_present(&self, page: u32) -> bool {
        match self.pagemap.populated(self.address(page), 1) {
            Ok(there) => there[0],
            Err(e) => fatal(&format!("reading /proc/self/pagemap: {e}")),
        }
    }

    fn fatal(&self, what: &str) -> ! {
        fatal(what)
    }
}
