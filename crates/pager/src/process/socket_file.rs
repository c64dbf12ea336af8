//! A socket for agents in another network namespace, where the names of sockets are others.
//!
//! It is a file, which is removed at once: they come to it by the descriptor of this process, the
//! way by which their library was loaded (`/proc/PID/fd/N`).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The socket, which listens, and its file.
pub(super) struct SocketFile {
    pub(super) socket: OwnedFd,
    pub(super) file: OwnedFd,
}

/// `None`: no file can be made anywhere. Then there is the other socket alone.
pub(super) fn open() -> Option<SocketFile> {
    let places = [std::env::temp_dir(), PathBuf::from("/dev/shm"), PathBuf::from("/run"), PathBuf::from("/var/tmp")];
    places.iter().find_map(|dir| open_in(dir).ok())
}

/// In a directory of its own, so that nobody else comes before it is removed.
fn open_in(dir: &Path) -> io::Result<SocketFile> {
    let mut template = CString::new(dir.join("refault-XXXXXX").as_os_str().as_bytes())?.into_bytes_with_nul();
    // SAFETY: the call writes into the template, which ends in a zero byte.
    if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    template.pop();
    let own = PathBuf::from(std::ffi::OsStr::from_bytes(&template));
    let at = own.join("s");
    let made = bind(&at);
    _ = std::fs::remove_file(&at);
    _ = std::fs::remove_dir(&own);
    made
}

fn bind(at: &Path) -> io::Result<SocketFile> {
    let path = at.as_os_str().as_bytes();
    let checked = |result: libc::c_int| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) };
    // SAFETY: the address is plain data and as long as said; descriptors are new and ours.
    unsafe {
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        if path.len() >= address.sun_path.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in address.sun_path.iter_mut().zip(path) {
            *to = *from as libc::c_char;
        }
        let socket = checked(libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0))?;
        let socket = OwnedFd::from_raw_fd(socket);
        let len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        checked(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len))?;
        checked(libc::listen(socket.as_raw_fd(), 128))?;
        let name = CString::new(path)?;
        let file = checked(libc::open(name.as_ptr(), libc::O_PATH | libc::O_CLOEXEC))?;
        Ok(SocketFile { socket, file: OwnedFd::from_raw_fd(file) })
    }
}
