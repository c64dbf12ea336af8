//! The swap file: a page a slot, in a file without a name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use super::polled::PolledReads;
use super::ring::Ring;
use super::{Page, PageBuf, Store, StoreError, Usage};
use crate::calls::{self, Call, CallFault};
use crate::uffd::PAGE;

/// How a swap file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SwapIo {
    /// By `pwritev`, neighbours in one call, one call after the other.
    #[default]
    Calls,
    /// The calls of a batch by io_uring, at once, if there are several; else, and where it is not
    /// allowed, by `pwritev`.
    Ring,
}

/// A file that has no name (so it is gone when the process is, whatever ends it), that only its
/// owner may read, and that goes round the page cache where the file system allows it.
#[derive(Debug)]
pub struct FileStore {
    file: File,
    direct: bool,
    slots: u32,
    wanted: SwapIo,
    /// Made when a batch is written for the first time.
    ring: OnceLock<Option<Mutex<Ring>>>,
    /// `None`: reads sleep.
    polled: Option<PolledReads>,
    held: Mutex<Held>,
}

/// Content of the file.
#[derive(Debug, Default)]
struct Held {
    /// Slots that hold a page, a bit each. A word is a part of the file.
    slots: Vec<u64>,
    /// Parts in which there ever was a page, a bit each.
    parts: Vec<u64>,
    pages: u64,
}

/// Slots of a part of the file.
const PART: usize = u64::BITS as usize;

impl Held {
    fn mark(&mut self, slot: u32, holds: bool) {
        let (word, bit) = (slot as usize / PART, 1 << (slot as usize % PART));
        if self.slots.len() <= word {
            self.slots.resize(word + 1, 0);
            self.parts.resize(word / PART + 1, 0);
        }
        if (self.slots[word] & bit != 0) != holds {
            self.slots[word] ^= bit;
            self.parts[word / PART] |= 1 << (word % PART);
            self.pages = if holds { self.pages + 1 } else { self.pages - 1 };
        }
    }

    /// Slots of parts in which there ever was a page, as few ranges.
    fn touched(&self) -> Vec<std::ops::Range<usize>> {
        let is_touched = |&part: &usize| self.parts[part / PART] & 1 << (part % PART) != 0;
        let touched: Vec<usize> = (0..self.slots.len()).filter(is_touched).collect();
        let runs = touched.chunk_by(|a, b| a + 1 == *b);
        runs.map(|run| run[0] * PART..(run[run.len() - 1] + 1) * PART).collect()
    }
}

impl FileStore {
    /// A file in a directory, of at most `slots` pages.
    pub fn new(directory: &Path, slots: u32) -> io::Result<FileStore> {
        FileStore::with_io(directory, slots, SwapIo::default())
    }

    /// Makes threads that read poll for the page rather than sleep until it is there, while the
    /// device is fast and there is io_uring.
    pub fn polling(mut self) -> FileStore {
        self.polled = Some(PolledReads::default());
        self
    }

    /// The same, written in a way of one's choice.
    pub fn with_io(directory: &Path, slots: u32, swap_io: SwapIo) -> io::Result<FileStore> {
        let (file, direct) = match nameless(directory, libc::O_DIRECT) {
            Ok(file) => (file, true),
            // Some file systems have no direct I/O.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => (nameless(directory, 0)?, false),
            Err(e) => return Err(e),
        };
        Ok(FileStore {
            file,
            direct,
            slots,
            wanted: swap_io,
            ring: OnceLock::new(),
            polled: None,
            held: Mutex::default(),
        })
    }

    /// Whether it goes round the page cache. Where it does not, its pages take memory that nobody
    /// counts but the kernel.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// How it is written.
    pub fn swap_io(&self) -> SwapIo {
        if self.ring().is_some() { SwapIo::Ring } else { SwapIo::Calls }
    }

    fn ring(&self) -> Option<&Mutex<Ring>> {
        let make = || if self.wanted == SwapIo::Ring { Ring::new().ok().map(Mutex::new) } else { None };
        self.ring.get_or_init(make).as_ref()
    }

    /// Writes runs of neighbours, each from the first slot on; whether each was written in full.
    fn write_runs(&self, runs: &[(u32, Vec<libc::iovec>)]) -> Vec<bool> {
        let calls: Vec<_> = runs.iter().map(|(first, pages)| (at(*first), &pages[..])).collect();
        // One call gains nothing by a ring.
        let ring = if calls.len() > 1 { self.ring() } else { None };
        let results = match ring.map(Mutex::try_lock) {
            // SAFETY: the pages are borrowed by the caller of this, for as long as it takes.
            Some(Ok(mut ring)) => unsafe { ring.write(&self.file, &calls) },
            // Or another thread uses the ring.
            _ => calls.iter().map(|(at, pages)| pwritev(&self.file, pages, *at)).collect(),
        };
        results.iter().zip(&calls).map(|(&n, (_, pages))| n == (pages.len() * PAGE) as isize).collect()
    }

