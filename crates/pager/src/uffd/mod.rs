//! userfaultfd: page faults of this process, handled by this process. A thin layer over the system
//! calls.
//!
//! All operations take addresses as numbers and change what is mapped there. None of them hands out
//! a reference, but they do change memory that others may refer to, so those that can change or
//! remove content are `unsafe`.

mod modes;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::calls;
use refault_syscalls::uffd as abi;

pub use crate::calls::{Call, CallFault, CallPlan};
pub use modes::FillMode;
pub use refault_syscalls::PAGE;
pub use refault_syscalls::uffd::UffdFeature;

/// Finding of [`Uffd::probe`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probe {
    /// Memory that is watched.
    Watched,
    /// Memory that is not watched, or none.
    NotWatched,
    /// A change of mappings that is reported has happened, and the thread that made it has not gone
    /// on since.
    Changing,
    /// The process is gone.
    Gone,
}

/// Faults that a descriptor can handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultScope {
    /// All: memory that is not there may be handed to system calls.
    Everything,
    /// Faults of user mode: a system call that meets memory that is not there fails with `EFAULT`.
    UserMode,
}

/// How much an operation did, and what stopped it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UffdProgress {
    /// Bytes done, from the beginning of the range.
    pub bytes: usize,
    /// The error (`errno`) at the first page that was not done. 0: all was done, or it may go on
    /// from there.
    pub errno: i32,
}

/// A fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The address, rounded down to the page.
    pub address: usize,
    /// Whether the fault was a write.
    pub write: bool,
    /// The thread, if [`UffdFeature::THREAD_ID`] was asked for.
    pub thread: u32,
}

/// Event that is read from a descriptor that has events.
#[derive(Debug)]
pub enum UffdEvent {
    /// A fault.
    Fault(Fault),
    /// `fork`: the descriptor of the child's memory, which is as that of the parent was.
    Fork(Uffd),
    /// `mremap` moved pages.
    Remap {
        /// From where.
        from: usize,
        /// The destination.
        to: usize,
        /// Bytes.
        len: usize,
    },
    /// `madvise` is about to drop pages: it goes on when this was read.
    Remove(std::ops::Range<usize>),
    /// Memory was unmapped.
    Unmap(std::ops::Range<usize>),
}

/// A userfaultfd.
#[derive(Debug)]
pub struct Uffd {
    fd: OwnedFd,
    scope: FaultScope,
    features: u64,
}

