//! Pages of a file that are in the page cache: the system call `cachestat` counts them, and
//! `mincore` says which they are, of a mapping that nobody touches. Neither brings a page in, nor
//! marks one as accessed.

use refault_syscalls::memory;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

const PAGE: u64 = 4096;

/// Pages that are looked at in one go: a GiB, which takes some milliseconds at most.
pub const PIECE: u64 = 1 << 18;

/// The number of the system call on all architectures (Linux 6.5).
const CACHESTAT: libc::c_long = 451;

/// How a look at a file went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Residency {
    /// These pages were in memory, ascending and apart; after this time, of the clock of events, no
    /// more was looked at.
    Seen(Vec<Range<u64>>, u64),
    /// It is too large to be looked at while others wait: [`crate::Assembler::looked`] tells.
    Later,
    /// The file could not be looked at.
    Failed,
    /// There is nothing to look at: memory that is no file of a disk.
    Never,
}

/// The pages of a range that are in memory, ascending and apart.
pub(crate) fn pages_in_memory(file: &File, pages: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let mut all = Vec::new();
    let mut first = pages.start;
    while first < pages.end {
        let piece = first..pages.end.min(first + PIECE);
        first = piece.end;
        for run in of_piece(file, piece)? {
            join(&mut all, run);
        }
    }
    Ok(all)
}

/// Whether any page is in memory; none: this kernel does not count them.
pub(crate) fn has_some(file: &File) -> io::Result<Option<bool>> {
    Ok(count(file, 0..0)?.map(|pages| pages > 0))
}

fn of_piece(file: &File, pages: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let length = pages.end - pages.start;
    let counted = count(file, pages.clone())?;
    match counted {
        Some(0) => return Ok(Vec::new()),
        Some(n) if n >= length => return Ok(vec![pages]),
        _ => {}
    }
    let runs = by_mapping(file, &pages)?;
    // The kernel answers "all of them" to those who may not write the file.
    let says_all = runs.first().is_some_and(|run| *run == pages);
    if says_all && (counted.is_some() || !is_root()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(runs)
}

fn join(all: &mut Vec<Range<u64>>, run: Range<u64>) {
    match all.last_mut() {
        Some(last) if last.end == run.start => last.end = run.end,
        _ => all.push(run),
    }
}

fn is_root() -> bool {
    // SAFETY: the call has no arguments, and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Number of pages of a range in memory, as the kernel counts them; an empty range is the whole
/// file.
fn count(file: &File, pages: Range<u64>) -> io::Result<Option<u64>> {
    let range = [pages.start * PAGE, (pages.end - pages.start) * PAGE];
    // In memory, dirty, being written, evicted, and evicted of late.
    let mut stat = [0u64; 5];
    // SAFETY: both arrays are as long as the structures of the system call, and outlive it.
    let done = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), stat.as_mut_ptr(), 0) };
    if done == 0 {
        return Ok(Some(stat[0]));
    }
    match io::Error::last_os_error() {
        e if matches!(e.raw_os_error(), Some(libc::ENOSYS)) => Ok(None),
        e => Err(e),
    }
}

fn by_mapping(file: &File, pages: &Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let length = (pages.end - pages.start) as usize;
    let bytes = length * PAGE as usize;
    let start = memory::map(Some((file, pages.start * PAGE)), bytes, false)?;
    let mut there = vec![0u8; length];
    let asked = memory::residency(start, &mut there);
    // SAFETY: it was mapped above, and nothing points into it.
    unsafe { memory::unmap(start, bytes)? };
    asked?;
    let mut runs = Vec::new();
    for (page, _) in (pages.start..).zip(&there).filter(|(_, there)| **there & 1 != 0) {
        join(&mut runs, page..page + 1);
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn advise(file: &File, advice: libc::c_int) {
        // SAFETY: advice on an open descriptor.
        assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) }, 0);
    }

    #[test]
    fn pages_that_are_read_are_in_memory_and_asking_brings_none_in() {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(&[7; 20 * PAGE as usize], 0).expect("writable");
        file.sync_all().expect("written");
        assert_eq!(pages_in_memory(&file, 0..20).expect("asked"), std::slice::from_ref(&(0..20)));
        advise(&file, libc::POSIX_FADV_DONTNEED);
        if !pages_in_memory(&file, 0..20).expect("asked").is_empty() {
            // A file system without a disk below it keeps what it has.
            return;
        }
        advise(&file, libc::POSIX_FADV_RANDOM);
        for page in [3, 4, 9] {
            file.read_exact_at(&mut [0; 1], page * PAGE).expect("there");
        }
        for _ in 0..2 {
            assert_eq!(pages_in_memory(&file, 0..20).expect("asked"), [3..5, 9..10]);
            assert_eq!(pages_in_memory(&file, 4..9).expect("asked"), std::slice::from_ref(&(4..5)));
        }
        assert_ne!(has_some(&file).expect("asked"), Some(false));
    }

    #[test]
    fn a_folder_cannot_be_asked() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = File::open(dir.path()).expect("there");
        assert!(by_mapping(&folder, &(0..4)).is_err());
    }
}
