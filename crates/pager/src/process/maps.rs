//! Facts in `/proc` about a process: its mappings, and the memory that it has.

use std::fs;
use std::io::{self, Read};
use std::ops::Range;

use crate::calls::{self, Call};
use crate::uffd::PAGE;
use refault_syscalls::maps::MapsLine;

/// The anonymous private mappings of a process that may be watched: all but its stack and what the
/// kernel put there.
pub(super) fn anonymous(pid: i32) -> io::Result<Vec<Range<usize>>> {
    Ok(read(pid, "maps")?.lines().filter_map(parse).collect())
}

fn read(pid: i32, name: &str) -> io::Result<String> {
    calls::made(Call::ReadProc, || fs::read_to_string(format!("/proc/{pid}/{name}")))
}

/// As [`read`], of a file of a line or two: one read gets all of it, where `read_to_string` takes
/// twice the time to find that out.
fn read_line(pid: i32, name: &str) -> io::Result<String> {
    let mut line = [0; 1024];
    let n = calls::made(Call::ReadProc, || fs::File::open(format!("/proc/{pid}/{name}"))?.read(&mut line))?;
    Ok(String::from_utf8_lossy(&line[..n]).into_owned())
}

/// The addresses of a line of `maps`, if its mapping may be watched.
fn parse(line: &str) -> Option<Range<usize>> {
    let line = MapsLine::parse(line)?;
    let ours = line.name.is_empty() || line.name == "[heap]" || line.name.starts_with("[anon:");
    let is_watched = line.inode == 0 && !line.is_shared() && ours;
    is_watched.then_some(line.addresses.start as usize..line.addresses.end as usize)
}

/// Memory of a process, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Size {
    /// Anonymous memory that it has, as its counters say (they may be off by some 64 a thread).
    pub(super) resident: u64,
    /// Memory of its own that it may write to: what it could have without another mapping.
    pub(super) writable: u64,
    /// Memory that it has of files and of memory that is shared.
    pub(super) shared: u64,
}

/// How much memory a process has. Nothing: it is gone.
pub(super) fn size(pid: i32) -> Size {
    read_line(pid, "statm").ok().and_then(|statm| parse_size(&statm)).unwrap_or_default()
}

/// Memory of a process that is not anonymous, nor of files, in KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Others {
    /// Anonymous memory that it has, for those that are not served.
    pub(super) anonymous: u64,
    /// Shared memory: anonymous mappings that are shared, memfd, System V, tmpfs.
    pub(super) shared: u64,
    /// Pages of hugetlbfs, private ones included.
    pub(super) huge: u64,
}

/// How much of other memory a process has. Nothing: it is gone.
pub(super) fn others(pid: i32) -> Others {
    read(pid, "status").map_or(Others::default(), |status| parse_others(&status))
}

fn parse_others(status: &str) -> Others {
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    Others { anonymous: of("RssAnon:"), shared: of("RssShmem:"), huge: of("HugetlbPages:") }
}

/// Whether a process has a handler of its own for a signal.
pub(super) fn catches(pid: i32, signal: i32) -> bool {
    let status = read(pid, "status").unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught >> (signal - 1) & 1 == 1
}

/// Processes that a process has started and that are there.
pub(super) fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_task = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let all: Vec<String> = tasks.flatten().map(of_task).collect();
    all.iter().flat_map(|text| text.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// Anonymous memory of a process, in pages, where each page counts by how many processes have it;
/// `None`: that cannot be known.
pub(super) fn proportional(pid: i32) -> Option<u64> {
    proportional_of(pid, "Pss_Anon:")
}

/// The same of its shared memory.
pub(super) fn proportional_shared(pid: i32) -> Option<u64> {
    proportional_of(pid, "Pss_Shmem:")
}

fn proportional_of(pid: i32, name: &str) -> Option<u64> {
    let text = match read(pid, "smaps_rollup") {
        // It is gone: others have what it had.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => return Some(0),
        text => text.ok()?,
    };
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.div_ceil(PAGE as u64 >> 10))
}

/// Minor faults of a process since it began. They include all by which it got a copy of a shared
/// page.
pub(super) fn minor_faults(pid: i32) -> u64 {
    const AFTER_THE_NAME: usize = 7;
    let stat = read_line(pid, "stat").unwrap_or_default();
    let faults = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(AFTER_THE_NAME));
    faults.and_then(|f| f.parse().ok()).unwrap_or(0)
}

/// `statm`: size, resident, shared, text, 0, data, 0.
fn parse_size(statm: &str) -> Option<Size> {
    let mut fields = statm.split_ascii_whitespace().skip(1).map(|f| f.parse::<u64>());
    let (resident, shared) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(Size { resident: resident.saturating_sub(shared), writable: fields.nth(2)?.ok()?, shared })
}

/// The mapping of an address, if a forked process gets zeros in its place (`MADV_WIPEONFORK`).
pub(super) fn wiped_on_fork(pid: i32, address: usize) -> Option<Range<usize>> {
    parse_wiped(&read(pid, "smaps").ok()?, address)
}

