//! State that the parent of this process gave it, and that the program is to find as it was:
//! standard descriptors that are closed, and limits that the manager has to keep, too, or raises
//! for itself.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use super::{PRELOAD, abi};
use crate::error::Error;
use refault_syscalls::machine;

/// Its file, as it is called in the maps of processes that have it.
pub(super) const PRELOAD_NAME: &str = "librefault_preload.so";

/// A bit for each standard descriptor that was closed when this process began.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// The runtime of the language opens `/dev/null` in the place of standard descriptors that are
/// closed, and then nobody can tell any more. Functions that are listed here are called before.
#[used]
// SAFETY: the loader calls what is in this section as functions of the C language; this one needs
// nothing to be set up.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for fd in 0..3 {
        // SAFETY: the call asks for a flag of a number, whatever it is the number of.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
}

/// Closes what was closed. For a child between `fork` and `exec`: nothing but system calls.
pub(super) fn close_what_was_closed() -> io::Result<()> {
    let closed = CLOSED.load(Ordering::Relaxed);
    for fd in (0..3).filter(|fd| closed & 1 << fd != 0) {
        // SAFETY: in this process nobody but the runtime, which opened it, has anything to do with
        // it; its only thread is this one.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// With fewer open files, no process could be served that starts a few others.
const FEWEST_OPEN_FILES: u64 = 64;

/// This process has some files open for each process that it serves, so it may have as many as it
/// can (`ulimit -n`), whatever the program may. Returns the program's limit; a limit that is too
/// small is refused.
pub(super) fn raise_open_files() -> Result<libc::rlimit, Error> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is filled by the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(Error::io("asking for the limit of open files")(io::Error::last_os_error()));
    }
    if limit.rlim_max < FEWEST_OPEN_FILES {
        return Err(Error::Unsupported(format!(
            "{} files may be open here (ulimit -n), and refault has some open for each process: raise that limit to {FEWEST_OPEN_FILES} or more",
            limit.rlim_max
        )));
    }
    // If that is refused, there are fewer processes.
    _ = set_open_files(libc::rlimit { rlim_cur: limit.rlim_max, ..limit });
    Ok(limit)
}

/// For a child between `fork` and `exec`, too: a system call.
pub(super) fn set_open_files(limit: libc::rlimit) -> io::Result<()> {
    // SAFETY: the structure outlives the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Refuses to serve programs from a process that is served itself: their memory is watched already,
/// and the two runs would wait for each other.
pub(super) fn check_not_served() -> Result<(), Error> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    match maps.lines().any(|line| line.contains(PRELOAD_NAME)) {
        true => Err(Error::Unsupported(
            "this is in a refault run already, which serves the memory of all programs that it starts: run it outside of that".into(),
        )),
        false => Ok(()),
    }
}

/// Refuses a limit on the size of files (`ulimit -f`) that is too small for what is shared with
/// programs. A swap file that it is too small for is a full one.
pub(super) fn check_file_limit() -> Result<(), Error> {
    let needed = PRELOAD.len().max(abi::SHARED_BYTES) as u64;
    match machine::limit("file_size_bytes") {
        Some(limit) if limit < needed => Err(Error::Unsupported(format!(
            "files may have no more than {limit} bytes here (ulimit -f), and what is shared with the program has {needed}: raise that limit"
        ))),
        _ => Ok(()),
    }
}
