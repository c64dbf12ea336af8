//! Sizes and counters of a group now, as cgroupfs says.

use refault_record::Cgroup;
use serde::Serialize;

/// Sizes and counters of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Memory that it is charged for, in bytes.
    pub usage_bytes: u64,
    /// The least limit of it and of those around it; none: there is none.
    pub limit_bytes: Option<u64>,
    /// Pages of files.
    pub file_bytes: u64,
    /// Anonymous and shared memory.
    pub anon_bytes: u64,
    /// All but pages of files: anonymous and shared memory, page tables, slabs.
    pub besides_bytes: u64,
    /// Pages that came back from swap, ever; none: the kernel does not say.
    pub swap_ins: Option<u64>,
    /// Share of the last ten seconds in which a task waited for memory, in percent; none: the
    /// kernel does not say.
    pub pressure_percent: Option<f64>,
}

impl Figures {
    /// Reads them; none: the group is gone.
    pub fn read(group: &Cgroup) -> Option<Figures> {
        let usage_bytes = group.usage_bytes()?;
        let stat = group.text("memory.stat").unwrap_or_default();
        // The first version has sums over the groups below under names of their own.
        let number = |names: [&str; 2]| names.into_iter().find_map(|name| value(&stat, name));
        let cache = number(["file", "total_cache"]).unwrap_or(0);
        let shmem = number(["total_shmem", "shmem"]).unwrap_or(0);
        let file_bytes = cache.saturating_sub(shmem).min(usage_bytes);
        Some(Figures {
            usage_bytes,
            limit_bytes: group.limit_bytes(),
            file_bytes,
            anon_bytes: number(["anon", "total_rss"]).unwrap_or(0) + shmem,
            besides_bytes: usage_bytes - file_bytes,
            swap_ins: number(["pswpin", "total_pswpin"]),
            pressure_percent: group.text("memory.pressure").as_deref().and_then(pressure),
        })
    }
}

fn value(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// `avg10` of the line `some`.
fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|word| word.strip_prefix("avg10=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_whole_names() {
        let stat = "anon 5\nfile_mapped 7\nfile 9\ntotal_cache 11\n";
        assert_eq!((value(stat, "file"), value(stat, "cache"), value(stat, "total_cache")), (Some(9), None, Some(11)));
        assert_eq!(pressure("some avg10=1.25 avg60=0.00 total=9\nfull avg10=0.5\n"), Some(1.25));
        assert_eq!(pressure(""), None);
    }
}
