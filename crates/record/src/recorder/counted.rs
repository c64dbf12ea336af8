//! Accesses of all pages that programs in the kernel counted beside a sample.

use super::{RecordTarget, Recorder};
use crate::bpf::Programs;
use crate::group::{Cgroup, Ids};
use rustc_hash::FxHashMap;

/// Counts so far, by number of the process or of the memory cgroup.
#[derive(Debug)]
pub(super) struct Counted {
    by_key: FxHashMap<u64, u64>,
    /// Groups that are recorded; none: counts are of processes.
    groups: Option<Ids>,
}

impl Counted {
    /// Counts for a target, which may be a group.
    pub(super) fn of(target: &RecordTarget, group: Option<&Cgroup>) -> Counted {
        let group = group.filter(|_| matches!(target, RecordTarget::Group));
        Counted { by_key: FxHashMap::default(), groups: group.map(Cgroup::ids_of_programs) }
    }
}

impl Recorder {
    /// Takes what was counted since the last time.
    pub(super) fn take_counted(&mut self) {
        for (key, touches) in self.rings.programs().map(Programs::accesses).unwrap_or_default() {
            *self.counted.by_key.entry(key).or_insert(0) += touches;
        }
    }

    /// Touches for reading of what is recorded; none: nobody counts.
    pub(super) fn counted(&mut self) -> Option<u64> {
        self.rings.programs()?;
        let Counted { by_key, groups } = &mut self.counted;
        let members = &self.members;
        let mut is_ours = |key: u64| match groups {
            Some(groups) => groups.contain(key),
            None => u32::try_from(key).is_ok_and(|pid| members.has(pid)),
        };
        Some(by_key.iter().filter(|(key, _)| is_ours(**key)).map(|(_, touches)| touches).sum())
    }
}