    /// As `preadv`.
    fn read_parts(&self, parts: &[libc::iovec], at: u64) -> io::Result<usize> {
        // SAFETY: the parts are pages, or parts of one, that nobody else refers to and that outlive
        // the call; any bytes are a valid page.
        let polled = self.polled.as_ref().and_then(|polled| unsafe { polled.read(&self.file, parts, at) });
        polled.unwrap_or_else(|| {
            // SAFETY: as above.
            let n = unsafe { libc::preadv(self.file.as_raw_fd(), parts.as_ptr(), parts.len() as i32, at as i64) };
            usize::try_from(n).map_err(|_| io::Error::last_os_error())
        })
    }

    /// A file that ends before the page is an error of kind UnexpectedEof.
    fn read_all(&self, page: &mut Page, at: u64) -> io::Result<()> {
        calls::read_exact(Call::SwapRead, page, |part, done| {
            let part = libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
            self.read_parts(&[part], at + done as u64)
        })
    }

    fn mark(&self, slot: u32, holds: bool) {
        self.held().mark(slot, holds);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn holds(&self, slot: u32) -> bool {
        self.held().slots.get(slot as usize / PART).is_some_and(|w| w & 1 << (slot as usize % PART) != 0)
    }
}

impl Drop for FileStore {
    /// Pages were written here and there, so the file is thousands of extents. A file system that
    /// is mounted with `discard` tells the device of each of them by itself when the file goes,
    /// which took half a minute. So its parts are made whole first; that writes nothing. Where this
    /// cannot be done, the file goes as it is.
    fn drop(&mut self) {
        let how = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
        for run in self.held().touched() {
            let (at, len) = ((run.start * PAGE) as libc::off_t, (run.len() * PAGE) as libc::off_t);
            // SAFETY: the call takes numbers; nobody reads this file any more.
            if unsafe { libc::fallocate(self.file.as_raw_fd(), how, at, len) } != 0 {
                return;
            }
        }
    }
}

/// The directory for swap files where none is named: the first of `TMPDIR`, `/var/tmp` and `/tmp`
/// in which a file can be made, and that is not in memory itself.
pub fn swap_directory() -> Option<PathBuf> {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from).into_iter();
    let mut all = named.chain(["/var/tmp".into(), "/tmp".into()]);
    all.find(|dir| !is_in_memory(dir) && nameless_file(dir).is_ok())
}

/// Whether the files of a directory take memory, and go nowhere else.
fn is_in_memory(directory: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58F6;
    let Ok(name) = std::ffi::CString::new(directory.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: the name ends in a zero byte; the structure is plain data that the call fills.
    unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        libc::statfs(name.as_ptr(), &raw mut about) == 0 && [TMPFS, RAMFS].contains(&(about.f_type as u64))
    }
}

/// A file without a name, that only its owner may read.
pub fn nameless_file(directory: &Path) -> io::Result<File> {
    nameless(directory, 0)
}

