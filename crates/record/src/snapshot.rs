//! How a group, or the machine, is at a moment.

use crate::group::Group;

/// Of `memory.stat`, under the names of the second version; those of the first in their place.
const STAT: [(&str, &str); 14] = [
    ("file", "cache"),
    ("anon", "rss"),
    ("file_mapped", "mapped_file"),
    ("file_dirty", "dirty"),
    ("file_writeback", "writeback"),
    ("inactive_file", "inactive_file"),
    ("active_file", "active_file"),
    ("inactive_anon", "inactive_anon"),
    ("active_anon", "active_anon"),
    ("workingset_refault_file", "workingset_refault_file"),
    ("workingset_activate_file", "workingset_activate_file"),
    ("workingset_restore_file", "workingset_restore_file"),
    ("pgscan", "pgscan"),
    ("pgsteal", "pgsteal"),
];

/// Of `/proc/vmstat`, of the machine.
const VMSTAT: [&str; 10] = [
    "nr_free_pages",
    "nr_inactive_file",
    "nr_active_file",
    "workingset_refault_file",
    "workingset_activate_file",
    "workingset_restore_file",
    "pgscan_direct",
    "pgsteal_direct",
    "pgsteal_kswapd",
    "pgmajfault",
];

/// The names of the values, in their order.
pub(crate) fn names() -> Vec<String> {
    let group = STAT.iter().map(|(name, _)| (*name).to_owned());
    let machine = VMSTAT.iter().map(|name| format!("vmstat.{name}"));
    ["usage".to_owned()].into_iter().chain(group).chain(machine).collect()
}

/// The values; what the kernel does not have is 0.
pub(crate) fn values(group: Option<&Group>) -> Vec<u64> {
    let stat = group.and_then(|g| g.text("memory.stat")).unwrap_or_default();
    let vmstat = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let usage = group.and_then(Group::usage_bytes).unwrap_or(0);
    let of_group = STAT.iter().map(|(second, first)| find(&stat, second).or_else(|| find(&stat, first)).unwrap_or(0));
    let of_machine = VMSTAT.iter().map(|name| find(&vmstat, name).unwrap_or(0));
    [usage].into_iter().chain(of_group).chain(of_machine).collect()
}

/// The value of a line `name value`.
fn find(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_names() {
        assert_eq!(names().len(), values(None).len());
        assert_eq!(find("file_mapped 3\nfile 5\n", "file"), Some(5));
        assert_eq!(find("file x\n", "file"), None);
    }
}
