//! The calls of [`Uffd`](super::Uffd) in their other modes: nobody is woken, or pages come
//! protected from writes.

use std::io;

use super::{Call, PAGE, Uffd, UffdProgress, abi, progress, range};
use crate::calls;

/// How a page is put in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FillMode {
    /// Threads that wait for it go on waiting, until [`Uffd::wake`].
    pub quiet: bool,
    /// The first write to it is a fault.
    pub protected: bool,
}

impl FillMode {
    fn bits(self) -> u64 {
        const DONTWAKE: u64 = 1;
        const WP: u64 = 2;
        (u64::from(self.quiet) * DONTWAKE) | (u64::from(self.protected) * WP)
    }
}

impl Uffd {
    /// As [`Uffd::copy`], in a mode.
    ///
    /// # Safety
    /// As for [`Uffd::copy`]; protected pages need a range that is watched for writes.
    pub unsafe fn copy_in_mode(&self, dst: usize, src: *const u8, len: usize, mode: FillMode) -> UffdProgress {
        let make = |len| {
            let (dst, src, mode) = (dst as u64, src as u64, mode.bits());
            let mut arg = abi::Copy { dst, src, len: len as u64, mode, done: 0 };
            let result = self.ioctl(abi::UFFDIO_COPY, &mut arg);
            progress(result, arg.done, len)
        };
        Self::planned(Call::Copy, len, make, || ())
    }

    /// As [`Uffd::zero`], without waking anyone.
    ///
    /// # Safety
    /// As for [`Uffd::zero`].
    pub unsafe fn zero_quietly(&self, start: usize, len: usize) -> UffdProgress {
        let mode = FillMode { quiet: true, protected: false }.bits();
        let make = |len| {
            let mut arg = abi::ZeroPage { range: range(start, len), mode, done: 0 };
            let result = self.ioctl(abi::UFFDIO_ZEROPAGE, &mut arg);
            progress(result, arg.done, len)
        };
        Self::planned(Call::Zero, len, make, || ())
    }

    /// As [`Uffd::poison`] of one page; what the kernel refuses for the moment is tried again.
    ///
    /// # Safety
    /// As for [`Uffd::poison`].
    pub unsafe fn poison_for_certain(&self, page: usize) -> io::Result<()> {
        for attempt in 0.. {
            // SAFETY: the caller's contract.
            let done = unsafe { self.poison(page, PAGE) };
            match done.errno {
                0 if done.bytes == PAGE => break,
                0 | libc::EAGAIN | libc::ENOMEM if attempt < 8 => {
                    std::thread::sleep(std::time::Duration::from_millis(1 << attempt));
                }
                errno => return Err(io::Error::from_raw_os_error(errno)),
            }
        }
        Ok(())
    }

    /// Watches a range for missing pages and for writes to protected ones.
    ///
    /// # Safety
    /// As for [`Uffd::register`].
    pub unsafe fn register_with_writes(&self, start: usize, len: usize) -> io::Result<()> {
        let mode = abi::REGISTER_MODE_MISSING | abi::REGISTER_MODE_WP;
        let mut arg = abi::Register { range: range(start, len), mode, ..abi::Register::default() };
        calls::made(Call::Register, || self.ioctl(abi::UFFDIO_REGISTER, &mut arg))
    }
}
