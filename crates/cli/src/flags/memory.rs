//! `--max-memory`: how much memory this process may take itself.

use super::size::Size;
use clap::ArgMatches;
use std::fs;
use std::path::Path;

/// The name of the flag among those of a command.
pub(crate) const MAX_MEMORY: &str = "max_memory";

/// The bytes that a command line allows: what it says, or what is available; none: the machine
/// does not tell.
pub fn max_memory(matches: &ArgMatches) -> Option<u64> {
    let given = matches.try_get_one::<Size>(MAX_MEMORY).ok().flatten();
    match (given, matches.subcommand()) {
        // Pages are those of the machine, whatever those of the trace are.
        (Some(size), _) => Some(size.pages(4096, 0).saturating_mul(4096)),
        (None, Some((_, inner))) => max_memory(inner),
        (None, None) => available(),
    }
}

/// Bytes available to this process: of the machine, and of each memory cgroup that it is in.
fn available() -> Option<u64> {
    let of_groups = groups().into_iter().map(|(limit, used)| limit.saturating_sub(used));
    of_machine(&fs::read_to_string("/proc/meminfo").ok()?).into_iter().chain(of_groups).min()
}

fn of_machine(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Limit and use of the memory cgroup of this process and of those that it is in, in bytes. Pages
/// of files are not in use: they go when others are wanted.
fn groups() -> Vec<(u64, u64)> {
    let all = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in all.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, used) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        for path in Path::new(path.trim_start_matches('/')).ancestors() {
            let folder = Path::new(root).join(path);
            let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
            let files = fs::read_to_string(folder.join("memory.stat")).map_or(0, |stat| of_files(&stat));
            found.extend(number(limit).zip(number(used)).map(|(limit, used)| (limit, used.saturating_sub(files))));
        }
    }
    found
}

/// Bytes of files on the lists of reclaim, in `memory.stat` of either version.
fn of_files(stat: &str) -> u64 {
    let number = |key: &str| stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    let either = |key: &str| number(&format!("total_{key} ")).or_else(|| number(&format!("{key} "))).unwrap_or(0);
    either("inactive_file") + either("active_file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_read() {
        assert_eq!(of_machine("MemTotal: 9 kB\nMemAvailable:   1234 kB\n"), Some(1234 * 1024));
        assert_eq!(of_machine("MemTotal: 9 kB\n"), None);
        assert_eq!(of_files("active_file 3\ninactive_file 4\ntotal_active_file 30\ntotal_inactive_file 40\n"), 70);
        assert_eq!(of_files("anon 9\nactive_file 3\ninactive_file 4\n"), 7);
        assert!(available().is_none_or(|bytes| bytes > 1 << 20));
    }
}
