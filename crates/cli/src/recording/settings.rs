//! Limit, policy, kernel and readahead of a replay, as the recording says.

use crate::flags::{kernel, recorded};
use refault_mm::{Config, Kernel, Policy};
use refault_trace::Recording;

/// What a recording is replayed with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) kernel: Kernel,
    pub(crate) config: Config,
    /// None: no limit.
    pub(crate) memory_pages: Option<u64>,
    pub(crate) files_only: bool,
}

impl Settings {
    /// Those of a recording, but for what is given. With `files_only` what its group had besides
    /// files takes no room.
    pub(crate) fn of(
        recording: &Recording,
        policy: Option<Policy>,
        kernel: Option<Kernel>,
        files_only: bool,
    ) -> Settings {
        let policy = policy.unwrap_or_else(|| recorded::policy(recording));
        let kernel = kernel.unwrap_or_else(|| recorded::kernel(recording));
        let mut config = kernel::config(Some(kernel), policy);
        config.swappiness = recorded::swappiness(recording).unwrap_or(config.swappiness);
        config.readahead.file_pages = recording.read_ahead_pages.unwrap_or(32).min(1 << 16);
        config.readahead.history = true;
        let has_usage = recording.series.column("usage").is_some() && recording.group.is_some();
        let files_only = files_only || !has_usage;
        // What the kernel takes for itself is in the usage of the group.
        config.memcg.charge_kernel &= files_only;
        let memory_pages = recording.memory_max.map(|bytes| bytes / 4096);
        Settings { policy, kernel, config, memory_pages, files_only }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_of_the_recording() {
        let recording = Recording {
            kernel: "6.18.1".to_owned(),
            lru_gen: true,
            memory_max: Some(1 << 20),
            swappiness: Some(7),
            read_ahead_pages: Some(64),
            ..Recording::default()
        };
        let s = Settings::of(&recording, None, None, false);
        assert_eq!((s.policy, s.kernel, s.memory_pages), (Policy::Mglru, Kernel::V6_18, Some(256)));
        assert_eq!((s.config.swappiness, s.config.readahead.file_pages, s.files_only), (7, 64, true));
        let s = Settings::of(&recording, Some(Policy::Lru), Some(Kernel::V6_1), false);
        assert_eq!((s.policy, s.kernel), (Policy::Lru, Kernel::V6_1));
    }
}
