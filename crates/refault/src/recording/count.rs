//! Hits and misses of the kernel and of the lab.

use super::load::LoadedRecording;
use super::sampled::SamplePart;
use super::settings::KeptParts;
use crate::replay::cell::{MissBits, MissSink as _};
use crate::replay::{DiskReads, EngineFigures};
use refault_trace::{Record, RecordKind, Via};
use serde::Serialize;
use std::collections::BTreeMap;

/// Spent on accesses: what a larger memory saves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissCosts {
    pub misses: u64,
    /// Pages that came back with a shadow.
    pub refaults: u64,
    /// Pages that were read from disks, and the requests that they came in.
    pub read_pages: u64,
    pub reads: u64,
}

impl std::ops::Sub for MissCosts {
    type Output = MissCosts;

    fn sub(self, other: MissCosts) -> MissCosts {
        MissCosts {
            misses: self.misses.saturating_sub(other.misses),
            refaults: self.refaults.saturating_sub(other.refaults),
            read_pages: self.read_pages.saturating_sub(other.read_pages),
            reads: self.reads.saturating_sub(other.reads),
        }
    }
}

impl std::ops::AddAssign for MissCosts {
    fn add_assign(&mut self, other: MissCosts) {
        self.misses += other.misses;
        self.refaults += other.refaults;
        self.read_pages += other.read_pages;
        self.reads += other.reads;
    }
}

/// Accesses, and how many of them missed in the kernel and in the lab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Accesses.
    pub accesses: u64,
    /// Accesses that missed in the kernel.
    pub kernel_misses: u64,
    /// Accesses that missed in the lab.
    pub lab_misses: u64,
    /// Accesses that hit in kernel and lab, or missed in both.
    pub same: u64,
}

impl Agreement {
    pub(super) fn add(&mut self, kernel: bool, lab: bool) {
        self.accesses += 1;
        self.kernel_misses += u64::from(kernel);
        self.lab_misses += u64::from(lab);
        self.same += u64::from(kernel == lab);
    }

    /// Adds hits of both, or takes some away: never more than there are.
    pub(super) fn add_hits(&mut self, more: i64) {
        let most = self.accesses.saturating_sub(self.kernel_misses.max(self.lab_misses)).min(self.same);
        let more = more.max(-(most as i64));
        self.accesses = self.accesses.saturating_add_signed(more);
        self.same = self.same.saturating_add_signed(more);
    }

    /// Hit rates in percent.
    pub fn rates(&self) -> (f64, f64) {
        let rate = |misses: u64| 100.0 * (1.0 - misses as f64 / self.accesses.max(1) as f64);
        (rate(self.kernel_misses), rate(self.lab_misses))
    }

    /// Hit rate of the lab less that of the kernel, in percentage points.
    pub fn difference(&self) -> f64 {
        let (kernel, lab) = self.rates();
        lab - kernel
    }

    /// Share of accesses, 0 to 1, with the same outcome in kernel and lab.
    pub fn agreement(&self) -> f64 {
        self.same as f64 / self.accesses.max(1) as f64
    }
}

/// Result of a replay beside the kernel.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// All accesses.
    pub total: Agreement,
    /// Accesses by descriptor.
    pub by_descriptor: Agreement,
    /// Accesses by mapping.
    pub by_mapping: Agreement,
    /// Sampled touches: all are hits of the kernel, and none is in `total`.
    pub sampled: Agreement,
    /// Equal windows of the accesses.
    pub windows: Vec<Agreement>,
    /// When the first access of each was.
    window_from_ns: Vec<Option<u64>>,
    /// Accesses and misses by object.
    pub objects: Vec<Agreement>,
    /// Pages that the kernel added for the recorded programs, evicted of theirs, and dropped.
    pub added: u64,
    /// Pages that the kernel evicted.
    pub evicted: u64,
    /// Pages that left memory otherwise.
    pub dropped: u64,
    /// Counters of the engine.
    pub ours: BTreeMap<String, u64>,
    /// Figures of the engine at the end.
    pub inside: Option<EngineFigures>,
    /// A bit an access of the lab, if that was asked for.
    pub bits: Option<MissBits>,
    /// Disk reads of the kernel.
    pub kernel_reads: DiskReads,
    /// Reads of the lab.
    pub lab_reads: DiskReads,
    /// Pages that were in memory at the start.
    pub warm: u64,
    /// Accesses after this size was full, and misses of the lab among them; all accesses if the
    /// recording leaves nothing open.
    pub settled: (u64, u64),
    /// Spent by the lab on misses that may have been hits: see `Run::settle`.
    pub open: MissCosts,
    /// Memory besides files does not fit, or nothing was left to reclaim: the lab stopped, so that
    /// its counts are not whole.
    pub is_out_of_memory: bool,
    /// Accesses that the lab made.
    pub replayed: u64,
    /// Parts of a sample; none: all pages were recorded.
    pub parts: Vec<SamplePart>,
    /// Accesses that there were for each page of the sample, where the kernel counted all.
    pub counted: Option<f64>,
    /// Standard error of the number of units of the sample, as a share of it.
    pub(super) units_error: f64,
    /// Whether the warm-up is over: nothing before it counts.
    pub(super) is_measured: bool,
    all: u64,
}

