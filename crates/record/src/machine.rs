//! Facts that the recorder asks of its machine: settings, threads that reclaim, how events count
//! pages.

use crate::event::EventKind;
use crate::ring::Rings;
use rustc_hash::FxHashSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// Time from one look at the rings to the next.
pub(crate) const STEP: Duration = Duration::from_millis(20);

/// The threads of kswapd.
pub(crate) fn reclaimers() -> FxHashSet<u32> {
    kernel_threads("kswapd")
}

/// The threads of DAMON, which may be told to reclaim what was not accessed for a while.
pub(crate) fn pagers_out() -> FxHashSet<u32> {
    kernel_threads("kdamond")
}

/// Numbers of kernel threads whose names begin with `name`.
fn kernel_threads(name: &str) -> FxHashSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.starts_with(name)))
        .collect()
}

/// The swappiness of the machine.
pub fn swappiness() -> Option<u32> {
    fs::read_to_string("/proc/sys/vm/swappiness").ok()?.trim().parse().ok()
}

/// Bytes of swap that the machine has; none: not known.
pub(crate) fn swap_bytes() -> Option<u64> {
    swap_in(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn swap_in(meminfo: &str) -> Option<u64> {
    let kib = meminfo.lines().find_map(|line| line.strip_prefix("SwapTotal:"))?.trim().strip_suffix(" kB")?;
    kib.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Whether multi-gen LRU is on.
pub fn lru_gen() -> bool {
    let text = fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").unwrap_or_default();
    u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).is_ok_and(|bits| bits & 1 != 0)
}

/// How events of this kernel are to be taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calibration {
    /// Pages by which the last index of a read is beyond its last page.
    pub(crate) last_beyond: u64,
    /// The number of the cgroup of this process, as events have it; 0: they do not.
    pub(crate) cgroup: u64,
}

/// Reads one page of a file, and looks how far the event of it says that the read goes: some
/// versions of the kernel name the page behind the last one.
pub(crate) fn calibrate(rings: &mut Rings) -> Result<Calibration, String> {
    let path = "/proc/self/exe";
    let fail = |e: std::io::Error| format!("{path}: cannot be read: {e}");
    let mut file = fs::File::open(path).map_err(fail)?;
    let mut page = [0; 4096];
    file.read_exact(&mut page).map_err(fail)?;
    let own = std::process::id();
    let mut events = Vec::new();
    for _ in 0..50 {
        // Anew each time: where others fill a small ring, the event of one read may be lost.
        file.read_exact_at(&mut page, 0).map_err(fail)?;
        std::thread::sleep(STEP);
        rings.take(&mut events, false);
        let mut reads = events.iter().filter(|event| event.pid == own).filter_map(|event| match event.kind {
            EventKind::Read { first: 0, last, .. } => Some((last, event.cgroup)),
            // A probe says what the call asks for.
            EventKind::Begin { pos: 0, .. } => Some((0, event.cgroup)),
            _ => None,
        });
        if let Some((last, cgroup)) = reads.next_back() {
            return match last {
                0 | 1 => Ok(Calibration { last_beyond: last, cgroup }),
                _ => Err(format!("the kernel's events of reads are not understood: a page at 0 ends at {last}")),
            };
        }
    }
    Err("the kernel sends no event for a read: mm_filemap_get_pages, or the probe in its place, does not fire here"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_swap_of_a_machine() {
        assert_eq!(swap_in("MemTotal:  24684084 kB\nSwapTotal:       2048 kB\nSwapFree: 7 kB\n"), Some(2 << 20));
        assert_eq!(swap_in("MemTotal:  24684084 kB\n"), None);
    }
}
