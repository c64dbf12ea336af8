//! `--max-memory`: how much memory this process may take itself.

use super::size::Size;
use clap::{ArgMatches, Args};
use std::fs;
use std::path::Path;

/// The name of the flag among those of a command.
const MAX_MEMORY: &str = "max_memory";

/// The flag, of every command that reads a trace or a recording. `max_memory` finds it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MaxMemoryArgs {
    /// End with an error rather than have more memory than so much, program and all [default: what
    /// is available at the start, to this process and its memory cgroup]
    #[arg(long, value_name = "SIZE", value_parser = Size::absolute, id = MAX_MEMORY)]
    max_memory: Option<Size>,
}

/// The bytes that a command line allows this process: what it says, or what it has and what is
/// available; none: the machine does not tell.
pub fn max_memory(matches: &ArgMatches) -> Option<u64> {
    let given = matches.try_get_one::<Size>(MAX_MEMORY).ok().flatten();
    match (given, matches.subcommand()) {
        // Pages are those of the machine, whatever those of the trace are.
        (Some(size), _) => Some(size.pages(4096, 0).saturating_mul(4096)),
        (None, Some((_, inner))) => max_memory(inner),
        (None, None) => Some(available()?.saturating_add(refault_syscalls::resident_bytes() as u64)),
    }
}

/// Whether a command has it.
pub fn has_max_memory(command: &clap::Command) -> bool {
    command.get_arguments().any(|arg| arg.get_id() == MAX_MEMORY)
}

/// Advises who meets the bound with a trace: flags that this command line may have. `streams`,
/// `samples`: whether it may have these.
pub(crate) fn advise(streams: bool, samples: bool) {
    refault_syscalls::advise_when_full(match (streams, samples) {
        (true, true) => "take fewer sizes and policies at a time, --stream or --sample 1%",
        (true, false) => "take fewer sizes and policies at a time, or --stream",
        (false, true) => "take fewer sizes and policies at a time, or --sample 1%",
        (false, false) => SMALLER,
    });
}

/// Advises who meets the bound with a scenario.
pub(crate) fn advise_scenario(is_scaled: bool) {
    refault_syscalls::advise_when_full(match is_scaled {
        true => "take --threads 1, or a larger --scale",
        false => "take --threads 1, or --scale 2",
    });
}

/// The advice where nothing else is known.
const SMALLER: &str = "take fewer inputs, sizes and policies at a time, or --threads 1";

/// Advises who meets the bound with a command, as long as nothing more is known of its input.
pub fn advise_for(command: &clap::Command) {
    if command.get_arguments().any(|arg| arg.get_id() == "threads") {
        refault_syscalls::advise_when_full(SMALLER);
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
