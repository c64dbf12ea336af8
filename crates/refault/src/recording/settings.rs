//! Limit, policy, kernel and readahead of a replay, as the recording says.

use super::load::LoadedRecording;
use crate::settings;
use crate::time::time;
use refault_mm::{Config, Kernel, MAX_ORDER, Policy, Readahead};
use refault_trace::{ObjectInfo, Recording};
use std::str::FromStr;

/// Settings of the replay of a recording.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policy.
    pub policy: Policy,
    /// The kernel whose rules hold.
    pub kernel: Kernel,
    /// The configuration of the engine.
    pub config: Config,
    /// Limit in pages; none: no limit.
    pub memory_pages: Option<u64>,
    /// Leave out the room of what the group has besides files.
    pub files_only: bool,
    /// The largest order of a folio of any file; none: as large as the recording has seen them of
    /// each.
    pub large_folios: Option<u8>,
    /// Largest readahead window of any file, in pages; none: by its device.
    pub read_ahead: Option<u32>,
    /// Whether programs touch what they have mapped all the time; else nothing but its faults is
    /// known of it.
    pub mapped_in_use: bool,
    /// Accesses at the start that are not compared.
    pub warm_up: WarmUp,
    /// Parts that are kept.
    pub keep: KeptParts,
}

/// How much at the start of a recording is not compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum WarmUp {
    /// Nothing: a warm service begins with what it had in memory, and what is open then is said.
    #[default]
    Auto,
    /// Nanoseconds.
    Time(u64),
    /// A part of its time, 0 to 1.
    Part(f64),
}

impl WarmUp {
    /// Its end, in nanoseconds of the recording.
    pub(super) fn end_ns(self, loaded: &LoadedRecording) -> u64 {
        match self {
            WarmUp::Auto => 0,
            WarmUp::Time(ns) => ns,
            WarmUp::Part(part) => (loaded.recording.duration_ns as f64 * part) as u64,
        }
    }
}

impl FromStr for WarmUp {
    type Err = String;

    fn from_str(text: &str) -> Result<WarmUp, String> {
        if text == "auto" {
            return Ok(WarmUp::Auto);
        }
        let wrong = |_| format!("{text:?} is not auto, a time (30s, 2m) or a part of the recording (25%)");
        match text.strip_suffix('%').map(str::parse::<f64>) {
            Some(Ok(percent)) if (0.0..100.0).contains(&percent) => Ok(WarmUp::Part(percent / 100.0)),
            Some(_) => Err(wrong(String::new())),
            None => time(text).map(|time| WarmUp::Time(time.as_nanos() as u64)).map_err(wrong),
        }
    }
}

/// Parts of a replay that are kept.
#[derive(Clone, Debug)]
pub struct KeptParts {
    /// Windows of equal numbers of accesses.
    pub windows: u64,
    /// A bit an access.
    pub bits: bool,
    /// The generations at the end.
    pub lru_gen: bool,
}

impl Default for KeptParts {
    fn default() -> KeptParts {
        KeptParts { windows: 64, bits: false, lru_gen: false }
    }
}

impl Settings {
    /// Settings of a recording; a policy and a kernel given replace its own. With `files_only`,
    /// memory of its group other than files takes no room.
    pub fn of(recording: &Recording, policy: Option<Policy>, kernel: Option<Kernel>, files_only: bool) -> Settings {
        let policy = policy.unwrap_or_else(|| settings::policy_of(recording));
        let kernel = kernel.unwrap_or_else(|| settings::kernel_of(recording));
        let mut config = settings::config(Some(kernel), policy);
        config.swappiness = settings::swappiness_of(recording).unwrap_or(config.swappiness);
        config.readahead.file_pages = recording.read_ahead_pages.unwrap_or(32).min(1 << 16);
        config.readahead.history = true;
        config.readahead.order_growth = kernel.order_growth();
        config.readahead.mmap_hits = kernel.mmap_hits();
        // The dirty pages of a machine are few, as far as a recording knows.
        config.dirty.cgroup_writeback = recording.cgroup_version != Some(1);
        // Recordings have times, and the group's statistics are added up when they are read.
        config.lru.stat_flush_interval_ns = settings::stat_flush_interval_ns(kernel);
        let has_usage = recording.series.column("usage").is_some() && recording.group.is_some();
        let files_only = files_only || !has_usage;
        // Memory of the kernel itself is in the usage of the group.
        config.memcg.charge_kernel &= files_only;
        let memory_pages = recording.memory_max.map(|bytes| bytes / 4096);
        Settings {
            policy,
            kernel,
            config,
            memory_pages,
            files_only,
            large_folios: None,
            read_ahead: None,
            mapped_in_use: false,
            warm_up: WarmUp::Auto,
            keep: KeptParts::default(),
        }
    }

