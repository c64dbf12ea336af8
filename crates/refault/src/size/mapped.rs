//! Pages that programs have mapped: a recording has their faults, and no touch after.
//!
//! Each size is replayed in both readings of them (`recording/in_use.rs`): nothing of it is used
//! any more, and all of it is. The truth is between, and a target must hold in both.

use super::recording::{PAGE_SIZE, RecordingSubject};
use super::sizing::Point;
use super::target::Metric;
use crate::memory_size::human;
use crate::recording::{Compared, Estimate, RecordedMisses};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Mapped pages are too few to matter below this part of a size, one in so many.
const MATTER: u64 = 32;

/// Differences between the readings that get a remark: of shares, and of counts as a part.
const APART: f64 = 0.01;
const APART_RATIO: f64 = 0.1;

/// Mapped pages, and the sizes that were tried as if all of them were in use.
#[derive(Debug, Default)]
pub(super) struct MappedPages {
    /// Pages.
    pages: u64,
    /// The largest share of the way from idle to in use, 0 to 1, that the recorded kernel leaves
    /// open.
    most_in_use: f64,
    /// Comparisons by size, with all of them in use.
    tried: Mutex<BTreeMap<u64, Compared>>,
}

impl MappedPages {
    /// So many pages.
    pub(super) fn new(pages: u64) -> MappedPages {
        MappedPages { pages, most_in_use: 1.0, tried: Mutex::default() }
    }

    /// Bounds the share in use by the recorded machine: `idle` is its run without touches.
    pub(super) fn compare_with_kernel(&mut self, size: u64, idle: &Compared) {
        let tried = self.tried.get_mut().ok();
        let Some(in_use) = tried.and_then(|tried| tried.get(&size)).filter(|in_use| !in_use.is_out_of_memory) else {
            return;
        };
        let total = &idle.total;
        let misses = RecordedMisses {
            idle: total.lab_misses as f64,
            in_use: in_use.total.lab_misses as f64,
            kernel: total.kernel_misses as f64,
            accesses: total.accesses as f64,
        };
        self.most_in_use = misses.most_in_use();
    }
}

impl RecordingSubject<'_> {
    /// Sees to it that these sizes were tried with mapped pages in use, where these matter.
    pub(super) fn replay_in_use(&self, sizes: &[u64]) -> Result<(), String> {
        let matter = |size: &u64| self.mapped.pages.saturating_mul(MATTER) > *size;
        let sizes: Vec<u64> = sizes.iter().copied().filter(matter).collect();
        self.replay_into(&self.mapped.tried, &sizes, true)
    }

    /// The point with the other reading in its bounds; its target must hold there, too.
    pub(super) fn with_mapped_in_use(&self, mut point: Point) -> Point {
        let Some((idle, in_use)) = self.readings(&point) else { return point };
        let (least, most) = (idle.min(in_use), idle.max(in_use));
        let (low, high) = self.widened((least, idle, most));
        let (low, high) = point.bounds.map_or((low, high), |bounds| (bounds.0.min(low), bounds.1.max(high)));
        point.bounds = (low != high).then_some((low, high));
        let worse = if self.target.metric().grows() { least } else { most };
        point.met = point.met && self.target.is_met(self.safe(worse));
        point
    }

    /// The value without touches of mapped pages, and with as many as the kernel leaves open.
    fn readings(&self, point: &Point) -> Option<(f64, f64)> {
        let tried = self.mapped.tried.lock().ok()?;
        let in_use = tried.get(&point.pages).filter(|in_use| !in_use.is_out_of_memory)?;
        let (idle, in_use) = (point.value?, self.measured(&Estimate::of(in_use)).1);
        Some((idle, idle + self.mapped.most_in_use * (in_use - idle)))
    }

    /// Remark on the size in which the readings are furthest apart.
    pub(super) fn mapped_in_words(&self, points: &[Point]) -> Option<String> {
        let metric = self.target.metric();
        let apart = |&(_, idle, in_use): &(u64, f64, f64)| match metric {
            Metric::HitRate => (idle - in_use).abs() / APART,
            _ => (idle - in_use).abs() / idle.max(in_use).max(f64::MIN_POSITIVE) / APART_RATIO,
        };
        let all = points.iter().filter_map(|point| {
            let (idle, in_use) = self.readings(point)?;
            Some((point.pages, idle, in_use))
        });
        let (pages, idle, in_use) = all.max_by(|a, b| apart(a).total_cmp(&apart(b))).filter(|of| apart(of) > 1.0)?;
        Some(format!(
            "{} of files are mapped, and a recording does not see whether they are used after the fault that brings \
             them: in {} the group has {} if not, {} if all of it is in use; bounds hold for both, and so does a limit \
             that is found",
            human(self.mapped.pages * PAGE_SIZE),
            human(pages * PAGE_SIZE),
            metric.show(idle),
            metric.show(in_use),
        ))
    }
}
