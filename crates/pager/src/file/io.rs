//! Requests of a mapped file to its file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::calls::{self, Call};
use crate::uffd::PAGE;

/// A file, or something that behaves like one in tests.
pub trait FileIo: Send + Sync {
    /// Its length.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads from an offset on; fewer bytes than asked for are no error, none are the end.
    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize>;

    /// Writes; perhaps fewer bytes than given.
    fn write_at(&self, from: &[u8], at: u64) -> io::Result<usize>;

    /// `fdatasync`.
    fn sync(&self) -> io::Result<()>;
}

/// A real file. Whole pages go round the page cache where the file system allows it, so that no
/// page is in memory twice.
#[derive(Debug)]
pub struct RealFile {
    file: File,
    direct: Option<File>,
}

impl RealFile {
    /// Opens it.
    pub fn open(path: &Path, writable: bool) -> io::Result<RealFile> {
        let options = || {
            let mut o = OpenOptions::new();
            o.read(true).write(writable);
            o
        };
        // A pipe would have this wait for who writes to it.
        let file = calls::made(Call::FileOpen, || options().custom_flags(libc::O_NONBLOCK).open(path))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        // Some file systems have no direct I/O.
        let direct = calls::made(Call::FileOpen, || options().custom_flags(libc::O_DIRECT).open(path)).ok();
        Ok(RealFile { file, direct })
    }

    /// Whether whole pages go round the page cache. Where they do not, the kernel keeps copies that
    /// nobody counts here.
    pub fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Direct I/O takes aligned places, offsets and lengths.
    fn direct_for(&self, bytes: &[u8], at: u64) -> Option<&File> {
        let aligned = bytes.as_ptr().addr().is_multiple_of(PAGE) && bytes.len().is_multiple_of(PAGE);
        self.direct.as_ref().filter(|_| aligned && at.is_multiple_of(PAGE as u64))
    }
}

impl FileIo for RealFile {
    fn bytes(&self) -> io::Result<u64> {
        let length = |most| self.file.metadata().map(|m| m.len().min(most as u64) as usize);
        calls::moved(Call::FileLength, usize::MAX, length).map(|n| n as u64)
    }

    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        if let Some(direct) = self.direct_for(to, at) {
            match calls::read(Call::FileRead, to, |to| direct.read_at(to, at)) {
                // Its alignment is larger than a page.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
                // The rest behind the end of the file within a block is for the other way.
                Ok(n) if n % PAGE != 0 => {}
                other => return other,
            }
        }
        calls::read(Call::FileRead, to, |to| self.file.read_at(to, at))
    }

    fn write_at(&self, from: &[u8], at: u64) -> io::Result<usize> {
        if let Some(direct) = self.direct_for(from, at) {
            match calls::moved(Call::FileWrite, from.len(), |n| direct.write_at(&from[..n], at)) {
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
                other => return other,
            }
        }
        calls::moved(Call::FileWrite, from.len(), |n| self.file.write_at(&from[..n], at))
    }

    fn sync(&self) -> io::Result<()> {
        calls::made(Call::FileSync, || self.file.sync_data())
    }
}

/// Fills `to` from an offset on; how many bytes there were before the end of the file.
pub(super) fn read_all(io: &dyn FileIo, to: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < to.len() {
        match io.read_at(&mut to[done..], at + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Writes all of `from`, inside the file: one that became shorter does not grow again by it.
pub(super) fn write_all(io: &dyn FileIo, from: &[u8], at: u64) -> io::Result<()> {
    let end = at + from.len() as u64;
    let bytes = io.bytes()?;
    if bytes < end {
        return Err(io::Error::other(format!("the file was cut to {bytes} bytes")));
    }
    let mut done = 0;
    while done < from.len() {
        match io.write_at(&from[done..], at + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