    /// The limit under which memory comes into the state at the start: a warm service has come
    /// there in the limit that it had then.
    pub(super) fn first_limit(&self, loaded: &LoadedRecording) -> u64 {
        let recorded = loaded.recording.memory_max.map(|bytes| bytes / 4096).filter(|_| loaded.start.is_warm);
        // A smaller limit is there from the beginning: to reclaim the difference at once would
        // leave other lists than reclaim page by page.
        let pages = self.memory_pages.unwrap_or(u64::MAX);
        recorded.map_or(pages, |recorded| recorded.min(pages))
    }

    /// The limit from then on, if it is another.
    pub(super) fn limit_after_start(&self, loaded: &LoadedRecording) -> Option<u64> {
        Some(self.memory_pages.unwrap_or(u64::MAX)).filter(|&limit| limit != self.first_limit(loaded))
    }

    /// Whether the limit is larger than the recorded one, and the service was warm: pages that were
    /// not in memory at the start may have been there in this size.
    pub(super) fn is_larger_than_recorded(&self, loaded: &LoadedRecording) -> bool {
        let recorded = loaded.recording.memory_max.map(|bytes| bytes / 4096);
        let is_larger = recorded.is_some_and(|recorded| self.memory_pages.is_none_or(|pages| pages > recorded));
        loaded.start.is_warm && is_larger
    }

    /// Whether it is a size that would have evicted pages of a warm service before it was recorded.
    pub(super) fn is_smaller_than_recorded(&self, loaded: &LoadedRecording) -> bool {
        let recorded = loaded.recording.memory_max.map_or(u64::MAX, |bytes| bytes / 4096);
        loaded.start.is_warm && self.memory_pages.is_some_and(|pages| pages < recorded)
    }

    /// The largest order of a folio of a file.
    pub fn file_order(&self, file: &ObjectInfo) -> u8 {
        self.large_folios.unwrap_or(file.folio_order).min(MAX_ORDER)
    }

    /// The readahead of a file that was just opened.
    pub fn readahead(&self, file: &ObjectInfo) -> Readahead {
        Readahead::on_device(self.read_ahead_pages(file))
    }

    /// The largest window of a file, in pages.
    pub(super) fn read_ahead_pages(&self, file: &ObjectInfo) -> u32 {
        self.read_ahead.or(file.read_ahead_pages).unwrap_or(self.config.readahead.file_pages).min(1 << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault_trace::ObjectKind;

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
        assert!(s.config.dirty.cgroup_writeback);
        let recording = Recording { cgroup_version: Some(1), ..recording };
        let s = Settings::of(&recording, Some(Policy::Lru), Some(Kernel::V6_1), false);
        assert!(!s.config.dirty.cgroup_writeback);
        assert_eq!((s.policy, s.kernel), (Policy::Lru, Kernel::V6_1));
    }

    #[test]
    fn files_have_what_was_seen_of_them_unless_a_flag_says_otherwise() {
        let seen =
            ObjectInfo { folio_order: 4, read_ahead_pages: Some(640), ..ObjectInfo::new("/f", ObjectKind::File) };
        let other = ObjectInfo { folio_order: 200, ..ObjectInfo::new("/g", ObjectKind::File) };
        let mut s = Settings::of(&Recording { read_ahead_pages: Some(64), ..Recording::default() }, None, None, true);
        assert_eq!([&seen, &other].map(|file| s.file_order(file)), [4, MAX_ORDER]);
        assert_eq!([&seen, &other].map(|file| s.readahead(file)), [640, 64].map(Readahead::on_device));
        (s.large_folios, s.read_ahead) = (Some(0), Some(32));
        assert_eq!((s.file_order(&seen), s.readahead(&seen)), (0, Readahead::on_device(32)));
    }
}
