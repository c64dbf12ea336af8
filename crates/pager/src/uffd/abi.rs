//! Structures and numbers of the kernel's userfaultfd interface, as its manual pages and headers
//! give them.
//!
//! Headers of distributions are often older than the kernel (MOVE is of 6.8, POISON of 6.6), so
//! nothing is taken from them.

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
    pub start: u64,
    pub len: u64,
}

/// Argument of `UFFDIO_API`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Api {
    pub api: u64,
    pub features: u64,
    pub ioctls: u64,
}

/// Argument of `UFFDIO_REGISTER`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Register {
    pub range: Range,
    pub mode: u64,
    pub ioctls: u64,
}

/// Argument of `UFFDIO_COPY` and `UFFDIO_MOVE`, whose layouts are the same.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Copy {
    pub dst: u64,
    pub src: u64,
    pub len: u64,
    pub mode: u64,
    /// Bytes done, or the error, negated.
    pub done: i64,
}

/// Argument of `UFFDIO_ZEROPAGE` and `UFFDIO_POISON`, whose layouts are the same.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ZeroPage {
    pub range: Range,
    pub mode: u64,
    /// Bytes done, or the error, negated.
    pub done: i64,
}

/// Argument of `UFFDIO_WRITEPROTECT`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteProtect {
    pub range: Range,
    pub mode: u64,
}

/// Message that is read from the descriptor: 32 bytes. A fault uses the event, its flags and the
/// address; other events use the same fields for what their constants say.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Message {
    pub event: u8,
    pub reserved: [u8; 7],
    /// Flags of a fault.
    pub flags: u64,
    /// Address of a fault.
    pub address: u64,
    /// The third field.
    pub rest: u64,
}

const _: () = assert!(size_of::<Message>() == 32);