impl Compared {
    /// For the accesses from a time on.
    pub fn new(loaded: &LoadedRecording, keep: &KeptParts, from_ns: u64) -> Compared {
        let compared = |r: &&Record| {
            r.time_ns >= from_ns && matches!(r.kind, RecordKind::Touch | RecordKind::Hit | RecordKind::Miss)
        };
        let all: u64 = loaded.records.iter().filter(compared).map(|r| u64::from(r.pages)).sum();
        let windows = keep.windows.clamp(1, all.max(1)) as usize;
        Compared {
            windows: vec![Agreement::default(); windows],
            window_from_ns: vec![None; windows],
            bits: keep.bits.then(|| MissBits::new(all as usize)),
            objects: vec![Agreement::default(); loaded.objects.len()],
            is_measured: from_ns == 0,
            all,
            ..Compared::default()
        }
    }

    /// Counts an access at a time in nanoseconds, as a hit or a miss of each.
    pub fn access(&mut self, now_ns: u64, object: u32, via: Via, kernel: bool, lab: bool) {
        if !self.is_measured {
            return;
        }
        let window = u128::from(self.total.accesses) * self.windows.len() as u128 / u128::from(self.all.max(1));
        if let Some(bits) = self.bits.as_mut().filter(|_| lab) {
            bits.miss(self.total.accesses);
        }
        self.total.add(kernel, lab);
        match via {
            Via::Fd => self.by_descriptor.add(kernel, lab),
            Via::Map => self.by_mapping.add(kernel, lab),
        }
        if let Some(from) = self.window_from_ns.get_mut(window as usize) {
            from.get_or_insert(now_ns);
        }
        if let Some(window) = self.windows.get_mut(window as usize) {
            window.add(kernel, lab);
        }
        self.objects[object as usize].add(kernel, lab);
    }

    /// Counts what the kernel did. `others`: pages of its evictions that are charged to other
    /// groups.
    pub fn count(&mut self, record: &Record, others: u64) {
        if !self.is_measured {
            return;
        }
        let pages = u64::from(record.pages);
        match record.kind {
            RecordKind::Add => self.added += pages,
            RecordKind::Evict => self.evicted += pages.saturating_sub(others),
            RecordKind::Drop => self.dropped += pages,
            _ => {}
        }
    }

    /// When each window begins, in seconds since the first access; one without an access begins as
    /// the one before it.
    pub fn window_from_s(&self) -> Vec<f64> {
        let first = self.window_from_ns.iter().flatten().next().copied().unwrap_or(0);
        let mut last = first;
        let seconds = |from: &Option<u64>| {
            last = from.unwrap_or(last).max(last);
            (last - first) as f64 / 1e9
        };
        self.window_from_ns.iter().map(seconds).collect()
    }

    /// The largest differences in a window, in points: how much less and more the lab hits.
    pub fn extremes(&self) -> (f64, f64) {
        let all = self.windows.iter().filter(|w| w.accesses > 0).map(Agreement::difference);
        all.fold((0.0, 0.0), |(low, high): (f64, f64), d| (low.min(d), high.max(d)))
    }

    /// The objects with most misses more or less than the kernel's.
    pub fn worst(&self) -> Vec<(usize, &Agreement)> {
        let mut all: Vec<_> =
            self.objects.iter().enumerate().filter(|(_, b)| b.lab_misses != b.kernel_misses).collect();
        all.sort_by_key(|(_, b)| std::cmp::Reverse(b.lab_misses.abs_diff(b.kernel_misses)));
        all.truncate(10);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_counted() {
        let mut both = Agreement::default();
        for (kernel, lab) in [(true, true), (false, false), (true, false), (false, false)] {
            both.add(kernel, lab);
        }
        assert_eq!(both, Agreement { accesses: 4, kernel_misses: 2, lab_misses: 1, same: 3 });
        assert_eq!((both.rates(), both.difference(), both.agreement()), ((50.0, 75.0), 25.0, 0.75));
    }
}
