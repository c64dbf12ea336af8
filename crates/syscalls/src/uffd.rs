//! userfaultfd: structures and numbers of the kernel's interface, as its manual pages and headers
//! give them, and descriptors of it.
//!
//! Headers of distributions are often older than the kernel (MOVE is of 6.8, POISON of 6.6), so
//! nothing is taken from them.

use super::{checked, owned};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The version of the interface.
pub const API: u64 = 0xAA;

/// Creates a descriptor through `/dev/userfaultfd`.
pub const USERFAULTFD_IOC_NEW: libc::c_ulong = 0xAA00;

/// Only faults of user mode are handled: allowed to everyone.
pub const UFFD_USER_MODE_ONLY: libc::c_int = 1;

/// A fault.
pub const EVENT_PAGEFAULT: u8 = 0x12;
/// `fork`: the descriptor for the child.
pub const EVENT_FORK: u8 = 0x13;
/// `mremap`: from, to, length.
pub const EVENT_REMAP: u8 = 0x14;
/// `madvise`: start, end.
pub const EVENT_REMOVE: u8 = 0x15;
/// `munmap`: start, end.
pub const EVENT_UNMAP: u8 = 0x16;
/// The fault was a write.
pub const PAGEFAULT_FLAG_WRITE: u64 = 1;

/// Faults on missing pages are reported.
pub const REGISTER_MODE_MISSING: u64 = 1;
/// Writes to protected pages are reported, and missing pages can be marked.
pub const REGISTER_MODE_WP: u64 = 2;

/// Feature that a kernel may offer beyond the basics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UffdFeature {
    /// Its bit.
    pub bit: u64,
    /// Its name, without `UFFD_FEATURE_`.
    pub name: &'static str,
}

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl UffdFeature {
            $($(#[$doc])* pub const $name: UffdFeature = UffdFeature { bit: 1 << $bit, name: stringify!($name) };)*
            /// All that are known here.
            pub const ALL: &[UffdFeature] = &[$(UffdFeature::$name),*];
        }
    };
}

features! {
    /// Faults on write-protected pages are reported.
    PAGEFAULT_FLAG_WP = 0;
    /// `fork` is reported, with a descriptor for the child.
    EVENT_FORK = 1;
    /// `mremap` is reported.
    EVENT_REMAP = 2;
    /// `madvise(MADV_DONTNEED)` is reported.
    EVENT_REMOVE = 3;
    /// Pages of hugetlbfs may be missing.
    MISSING_HUGETLBFS = 4;
    /// Pages of shared memory may be missing.
    MISSING_SHMEM = 5;
    /// `munmap` is reported.
    EVENT_UNMAP = 6;
    /// Faults become a signal in the thread that faults.
    SIGBUS = 7;
    /// Faults name the thread.
    THREAD_ID = 8;
    /// Minor faults of hugetlbfs.
    MINOR_HUGETLBFS = 9;
    /// Minor faults of shared memory.
    MINOR_SHMEM = 10;
    /// Faults give the address and not only the page.
    EXACT_ADDRESS = 11;
    /// Write protection of shared memory.
    WP_HUGETLBFS_SHMEM = 12;
    /// Write protection of pages that are not there yet.
    WP_UNPOPULATED = 13;
    /// `UFFDIO_POISON`: from Linux 6.6 on.
    POISON = 14;
    /// Write protection that the kernel lifts by itself: from Linux 6.7 on.
    WP_ASYNC = 15;
    /// `UFFDIO_MOVE`: from Linux 6.8 on.
    MOVE = 16;
}

const READ: u32 = 2;
const WRITE: u32 = 1;

/// The number of an ioctl, as the kernel's generic encoding has it.
const fn ioctl(direction: u32, number: u32, size: usize) -> libc::c_ulong {
    (direction << 30 | (size as u32) << 16 | 0xAA << 8 | number) as libc::c_ulong
}

