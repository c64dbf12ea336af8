//! `/proc/PID/pagemap`: an entry for each page of a process, and the request `PAGEMAP_SCAN` of
//! Linux 6.7 and later, which passes over what is empty and protects what it finds.

use super::checked;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Bits of an entry, as the kernel's documentation has them.
pub mod entry {
    /// The page is in memory.
    pub const PRESENT: u64 = 1 << 63;
    /// The kernel has swapped it.
    pub const SWAPPED: u64 = 1 << 62;
    /// It is of a file, or shared.
    pub const FILE: u64 = 1 << 61;
    /// A userfaultfd protects the page from writes. A page that is not in memory has its marker.
    pub const PROTECTED: u64 = 1 << 57;
    /// Nobody else has it mapped.
    pub const EXCLUSIVE: u64 = 1 << 56;
    /// It was written since the bits were cleared.
    pub const SOFT_DIRTY: u64 = 1 << 55;
    /// The number of its frame; 0 for those who may not know it.
    pub const FRAME: u64 = (1 << 55) - 1;
}

/// Categories of `PAGEMAP_SCAN`.
pub mod category {
    /// The memory is watched by a userfaultfd whose protection the kernel lifts by itself.
    pub const WPALLOWED: u64 = 1 << 0;
    /// Written since it was protected last, or never protected.
    pub const WRITTEN: u64 = 1 << 1;
    /// Content of a file.
    pub const FILE: u64 = 1 << 2;
    /// In memory.
    pub const PRESENT: u64 = 1 << 3;
    /// Swapped by the kernel.
    pub const SWAPPED: u64 = 1 << 4;
    /// The kernel's page of zeros.
    pub const ZERO: u64 = 1 << 5;
    /// Its soft-dirty bit is set.
    pub const SOFT_DIRTY: u64 = 1 << 7;
}

/// A question of `PAGEMAP_SCAN`: pages that match, and the categories that are told of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PagemapScan {
    /// Pages that match are protected from writes by the same request.
    pub protects: bool,
    /// Memory whose protection the kernel does not lift by itself is an error; else it is passed
    /// over.
    pub only_async: bool,
    /// Categories whose sense is inverted before they are compared.
    pub inverted: u64,
    /// Categories that a page has all of.
    pub all: u64,
    /// Categories that a page has one of; 0: any page.
    pub any: u64,
    /// Categories that are told; neighbours that differ in none of them are one region.
    pub told: u64,
}

/// Pages that follow one another and have the same categories.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageRegion {
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// Bits of [`category`], as far as they were asked for.
    pub categories: u64,
}

/// Argument of the request, as the kernel's documentation has it.
#[repr(C)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const WP_MATCHING: u64 = 1;
const CHECK_WPASYNC: u64 = 2;
const PAGEMAP_SCAN: libc::c_ulong =
    3 << 30 | (size_of::<ScanArg>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 16;

/// Finds regions of a range of addresses, as many as there is room for: how many, and the address
/// where it stopped. `pagemap` is the file of the process.
pub fn scan(pagemap: &File, range: Range<u64>, of: PagemapScan, room: &mut [PageRegion]) -> io::Result<(usize, u64)> {
    let mut arg = ScanArg {
        size: size_of::<ScanArg>() as u64,
        flags: (u64::from(of.protects) * WP_MATCHING) | (u64::from(of.only_async) * CHECK_WPASYNC),
        start: range.start,
        end: range.end,
        walk_end: 0,
        vec: room.as_mut_ptr().addr() as u64,
        vec_len: room.len() as u64,
        max_pages: 0,
        category_inverted: of.inverted,
        category_mask: of.all,
        category_anyof_mask: of.any,
        return_mask: of.told,
    };
    // SAFETY: the structure is that of the request, and it and the array that it names, of that
    // length, outlive the call. No content of memory changes: writes to what the request protects
    // are let through by the kernel.
    let found = checked(unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut arg) })?;
    Ok((found as usize, arg.walk_end))
}

/// Reads entries into an array, from the page with a number on; how many.
///
/// The pager asks of each page that may leave: the `pread` of the C library is a point of
/// cancellation, which costs a sixth of the call.
pub fn read_entries(pagemap: &File, page: u64, entries: &mut [u64]) -> io::Result<usize> {
    let (fd, to, bytes) = (pagemap.as_raw_fd(), entries.as_mut_ptr(), size_of_val(entries));
    let at = page * size_of::<u64>() as u64;
    // SAFETY: the kernel writes at most the size of `entries`, which any bytes are valid for.
    let read = checked(unsafe { libc::syscall(libc::SYS_pread64, fd, to, bytes, at) })?;
    Ok(read as usize / size_of::<u64>())
}
