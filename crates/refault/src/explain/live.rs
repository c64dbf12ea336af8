//! Files of this machine's kernel, read twice.

use super::{Counters, Explanation, explain};
use crate::{Failure, Watch};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files of the machine, and of all groups.
const MACHINE: [&str; 6] = [
    "/proc/vmstat",
    "/proc/meminfo",
    "/proc/pressure/memory",
    "/proc/pressure/io",
    "/sys/kernel/mm/lru_gen/min_ttl_ms",
    "/sys/kernel/debug/lru_gen",
];

/// Files of a group, with which it has limits, pressure and events.
const GROUP: [&str; 10] = [
    "memory.stat",
    "memory.events",
    "memory.swap.events",
    "memory.pressure",
    "io.pressure",
    "memory.current",
    "memory.max",
    "memory.swap.current",
    "memory.swap.max",
    "memory.swappiness",
];

/// Where memory cgroups are mounted.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"];

/// Explains the time from now on, by this machine's files and those of a group, read twice.
///
/// # Errors
/// There is no such group, or no counter can be read.
pub fn explain_live(cgroup: Option<&Path>, span: Duration, watch: &Watch) -> Result<Explanation, Failure> {
    let (folder, begun) = (cgroup.map(folder).transpose()?, Instant::now());
    let before = reading(folder.as_deref())?;
    watch.remark(&format!("reading the kernel's counters again in {:.0} s", span.as_secs_f64()));
    std::thread::sleep(span);
    let after = reading(folder.as_deref())?;
    explain(&before, &after, Some(begun.elapsed().as_secs_f64()))
}

/// The folder of a group, by its path in the hierarchy or in the file system.
fn folder(path: &Path) -> Result<PathBuf, String> {
    let inside = path.strip_prefix("/").unwrap_or(path);
    let places = MOUNTS.iter().map(|mount| Path::new(mount).join(inside)).chain([path.to_owned()]);
    let found = places.into_iter().find(|place| place.join("memory.stat").is_file());
    found.ok_or_else(|| {
        format!("--cgroup {}: is no memory cgroup of this machine; `systemd-cgls` lists them", path.display())
    })
}

/// Everything that can be read, with headings.
fn reading(folder: Option<&Path>) -> Result<Counters, String> {
    let of_group = folder.into_iter().flat_map(|folder| GROUP.map(|file| folder.join(file)));
    let mut text = String::new();
    for path in MACHINE.iter().map(PathBuf::from).chain(of_group) {
        // Kernels differ in which of these there are.
        if let Ok(content) = std::fs::read_to_string(&path) {
            let _ = writeln!(text, "==> {} <==\n{content}", path.display());
        }
    }
    Counters::parse(&text, "--live")
}