impl Uffd {
    /// Opens one that handles as much as this process may handle, with the features wanted. Without
    /// `wanted`, an error of kind `Unsupported`; without the right to use any, one of kind
    /// `PermissionDenied`.
    pub fn open(wanted: &[UffdFeature]) -> io::Result<Uffd> {
        match Self::open_scope(FaultScope::Everything, wanted) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Self::open_scope(FaultScope::UserMode, wanted),
            other => other,
        }
    }

    /// As [`Uffd::open`], for one scope.
    pub fn open_scope(scope: FaultScope, wanted: &[UffdFeature]) -> io::Result<Uffd> {
        let bits = wanted.iter().fold(0, |all, f| all | f.bit);
        let offered = handshake(&raw_open(scope)?, 0)?;
        if let Some(missing) = wanted.iter().find(|f| offered & f.bit == 0) {
            let what = format!("this kernel has no userfaultfd feature {}", missing.name);
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        // The handshake can be done once a descriptor.
        let fd = raw_open(scope)?;
        handshake(&fd, bits)?;
        Ok(Uffd { fd, scope, features: offered })
    }

    /// A userfaultfd that another process opened for its memory, with these features; it does not
    /// block.
    pub fn of_other(fd: OwnedFd, features: &[UffdFeature]) -> Uffd {
        let features = features.iter().fold(0, |all, f| all | f.bit);
        Uffd { fd, scope: FaultScope::Everything, features }
    }

    /// The descriptor, to wait for it, or to hand it on.
    pub fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.fd)
    }

    /// A change of `len` bytes of pages, given how many to change, or the failure that was planned
    /// for it.
    fn planned(call: Call, len: usize, make: impl FnOnce(usize) -> UffdProgress, lose: impl FnOnce()) -> UffdProgress {
        match calls::next(call) {
            Some(CallFault::DoneButFails(errno)) => {
                make(len);
                UffdProgress { bytes: 0, errno }
            }
            Some(CallFault::Fails(errno)) => UffdProgress { bytes: 0, errno },
            Some(CallFault::Loses(errno)) => {
                lose();
                UffdProgress { bytes: 0, errno }
            }
            // The kernel tells how far it came with EAGAIN, which `progress` takes for no error.
            Some(CallFault::Short(most)) => match len.min(most) / PAGE * PAGE {
                0 => UffdProgress { bytes: 0, errno: libc::EAGAIN },
                part => make(part),
            },
            _ => make(len),
        }
    }

    /// Features that the kernel offers, whether wanted or not.
    pub fn offers(&self, feature: UffdFeature) -> bool {
        self.features & feature.bit != 0
    }

    /// Faults that it handles.
    pub fn scope(&self) -> FaultScope {
        self.scope
    }

    /// Watches a range for missing pages.
    ///
    /// # Safety
    /// Accesses to missing pages of the range block until someone resolves them: the range must be
    /// one that its owner gave for it.
    pub unsafe fn register(&self, start: usize, len: usize) -> io::Result<()> {
        let mut arg =
            abi::Register { range: range(start, len), mode: abi::REGISTER_MODE_MISSING, ..abi::Register::default() };
        calls::made(Call::Register, || self.ioctl(abi::UFFDIO_REGISTER, &mut arg))
    }

    /// As [`Uffd::register`], and missing pages can be marked with [`Uffd::write_protect`]. It
    /// takes [`UffdFeature::WP_UNPOPULATED`].
    ///
    /// # Safety
    /// As of [`Uffd::register`].
    pub unsafe fn register_with_marks(&self, start: usize, len: usize) -> io::Result<()> {
        let mode = abi::REGISTER_MODE_MISSING | abi::REGISTER_MODE_WP;
        let mut arg = abi::Register { range: range(start, len), mode, ..abi::Register::default() };
        calls::made(Call::Register, || self.ioctl(abi::UFFDIO_REGISTER, &mut arg))
    }

    /// Watches it no more, and wakes who waits.
    pub fn unregister(&self, start: usize, len: usize) -> io::Result<()> {
        calls::made(Call::Unregister, || self.ioctl(abi::UFFDIO_UNREGISTER, &mut range(start, len)))
    }

    /// Lets threads that wait in the range try again.
    pub fn wake(&self, start: usize, len: usize) -> io::Result<()> {
        calls::made(Call::Wake, || self.ioctl(abi::UFFDIO_WAKE, &mut range(start, len)))
    }

    /// Fills missing pages with a copy and wakes who waits for them.
    ///
    /// # Safety
    /// `src` must be readable for `len` bytes, and must not be a missing page of a watched range.
    /// `dst` must belong to a watched range.
    pub unsafe fn copy(&self, dst: usize, src: *const u8, len: usize) -> UffdProgress {
        // SAFETY: the caller's contract.
        unsafe { self.copy_in_mode(dst, src, len, FillMode::default()) }
    }

    /// Fills missing pages with zeros and wakes who waits for them.
    ///
    /// # Safety
    /// The range must be watched.
    pub unsafe fn zero(&self, start: usize, len: usize) -> UffdProgress {
        let make = |len| {
            let mut arg = abi::ZeroPage { range: range(start, len), mode: 0, done: 0 };
            let result = self.ioctl(abi::UFFDIO_ZEROPAGE, &mut arg);
            progress(result, arg.done, len)
        };
        Self::planned(Call::Zero, len, make, || ())
    }

    /// Moves pages of anonymous memory, and leaves missing pages behind. No thread is woken. Stores
    /// that happened before are in the moved frames; later ones fault.
    ///
    /// # Safety
    /// A thread that refers to `src` must be served when it faults; `dst` must be missing pages of
    /// a watched range.
    pub unsafe fn move_pages(&self, dst: usize, src: usize, len: usize) -> UffdProgress {
        const DONTWAKE: u64 = 1;
        // SAFETY: only where a test asks for it: the pages of the source are gone.
        let lose = || _ = unsafe { libc::madvise(src as *mut _, len, libc::MADV_DONTNEED) };
        let make = |len| {
            let mut arg = abi::Copy { dst: dst as u64, src: src as u64, len: len as u64, mode: DONTWAKE, done: 0 };
            let result = self.ioctl(abi::UFFDIO_MOVE, &mut arg);
            progress(result, arg.done, len)
        };
        Self::planned(Call::Move, len, make, lose)
    }

    /// Makes any access to these missing pages an error (`SIGBUS`), now and later.
    ///
    /// # Safety
    /// The range must be watched.
    pub unsafe fn poison(&self, start: usize, len: usize) -> UffdProgress {
        let make = |len| {
            let mut arg = abi::ZeroPage { range: range(start, len), mode: 0, done: 0 };
            let result = self.ioctl(abi::UFFDIO_POISON, &mut arg);
            progress(result, arg.done, len)
        };
        Self::planned(Call::Poison, len, make, || ())
    }

    /// Whether private anonymous memory at this page is watched by anyone, without a change of
    /// anything: an error of `UFFDIO_CONTINUE`, which is for files only, tells.
    pub fn probe(&self, page: usize) -> Probe {
        let mut arg = abi::ZeroPage { range: range(page, PAGE), mode: 0, done: 0 };
        let result = calls::made(Call::Probe, || self.ioctl(abi::UFFDIO_CONTINUE, &mut arg));
        match result.map_err(|e| e.raw_os_error()) {
            Err(Some(libc::EINVAL)) => Probe::Watched,
            Err(Some(libc::ENOENT)) => Probe::NotWatched,
            Err(Some(libc::EAGAIN)) => Probe::Changing,
            _ => Probe::Gone,
        }
    }

    /// Protects pages from writes, or lifts that and wakes who waits.
    ///
    /// # Safety
    /// The range must be watched for writes, by someone who serves them.
    pub unsafe fn write_protect(&self, start: usize, len: usize, protect: bool) -> io::Result<()> {
        let mut arg = abi::WriteProtect { range: range(start, len), mode: u64::from(protect) };
        calls::made(Call::Protect, || self.ioctl(abi::UFFDIO_WRITEPROTECT, &mut arg))
    }

    /// Waits for faults; at least one, at most as many as `faults` has room for. Events that are
    /// not faults are an error, for none is asked for.
    pub fn wait(&self, faults: &mut Vec<Fault>) -> io::Result<()> {
        const ROOM: usize = 16;
        let mut messages = [abi::Message::default(); ROOM];
        let bytes = size_of_val(&messages);
        // SAFETY: the kernel writes at most `bytes` bytes into `messages`, which any bytes are
        // valid for.
        let read = || unsafe { libc::read(self.fd.as_raw_fd(), messages.as_mut_ptr().cast(), bytes) };
        let got = match calls::number(Call::ReadFaults, read) {
            Ok(got) => got,
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => return Ok(()),
            Err(e) => return Err(e),
        };
        for m in &messages[..got as usize / size_of::<abi::Message>()] {
            if m.event != abi::EVENT_PAGEFAULT {
                return Err(io::Error::other(format!("userfaultfd: event {:#x} was not asked for", m.event)));
            }
            let address = m.address as usize & !(PAGE - 1);
            let write = m.flags & abi::PAGEFAULT_FLAG_WRITE != 0;
            faults.push(Fault { address, write, thread: m.rest as u32 });
        }
        Ok(())
    }

    /// Reads the events that there are, without waiting. True: there may be more.
    pub fn read_events(&self, events: &mut Vec<UffdEvent>) -> io::Result<bool> {
        const ROOM: usize = 32;
        let mut messages = [abi::Message::default(); ROOM];
        let bytes = size_of_val(&messages);
        // SAFETY: the kernel writes at most `bytes` bytes into `messages`, which any bytes are
        // valid for.
        let read = || unsafe { libc::read(self.fd.as_raw_fd(), messages.as_mut_ptr().cast(), bytes) };
        let got = match calls::number(Call::ReadFaults, read) {
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // There may be something: who is told that there is nothing would not ask again.
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(e) => return Err(e),
        };
        let messages = &messages[..got as usize / size_of::<abi::Message>()];
        for m in messages {
            events.push(self.event(m)?);
        }
        // The kernel goes on until there is no room or nothing more.
        Ok(messages.len() == ROOM)
    }

    fn event(&self, m: &abi::Message) -> io::Result<UffdEvent> {
        let (a, b, c) = (m.flags, m.address, m.rest);
        Ok(match m.event {
            abi::EVENT_PAGEFAULT => {
                let write = a & abi::PAGEFAULT_FLAG_WRITE != 0;
                UffdEvent::Fault(Fault { address: b as usize & !(PAGE - 1), write, thread: c as u32 })
            }
            abi::EVENT_FORK => {
                // SAFETY: the kernel made the descriptor, in the lower half of the first field, for
                // the thread that reads this message.
                let fd = unsafe { OwnedFd::from_raw_fd(a as u32 as RawFd) };
                UffdEvent::Fork(Uffd { fd, scope: self.scope, features: self.features })
            }
            abi::EVENT_REMAP => UffdEvent::Remap { from: a as usize, to: b as usize, len: c as usize },
            abi::EVENT_REMOVE => UffdEvent::Remove(a as usize..b as usize),
            abi::EVENT_UNMAP => UffdEvent::Unmap(a as usize..b as usize),
            other => return Err(io::Error::other(format!("userfaultfd: event {other:#x} is not known"))),
        })
    }

    fn ioctl<T>(&self, request: libc::c_ulong, arg: &mut T) -> io::Result<()> {
        // SAFETY: `arg` is the structure that belongs to the request: the callers pair them. The
        // effect of the request on memory is the callers' contract.
        unsafe { abi::request(&self.fd, request, arg) }
    }
}

