//! A file whose calls fail as they are told: for tests.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::io::FileIo;

/// A call to the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoCall {
    /// Its length.
    Bytes,
    /// A read.
    Read,
    /// A write.
    Write,
    /// `fdatasync`.
    Sync,
}

impl IoCall {
    /// All of them.
    pub const ALL: [IoCall; 4] = [IoCall::Bytes, IoCall::Read, IoCall::Write, IoCall::Sync];
}

/// What goes wrong with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoFault {
    /// Nothing is done, and this is the error (`errno`).
    Fails(i32),
    /// At most so many bytes are read or written, or are said to be there; 0 of a read is the end of the file.
    Short(usize),
    /// It takes so many milliseconds, and then goes well.
    Stalls(u64),
}

/// Asked with the call and its number among calls of its kind, from 0.
type Plan = Box<dyn Fn(IoCall, u64) -> Option<IoFault> + Send + Sync>;

/// A file with faults by plan.
pub struct FaultyFile<F> {
    file: F,
    plan: Plan,
    made: [AtomicU64; 4],
}

impl<F: FileIo> FaultyFile<F> {
    /// Of a file that works.
    pub fn new(file: F, plan: impl Fn(IoCall, u64) -> Option<IoFault> + Send + Sync + 'static) -> FaultyFile<F> {
        FaultyFile { file, plan: Box::new(plan), made: [const { AtomicU64::new(0) }; 4] }
    }

    /// How many bytes of `len` the call is to move.
    fn next(&self, call: IoCall, len: usize) -> io::Result<usize> {
        let n = self.made[call as usize].fetch_add(1, Ordering::Relaxed);
        match (self.plan)(call, n) {
            None => Ok(len),
            Some(IoFault::Fails(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(IoFault::Short(most)) => Ok(len.min(most)),
            Some(IoFault::Stalls(ms)) => {
                std::thread::sleep(Duration::from_millis(ms));
                Ok(len)
            }
        }
    }
}

impl<F: FileIo> FileIo for FaultyFile<F> {
    fn bytes(&self) -> io::Result<u64> {
        let most = self.next(IoCall::Bytes, usize::MAX)?;
        Ok(self.file.bytes()?.min(most as u64))
    }

    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        let len = self.next(IoCall::Read, to.len())?;
        if len == 0 { Ok(0) } else { self.file.read_at(&mut to[..len], at) }
    }

    fn write_at(&self, from: &[u8], at: u64) -> io::Result<usize> {
        let len = self.next(IoCall::Write, from.len())?;
        if len == 0 { Ok(0) } else { self.file.write_at(&from[..len], at) }
    }

    fn sync(&self) -> io::Result<()> {
        self.next(IoCall::Sync, 0)?;
        self.file.sync()
    }
}
