//! What `/proc` says of a process: its mappings, and the memory that it has.

use std::fs;
use std::io;
use std::ops::Range;

use crate::calls::{self, Call};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