macro_rules! ioctls {
    ($($(#[$doc:meta])* $name:ident = $direction:expr, $number:literal, $of:ty;)*) => {
        $($(#[$doc])* pub const $name: libc::c_ulong = ioctl($direction, $number, size_of::<$of>());)*
    };
}

ioctls! {
    /// Handshake.
    UFFDIO_API = READ | WRITE, 0x3F, Api;
    /// Watch a range.
    UFFDIO_REGISTER = READ | WRITE, 0x00, Register;
    /// Watch it no more.
    UFFDIO_UNREGISTER = READ, 0x01, Range;
    /// Let waiters try again.
    UFFDIO_WAKE = READ, 0x02, Range;
    /// Fill missing pages with a copy.
    UFFDIO_COPY = READ | WRITE, 0x03, Copy;
    /// Fill missing pages with zeros.
    UFFDIO_ZEROPAGE = READ | WRITE, 0x04, ZeroPage;
    /// Move pages.
    UFFDIO_MOVE = READ | WRITE, 0x05, Copy;
    /// Protect pages from writes, or no more.
    UFFDIO_WRITEPROTECT = READ | WRITE, 0x06, WriteProtect;
    /// Install a page of a file that is in the page cache.
    UFFDIO_CONTINUE = READ | WRITE, 0x07, ZeroPage;
    /// Make accesses to missing pages an error.
    UFFDIO_POISON = READ | WRITE, 0x08, ZeroPage;
}

/// A range of addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    /// The first address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

/// Argument of `UFFDIO_API`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Api {
    /// The version.
    pub api: u64,
    /// Features wanted; the answer has those that the kernel offers.
    pub features: u64,
    /// Requests that are possible, a bit each.
    pub ioctls: u64,
}

/// Argument of `UFFDIO_REGISTER`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Register {
    /// The addresses.
    pub range: Range,
    /// Flags of the request.
    pub mode: u64,
    /// Requests that are possible, a bit each.
    pub ioctls: u64,
}

/// Argument of `UFFDIO_COPY` and `UFFDIO_MOVE`, whose layouts are the same.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Copy {
    /// The destination.
    pub dst: u64,
    /// From where.
    pub src: u64,
    /// Bytes.
    pub len: u64,
    /// Flags of the request.
    pub mode: u64,
    /// Bytes done, or the error, negated.
    pub done: i64,
}

/// Argument of `UFFDIO_ZEROPAGE` and `UFFDIO_POISON`, whose layouts are the same.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ZeroPage {
    /// The addresses.
    pub range: Range,
    /// Flags of the request.
    pub mode: u64,
    /// Bytes done, or the error, negated.
    pub done: i64,
}

/// Argument of `UFFDIO_WRITEPROTECT`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteProtect {
    /// The addresses.
    pub range: Range,
    /// Flags of the request.
    pub mode: u64,
}

/// Message that is read from the descriptor: 32 bytes. A fault uses the event, its flags and the
/// address; other events use the same fields for what their constants say.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Message {
    /// One of the events above.
    pub event: u8,
    /// Zeros.
    pub reserved: [u8; 7],
    /// Flags of a fault.
    pub flags: u64,
    /// Address of a fault.
    pub address: u64,
    /// The third field.
    pub rest: u64,
}

const _: () = assert!(size_of::<Message>() == 32);

/// Opens a descriptor; `user_mode_only`: for faults of user mode, which everyone may handle.
pub fn open(user_mode_only: bool) -> io::Result<OwnedFd> {
    let flags = libc::O_CLOEXEC | if user_mode_only { UFFD_USER_MODE_ONLY } else { 0 };
    // SAFETY: the system call takes flags and gives a new descriptor.
    unsafe { owned(libc::syscall(libc::SYS_userfaultfd, flags)) }
}

/// Opens one by `/dev/userfaultfd`, with which those who may open that handle all faults.
pub fn open_by(device: &File) -> io::Result<OwnedFd> {
    // SAFETY: the request takes flags by value and gives a new descriptor.
    unsafe { owned(libc::ioctl(device.as_raw_fd(), USERFAULTFD_IOC_NEW, libc::O_CLOEXEC).into()) }
}

/// Asks for features, once a descriptor: those that the kernel offers.
pub fn handshake(fd: &OwnedFd, features: u64) -> io::Result<u64> {
    let mut arg = Api { api: API, features, ioctls: 0 };
    // SAFETY: the structure is that of the request, which changes no memory but it.
    unsafe { request(fd, UFFDIO_API, &mut arg)? };
    Ok(arg.features)
}

/// Makes a request.
///
/// # Safety
/// The structure is that of the request. The effect of it on memory is the caller's to answer for.
pub unsafe fn request<T>(fd: &OwnedFd, number: libc::c_ulong, arg: &mut T) -> io::Result<()> {
    // SAFETY: the caller pairs them; the structure outlives the call.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), number, std::ptr::from_mut(arg)) }).map(drop)
}