fn range(start: usize, len: usize) -> abi::Range {
    abi::Range { start: start as u64, len: len as u64 }
}

/// Meaning of the kernel's two answers, the status and the field, together. The field counts; where
/// nothing was done it is the error. Some errors (a bad range) are found before the field is
/// written.
fn progress(result: io::Result<()>, done: i64, len: usize) -> UffdProgress {
    match result {
        Ok(()) => UffdProgress { bytes: len, errno: 0 },
        Err(_) if done > 0 => UffdProgress { bytes: done as usize, errno: 0 },
        Err(e) => UffdProgress { bytes: 0, errno: e.raw_os_error().unwrap_or(libc::EIO) },
    }
}

fn raw_open(scope: FaultScope) -> io::Result<OwnedFd> {
    let user_mode_only = scope == FaultScope::UserMode;
    let error = match calls::made(Call::OpenUffd, || abi::open(user_mode_only)) {
        Ok(fd) => return Ok(fd),
        Err(error) => error,
    };
    if user_mode_only || error.raw_os_error() != Some(libc::EPERM) {
        return Err(error);
    }
    // A process that may open the device may handle all faults.
    let Ok(device) = File::open("/dev/userfaultfd") else { return Err(error) };
    calls::made(Call::OpenUffd, || abi::open_by(&device))
}

/// The features that the kernel offers.
fn handshake(fd: &OwnedFd, features: u64) -> io::Result<u64> {
    calls::made(Call::Api, || abi::handshake(fd, features))
}

#[cfg(test)]
mod tests;
