//! What `/proc` says of a process: its mappings, and the memory that it has.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::calls::{self, Call};
use crate::uffd::PAGE;

/// The anonymous private mappings of a process that may be watched: all but its stack and what the kernel put there.
pub(super) fn anonymous(pid: i32) -> io::Result<Vec<Range<usize>>> {
    Ok(read(pid, "maps")?.lines().filter_map(parse).collect())
}

fn read(pid: i32, name: &str) -> io::Result<String> {
    calls::made(Call::ReadProc, || fs::read_to_string(format!("/proc/{pid}/{name}")))
}

/// A line of `maps`: `start-end protection offset device inode name`.
fn parse(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let protection = fields.next()?;
    let inode = fields.nth(2)?;
    let name = fields.next().unwrap_or("");
    let ours = name.is_empty() || name == "[heap]" || name.starts_with("[anon:");
    if inode != "0" || !protection.ends_with('p') || !ours {
        return None;
    }
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

/// Pages of anonymous memory that a process has, as its counters say (they may be off by some 64 a thread).
pub(super) fn anonymous_pages(pid: i32) -> Option<u64> {
    let statm = read(pid, "statm").ok()?;
    let mut fields = statm.split(' ').skip(1).map(|f| f.parse::<u64>());
    let (resident, shared) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(resident.saturating_sub(shared))
}

/// The process that started a process.
pub(super) fn parent(pid: i32) -> Option<i32> {
    let stat = read(pid, "stat").ok()?;
    // The name may contain anything, but ends at the last bracket.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a process is stopped, by a signal or a debugger: its agent would not answer.
pub(super) fn is_stopped(pid: i32) -> bool {
    let stat = read(pid, "stat").unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

/// The end of what programs have of the address space.
const END: usize = (1 << 47) - PAGE;

/// `/proc/PID/pagemap`.
#[derive(Debug)]
pub(super) struct Pagemap(fs::File);

/// The argument of the `PAGEMAP_SCAN` request, as its manual page gives it.
#[repr(C)]
#[derive(Default)]
struct Scan {
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

const PAGEMAP_SCAN: libc::c_ulong = 0xC060_6610;
const IS_PRESENT: u64 = 1 << 3;
const IS_ZERO: u64 = 1 << 5;

impl Pagemap {
    pub(super) fn open(pid: i32) -> io::Result<Pagemap> {
        calls::made(Call::OpenPagemap, || fs::File::open(format!("/proc/{pid}/pagemap"))).map(Pagemap)
    }

    /// The entries from the page of an address on.
    fn read(&self, bytes: &mut [u8], address: usize) -> io::Result<()> {
        let at = address / PAGE * 8;
        calls::read_exact(Call::ReadPagemap, bytes, |part, done| self.0.read_at(part, (at + done) as u64))
    }

    fn entry(&self, address: usize) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(&mut bytes, address)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Whether a page is in memory and nobody shares it.
    pub(super) fn is_exclusive(&self, address: usize) -> io::Result<bool> {
        const PRESENT: u64 = 1 << 63;
        const EXCLUSIVE: u64 = 1 << 56;
        Ok(self.entry(address)? & (PRESENT | EXCLUSIVE) == PRESENT | EXCLUSIVE)
    }

    /// Pages that are not in memory and marked (write-protected by a userfaultfd).
    pub(super) fn marked(&self, range: &Range<usize>) -> io::Result<Vec<usize>> {
        const ROOM: usize = 1024;
        const PRESENT: u64 = 1 << 63;
        const MARKED: u64 = 1 << 57;
        let mut bytes = vec![0; range.len().div_ceil(PAGE).min(ROOM) * 8];
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let n = ((range.end - at) / PAGE).min(ROOM);
            self.read(&mut bytes[..n * 8], at)?;
            for (i, entry) in bytes[..n * 8].as_chunks().0.iter().enumerate() {
                if u64::from_ne_bytes(*entry) & (PRESENT | MARKED) == MARKED {
                    found.push(at + i * PAGE);
                }
            }
            at += n * PAGE;
        }
        Ok(found)
    }

    /// Finds watched pages that are in place and were written since they were found last, and protects them, all before any of them can be
    /// written again. The kernel lifts that protection by itself. An error: the process is gone, or some of it was not looked at.
    pub(super) fn take_written(&self, found: &mut Vec<Range<usize>>) -> io::Result<()> {
        let mut at = 0;
        while at < END {
            match crate::mem::take_written_of_watched(&self.0, at..END, found)? {
                to if to > at => at = to,
                _ => break,
            }
        }
        Ok(())
    }

    /// Whether a page is in place and was written since it was found last.
    pub(super) fn is_written(&self, address: usize) -> io::Result<bool> {
        crate::mem::is_written(&self.0, address)
    }

    /// Ranges of pages in memory, but for those that are the kernel's page of zeros.
    pub(super) fn present(&self, range: &Range<usize>) -> io::Result<Vec<Range<usize>>> {
        const ROOM: usize = 256;
        let mut found = Vec::new();
        let mut regions = [[0u64; 3]; ROOM];
        let mut at = range.start;
        while at < range.end {
            let mut arg = Scan {
                size: size_of::<Scan>() as u64,
                start: at as u64,
                end: range.end as u64,
                vec: regions.as_mut_ptr() as u64,
                vec_len: ROOM as u64,
                category_inverted: IS_ZERO,
                category_mask: IS_PRESENT | IS_ZERO,
                return_mask: IS_PRESENT,
                ..Scan::default()
            };
            // SAFETY: the argument is the structure of the request and names an array that is as long as said.
            let scan = || unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN, &raw mut arg) };
            let n = calls::number(Call::ScanPagemap, scan)?;
            found.extend(regions[..n as usize].iter().map(|r| r[0] as usize..r[1] as usize));
            at = (arg.walk_end as usize).max(at + PAGE);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::Mapping;

    #[test]
    fn lines_of_maps() {
        assert_eq!(parse("55d0-55e0 rw-p 00000000 00:00 0  [heap]"), Some(0x55d0..0x55e0));
        assert_eq!(parse("7f00-7f10 ---p 00000000 00:00 0 "), Some(0x7f00..0x7f10));
        assert_eq!(parse("7f00-7f10 rw-p 00000000 00:00 0 [anon:glibc malloc]"), Some(0x7f00..0x7f10));
        for other in [
            "7f00-7f10 rw-s 00000000 00:00 0 ",
            "7f00-7f10 rw-p 00001000 08:01 77 /lib/libc.so",
            "7ffe-7fff rw-p 00000000 00:00 0 [stack]",
            "7ffe-7fff r--p 00000000 00:00 0 [vvar]",
            "junk",
            "",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn present_pages_are_those_that_were_touched() {
        let m = Mapping::new(8 * PAGE).unwrap();
        for i in [1, 2, 5] {
            // SAFETY: pages of a mapping that nobody else knows.
            unsafe { *((m.start() + i * PAGE) as *mut u8) = 1 };
        }
        // SAFETY: as above; a read, which the kernel serves with its page of zeros.
        unsafe { std::ptr::read_volatile((m.start() + 7 * PAGE) as *const u8) };
        let map = Pagemap::open(std::process::id() as i32).unwrap();
        let found = match map.present(&(m.start()..m.start() + m.bytes())) {
            Ok(found) => found,
            Err(e) => return eprintln!("skipped: no PAGEMAP_SCAN: {e}"),
        };
        let expected = [1..3, 5..6].map(|r: Range<usize>| m.start() + r.start * PAGE..m.start() + r.end * PAGE);
        assert_eq!(found, expected);
        assert!(map.is_exclusive(m.start() + 2 * PAGE).unwrap() && !map.is_exclusive(m.start()).unwrap());
    }
}