fn nameless(directory: &Path, flags: libc::c_int) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match calls::made(Call::OpenSwap, || options.clone().custom_flags(libc::O_TMPFILE | flags).open(directory)) {
        // Some file systems have no files without a name: it has one for a moment.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {}
        other => return other,
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(".refault-swap-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = directory.join(name);
    let file = calls::made(Call::OpenSwap, || options.create_new(true).custom_flags(flags).open(&path))?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn at(slot: u32) -> u64 {
    u64::from(slot) * PAGE as u64
}

/// How many bytes were written: -1 if it failed.
fn pwritev(file: &File, pages: &[libc::iovec], at: u64) -> isize {
    let written = calls::moved(Call::SwapWrite, pages.len() * PAGE, |most| {
        let n = (most / PAGE).max(1) as libc::c_int;
        // SAFETY: the pages can be read; nothing is written to them; there are as many.
        let n = unsafe { libc::pwritev(file.as_raw_fd(), pages.as_ptr(), n, at as libc::off_t) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    });
    written.map_or(-1, |n| n as isize)
}

fn write_all(file: &File, page: &Page, at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < PAGE {
        let part = |len: usize| file.write_at(&page[done..done + len], at + done as u64);
        match calls::moved(Call::SwapWrite, PAGE - done, part) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn is_aligned(page: &Page) -> bool {
    page.as_ptr().addr().is_multiple_of(PAGE)
}

/// Result of a run of `pages` pages: less than all of it is an error.
fn whole(n: io::Result<usize>, pages: usize) -> Result<(), StoreError> {
    match n {
        Ok(n) if n == pages * PAGE => Ok(()),
        Ok(_) => Err(StoreError::Io(io::ErrorKind::UnexpectedEof.into())),
        Err(e) => Err(StoreError::Io(e)),
    }
}

impl Store for FileStore {
    fn write(&self, slot: u32, page: &Page) -> Result<(), StoreError> {
        self.mark(slot, false);
        if slot >= self.slots {
            return Err(StoreError::Full);
        }
        let result = match is_aligned(page) {
            true => write_all(&self.file, page, at(slot)),
            false => {
                let mut buffer = PageBuf::default();
                buffer.0.copy_from_slice(page);
                write_all(&self.file, &buffer.0, at(slot))
            }
        };
        result.map_err(|e| match e.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => StoreError::Full,
            _ => StoreError::Io(e),
        })?;
        self.mark(slot, true);
        Ok(())
    }

    fn write_many(&self, pages: &[(u32, &Page)]) -> Vec<Result<(), StoreError>> {
        let fit = |&&(slot, page): &&(u32, &Page)| slot < self.slots && is_aligned(page);
        let mut order: Vec<usize> = (0..pages.len()).filter(|&i| fit(&&pages[i])).collect();
        order.sort_unstable_by_key(|&i| pages[i].0);
        order.iter().for_each(|&i| self.mark(pages[i].0, false));
        let runs: Vec<&[usize]> = order.chunk_by(|&a, &b| pages[a].0 + 1 == pages[b].0).collect();
        let iovec = |&i: &usize| libc::iovec { iov_base: pages[i].1.as_ptr().cast_mut().cast(), iov_len: PAGE };
        let calls: Vec<_> = runs.iter().map(|run| (pages[run[0]].0, run.iter().map(iovec).collect())).collect();
        let mut written = vec![false; pages.len()];
        for (run, _) in runs.iter().zip(self.write_runs(&calls)).filter(|(_, whole)| *whole) {
            for &i in *run {
                self.mark(pages[i].0, true);
                written[i] = true;
            }
        }
        // Pages that were not written in full are written by themselves, which says what is wrong.
        let each = pages.iter().zip(written);
        each.map(|(&(slot, page), written)| if written { Ok(()) } else { self.write(slot, page) }).collect()
    }

    fn read(&self, slot: u32, page: &mut Page) -> Result<(), StoreError> {
        if !self.holds(slot) {
            return Err(StoreError::Absent);
        }
        let result = match is_aligned(page) {
            true => self.read_all(page, at(slot)),
            false => {
                let mut buffer = PageBuf::default();
                let result = self.read_all(&mut buffer.0, at(slot));
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

    fn takes_no_memory(&self, slot: u32) -> bool {
        self.holds(slot)
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
        let read = |n: usize| self.read_parts(&parts[..n], at(first));
        let n = match calls::next(Call::SwapRead) {
            Some(CallFault::Fails(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(CallFault::Short(most)) => read((most / PAGE).min(parts.len())),
            Some(CallFault::Flips) => read(parts.len()).inspect(|_| pages[0][PAGE / 2] ^= 16),
            _ => read(parts.len()),
        };
        whole(n, pages.len())
    }

    fn usage(&self) -> Usage {
        let held = self.held();
        let ring = if self.ring.get().is_some_and(Option::is_some) { Ring::BYTES } else { 0 };
        let (polling, rings) = self.polled.as_ref().map(PolledReads::usage).unwrap_or_default();
        let memory_bytes = (held.slots.capacity() + held.parts.capacity()) as u64 * 8 + ring + rings;
        Usage { memory_bytes, file_pages: held.pages, polling, ..Usage::default() }
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

#[cfg(test)]
mod tests {
    use super::{Held, PART};

    #[test]
    fn parts_that_were_ever_written_are_remembered() {
        let mut held = Held::default();
        assert_eq!(held.touched(), []);
        for slot in [3, 70, 64 * 9 + 1, 64 * 200] {
            held.mark(slot, true);
            held.mark(slot, false);
        }
        held.mark(64 * 150, false);
        assert_eq!(held.touched(), [0..2 * PART, 9 * PART..10 * PART, 200 * PART..201 * PART]);
        assert_eq!(held.pages, 0);
    }
}
