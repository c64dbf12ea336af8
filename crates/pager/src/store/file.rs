//! The swap file: a page a slot, in a file without a name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Page, PageBuf, Store, StoreError, Usage};
use crate::uffd::PAGE;

/// A file that has no name (so it is gone when the process is, whatever ends it), that only its owner may read, and that goes
/// round the page cache where the file system allows it.
#[derive(Debug)]
pub struct FileStore {
    file: File,
    direct: bool,
    slots: u32,
    /// Slots that hold a page, a bit each.
    held: Mutex<(Vec<u64>, u64)>,
}

impl FileStore {
    /// A file in a directory, of at most so many pages.
    pub fn new(directory: &Path, slots: u32) -> io::Result<FileStore> {
        let (file, direct) = match nameless(directory, libc::O_DIRECT) {
            Ok(file) => (file, true),
            // Some file systems have no direct I/O.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => (nameless(directory, 0)?, false),
            Err(e) => return Err(e),
        };
        Ok(FileStore { file, direct, slots, held: Mutex::default() })
    }

    /// Whether it goes round the page cache. Where it does not, its pages take memory that nobody counts but the kernel.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    fn mark(&self, slot: u32, holds: bool) {
        let mut held = self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        if held.0.len() <= word {
            held.0.resize(word + 1, 0);
        }
        if (held.0[word] & bit != 0) != holds {
            held.0[word] ^= bit;
            held.1 = if holds { held.1 + 1 } else { held.1 - 1 };
        }
    }

    pub(super) fn holds(&self, slot: u32) -> bool {
        let held = self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        held.0.get(slot as usize / 64).is_some_and(|w| w & 1 << (slot % 64) != 0)
    }
}

/// A file without a name, that only its owner may read.
pub fn nameless_file(directory: &Path) -> io::Result<File> {
    nameless(directory, 0)
}

fn nameless(directory: &Path, flags: libc::c_int) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE | flags).open(directory) {
        // Some file systems have no files without a name: it has one for a moment.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {}
        other => return other,
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(".refault-swap-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = directory.join(name);
    let file = options.create_new(true).custom_flags(flags).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn at(slot: u32) -> u64 {
    u64::from(slot) * PAGE as u64
}

fn is_aligned(page: &Page) -> bool {
    page.as_ptr().addr().is_multiple_of(PAGE)
}

/// What became of a run of so many pages: less than all of it is an error.
fn whole(n: isize, pages: usize) -> Result<(), StoreError> {
    match usize::try_from(n) {
        Ok(n) if n == pages * PAGE => Ok(()),
        Ok(_) => Err(StoreError::Io(io::ErrorKind::UnexpectedEof.into())),
        Err(_) => Err(StoreError::Io(io::Error::last_os_error())),
    }
}

impl Store for FileStore {
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError> {
        self.mark(slot, false);
        if slot >= self.slots {
            return Err(StoreError::Full);
        }
        let result = match is_aligned(page) {
            true => self.file.write_all_at(page, at(slot)),
            false => {
                let mut buffer = PageBuf::default();
                buffer.0.copy_from_slice(page);
                self.file.write_all_at(&buffer.0, at(slot))
            }
        };
        result.map_err(|e| match e.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => StoreError::Full,
            _ => StoreError::Io(e),
        })?;
        self.mark(slot, true);
        Ok(())
    }

    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError> {
        if !self.holds(slot) {
            return Err(StoreError::Absent);
        }
        // A file that ends before the page is an error of kind UnexpectedEof.
        let result = match is_aligned(page) {
            true => self.file.read_exact_at(page, at(slot)),
            false => {
                let mut buffer = PageBuf::default();
                let result = self.file.read_exact_at(&mut buffer.0, at(slot));
                page.copy_from_slice(&buffer.0);
                result
            }
        };
        result.map_err(StoreError::Io)
    }

    fn free(&self, slot: u32) {
        self.mark(slot, false);
    }

    fn takes_runs(&self) -> bool {
        true
    }

    fn read_run(&self, first: u32, pages: &mut [&mut Page]) -> Result<(), StoreError> {
        let slots = first..first + pages.len() as u32;
        if !slots.clone().all(|slot| self.holds(slot)) {
            return Err(StoreError::Absent);
        }
        if !pages.iter().all(|p| is_aligned(p)) {
            return pages.iter_mut().zip(slots).try_for_each(|(page, slot)| self.read(slot, page));
        }
        let of = |p: &mut &mut Page| libc::iovec { iov_base: p.as_mut_ptr().cast(), iov_len: PAGE };
        let parts: Vec<libc::iovec> = pages.iter_mut().map(of).collect();
        // SAFETY: the parts are pages that nobody else refers to and that outlive the call; any bytes are a valid page.
        let n = unsafe { libc::preadv(self.file.as_raw_fd(), parts.as_ptr(), parts.len() as i32, at(first) as i64) };
        whole(n, pages.len())
    }

    fn usage(&self) -> Usage {
        let held = self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Usage { memory_bytes: held.0.capacity() as u64 * 8, file_pages: held.1, ..Usage::default() }
    }
}

#[cfg(test)]
impl FileStore {
    /// Permissions and link count: no name, no one else.
    pub(super) fn mode_and_links(&self) -> (u32, u64) {
        use std::os::unix::fs::MetadataExt;
        let m = self.file.metadata().expect("the file is open");
        (m.mode() & 0o777, m.nlink())
    }
}
