//! What the flags of a replay are for a recording, unless they are given.

use crate::terminal::printable;
use refault_mm::{Kernel, Policy};
use refault_trace::Recording;
use std::path::Path;

/// The policy of the recorded kernel.
pub(crate) fn policy(recording: &Recording) -> Policy {
    if recording.lru_gen { Policy::Mglru } else { Policy::Lru }
}

/// The swappiness of the recorded group.
pub(crate) fn swappiness(recording: &Recording) -> Option<u32> {
    recording.swappiness.map(|swappiness| swappiness.min(200))
}

/// The profile of the recorded kernel.
pub(crate) fn kernel(recording: &Recording) -> Kernel {
    profile(&recording.kernel)
}

/// How often this kernel adds up what groups counted, for reclaim to see (`FLUSH_TIME`); 0:
/// whenever it looks.
pub(crate) fn stat_flush_interval_ns(kernel: Kernel) -> u64 {
    if kernel.has_exact_stats() { 0 } else { 2_000_000_000 }
}

/// Says that touches were sampled, and how.
pub(crate) fn note_touches(recording: Option<&Recording>, path: &Path) {
    if let Some(touches) = recording.and_then(|recording| recording.touches) {
        let path = printable(&path.display().to_string());
        eprintln!(
            "note: {path}: touches of memory in place were sampled ({touches}): each is an accessed bit, seen at the end \
             of its interval"
        );
    }
}

/// Says that a recording is not whole.
pub(crate) fn note_cut(recording: Option<&Recording>, path: &Path) {
    if recording.is_some_and(|recording| recording.cut) {
        let path = printable(&path.display().to_string());
        eprintln!("note: {path}: is cut: its recorder was ended, or the file is not whole; what is there is replayed");
    }
}

/// Says that nothing but files has a size, where no group was recorded.
pub(crate) fn note_files_only(recording: &Recording, path: &Path) {
    if recording.group.is_none() {
        let path = printable(&path.display().to_string());
        eprintln!(
            "note: {path}: was recorded without a memory cgroup, so that sizes are of pages of files only; what the \
             programs take besides comes on top. With record --cgroup or --memory it is in the size"
        );
    }
}

/// The profile for a release such as `6.18.44-generic`: the last one that is not younger, but that
/// multi-gen LRU of 6.18 came with 6.14.
fn profile(release: &str) -> Kernel {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return Kernel::default() };
    match (major, minor) {
        (..6, _) | (6, ..6) => Kernel::V6_1,
        (6, ..12) => Kernel::V6_6,
        (6, ..14) => Kernel::V6_12,
        (6, _) | (7, ..2) => Kernel::V6_18,
        _ => Kernel::V7_2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_the_profile_of_its_multi_gen_lru() {
        let cases = [
            ("5.15.0", Kernel::V6_1),
            ("6.1.0-25-amd64", Kernel::V6_1),
            ("6.8.0-31-generic", Kernel::V6_6),
            ("6.12.1", Kernel::V6_12),
            ("6.13.9", Kernel::V6_12),
            ("6.14.0", Kernel::V6_18),
            ("6.17.9", Kernel::V6_18),
            ("6.18.44-fc", Kernel::V6_18),
            ("7.0-rc1", Kernel::V6_18),
            ("7.2.0-rc5", Kernel::V7_2),
            ("8.0", Kernel::V7_2),
            ("", Kernel::default()),
            ("six", Kernel::default()),
        ];
        for (release, want) in cases {
            assert_eq!(profile(release), want, "{release}");
        }
    }
}
