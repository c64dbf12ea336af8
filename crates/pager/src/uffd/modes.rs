//! The calls of [`Uffd`](super::Uffd) in their other modes: nobody is woken, or pages come protected from writes.

use std::io;

use super::{Call, Progress, Uffd, abi, progress, range};

/// How a page is put in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FillMode {
    /// Who waits for it goes on waiting, until [`Uffd::wake`].
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
    pub unsafe fn copy_in_mode(&self, dst: usize, src: *const u8, len: usize, mode: FillMode) -> Progress {
        let mut arg = abi::Copy { dst: dst as u64, src: src as u64, len: len as u64, mode: mode.bits(), done: 0 };
        let make = || {
            let result = self.ioctl(abi::UFFDIO_COPY, &mut arg);
            progress(result, arg.done, len)
        };
        self.planned(Call::Copy, make, || ())
    }

    /// As [`Uffd::zero`], without waking anyone.
    ///
    /// # Safety
    /// As for [`Uffd::zero`].
    pub unsafe fn zero_quietly(&self, start: usize, len: usize) -> Progress {
        let mode = FillMode { quiet: true, protected: false }.bits();
        let mut arg = abi::ZeroPage { range: range(start, len), mode, done: 0 };
        let make = || {
            let result = self.ioctl(abi::UFFDIO_ZEROPAGE, &mut arg);
            progress(result, arg.done, len)
        };
        self.planned(Call::Zero, make, || ())
    }

    /// Watches a range for missing pages and for writes to protected ones.
    ///
    /// # Safety
    /// As for [`Uffd::register`].
    pub unsafe fn register_with_writes(&self, start: usize, len: usize) -> io::Result<()> {
        let mode = abi::REGISTER_MODE_MISSING | abi::REGISTER_MODE_WP;
        self.ioctl(abi::UFFDIO_REGISTER, &mut abi::Register { range: range(start, len), mode, ..Default::default() })
    }
}
