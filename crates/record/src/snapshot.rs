//! How a group, or the machine, is at a moment.

use crate::group::Cgroup;

/// Columns of `memory.stat`, under the names of the second version; names of the first in their
/// place.
const STAT: [(&str, &str); 15] = [
    ("file", "cache"),
    ("anon", "rss"),
    ("shmem", "shmem"),
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

/// Columns of `/proc/vmstat`, of the machine.
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

/// Columns of snapshots: figures that this kernel has.
#[derive(Debug)]
pub(crate) struct Columns {
    stat: Vec<(&'static str, &'static str)>,
}

impl Columns {
    /// Columns of a group; kernels differ in what they count for it.
    pub(crate) fn of(group: Option<&Cgroup>) -> Columns {
        let text = group.and_then(|g| g.text("memory.stat")).unwrap_or_default();
        Columns { stat: STAT.into_iter().filter(|names| find_either(&text, *names).is_some()).collect() }
    }

    /// The names of the values, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        let group = self.stat.iter().map(|(name, _)| (*name).to_owned());
        let machine = VMSTAT.iter().map(|name| format!("vmstat.{name}"));
        ["usage".to_owned()].into_iter().chain(group).chain(machine).collect()
    }

    /// The values; for a group that is gone they are 0.
    pub(crate) fn values(&self, group: Option<&Cgroup>) -> Vec<u64> {
        let stat = group.and_then(|g| g.text("memory.stat")).unwrap_or_default();
        let vmstat = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let usage = group.and_then(Cgroup::usage_bytes).unwrap_or(0);
        let of_group = self.stat.iter().map(|names| find_either(&stat, *names).unwrap_or(0));
        let of_machine = VMSTAT.iter().map(|name| find(&vmstat, name).unwrap_or(0));
        [usage].into_iter().chain(of_group).chain(of_machine).collect()
    }
}

/// The value under either name. The first version counts the group alone, and with all below it
/// (`total_`), as the second version does and as limits are.
fn find_either(text: &str, (second, first): (&str, &str)) -> Option<u64> {
    let total = [first, second].into_iter().find_map(|name| find(text, &format!("total_{name}")));
    total.or_else(|| find(text, second)).or_else(|| find(text, first))
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
        let columns = Columns::of(None);
        assert_eq!(columns.names().len(), columns.values(None).len());
        assert_eq!(find_either("cache 7\n", ("file", "cache")), Some(7));
        // A container whose processes are in a group below.
        assert_eq!(find_either("cache 7\ntotal_cache 9\n", ("file", "cache")), Some(9));
        assert_eq!(find_either("active_file 1\ntotal_active_file 2\n", ("active_file", "active_file")), Some(2));
        assert_eq!(find("file_mapped 3\nfile 5\n", "file"), Some(5));
        assert_eq!(find("file x\n", "file"), None);
    }
}