/// `smaps`: a line of `maps` for each mapping, then lines `Name: value`, the last of which are the
/// flags.
fn parse_wiped(smaps: &str, address: usize) -> Option<Range<usize>> {
    let mut here = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let is_wiped = flags.split_ascii_whitespace().any(|flag| flag == "wf");
            here = here.filter(|_| is_wiped);
            if here.is_some() {
                return here;
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_lowercase()) {
            here = parse(line).filter(|range| range.contains(&address));
        }
    }
    None
}

/// How many threads a process has.
pub(super) fn threads(pid: i32) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    // Two links of a directory are its own.
    let task = calls::made(Call::ReadProc, || fs::metadata(format!("/proc/{pid}/task"))).ok()?;
    task.nlink().checked_sub(2)
}

/// Whether another process has the memory of this one, not a copy of it (`CLONE_VM`): a child that
/// it has started.
pub(super) fn shares_its_memory(pid: i32) -> bool {
    children(pid).into_iter().any(|child| has_memory_of(child, pid))
}

/// Whether two processes have the same memory.
pub(super) fn has_memory_of(pid: i32, other: i32) -> bool {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: the call compares two processes and takes numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0 }
}

/// The process that started a process.
pub(super) fn parent(pid: i32) -> Option<i32> {
    let stat = read_line(pid, "stat").ok()?;
    // The name may contain anything, but ends at the last bracket.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The process that has a process under its control, as a debugger.
pub(super) fn tracer(pid: i32) -> Option<i32> {
    let number = |pid: i32, name: &str| {
        let status = read(pid, "status").ok()?;
        status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse::<i32>().ok()
    };
    // The tracer is a thread; it may be any of its process.
    number(number(pid, "TracerPid:").filter(|&tracer| tracer > 0)?, "Tgid:")
}

/// Whether a process is stopped, by a signal or a debugger: its agent would not answer.
pub(super) fn is_stopped(pid: i32) -> bool {
    let stat = read_line(pid, "stat").unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

/// Threads of a process that run or could run. `most`: threads that may still be looked at; it is
/// lowered by the number looked at.
pub(super) fn running(pid: i32, most: &mut usize) -> usize {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let threads: Vec<_> = threads.flatten().take(*most).map(|thread| thread.file_name()).collect();
    *most -= threads.len();
    let is_running = |tid: &&std::ffi::OsString| {
        let stat = read(pid, &format!("task/{}/stat", tid.display())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
    };
    threads.iter().filter(is_running).count()
}

/// Whether a process has ended: who started it may not have asked for its status yet.
pub(super) fn has_ended(pid: i32) -> bool {
    let stat = read_line(pid, "stat").unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// The status of a program of whose threads none is left: its first one has ended, and there is one
/// more, the agent.
pub(super) fn ended_with(pid: i32) -> Option<u32> {
    let status = parse_ended(&read_line(pid, "stat").ok()?)?;
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    (threads.count() == 2).then_some(status)
}

/// The status that its first thread ended with. Fields are counted from the state on, behind the
/// name.
fn parse_ended(stat: &str) -> Option<u32> {
    const STATUS: usize = 49;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let status: u32 = fields.get(STATUS)?.parse().ok()?;
    (fields[0] == "Z").then_some(status >> 8 & 0xFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_that_are_wiped() {
        let of = |at: &str, flags: &str| format!("{at} rw-p 00000000 00:00 0 \nSize: 8 kB\nVmFlags: rd wr {flags}\n");
        let text = [of("1000-3000", "mr wf"), of("3000-5000", "mr"), of("a000-c000", "wf ac")].concat();
        assert_eq!(parse_wiped(&text, 0x2000), Some(0x1000..0x3000));
        assert_eq!(parse_wiped(&text, 0xBFFF), Some(0xA000..0xC000));
        assert_eq!((parse_wiped(&text, 0x3000), parse_wiped(&text, 0x9000)), (None, None));
    }

    #[test]
    fn a_status_after_the_end() {
        let of = |state: char| format!("7 (a) (b) {state}{} 768\n", " 1".repeat(48));
        assert_eq!((parse_ended(&of('Z')), parse_ended(&of('S')), parse_ended("7 (a) Z 1")), (Some(3), None, None));
    }

    #[test]
    fn sizes_of_memory() {
        assert_eq!(
            parse_size("5000 1200 200 10 0 3000 0\n"),
            Some(Size { resident: 1000, writable: 3000, shared: 200 })
        );
        assert_eq!(parse_size("5000 1200"), None);
    }

    #[test]
    fn other_memory_of_a_status() {
        let text = "RssAnon:\t     132 kB\nRssFile:\t 9 kB\nRssShmem:\t  204828 kB\nHugetlbPages:\t    4096 kB\n";
        assert_eq!(parse_others(text), Others { anonymous: 132, shared: 204_828, huge: 4096 });
        assert_eq!(parse_others(""), Others::default());
    }

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
