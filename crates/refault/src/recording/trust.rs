//! Numbers of a replay that can be trusted, because the lab came out where the recorded kernel did.

use super::count::Compared;
use super::load::LoadedRecording;
use crate::words::grouped;
use serde::Serialize;

/// Largest difference in hit rate that is agreement, in percentage points.
pub const POINTS: f64 = 0.5;

/// Least share of single accesses, 0 to 1, that must have the same outcome.
pub const AGREEMENT: f64 = 0.99;

/// Largest difference of a count, as a share of the kernel's.
const PART: f64 = 0.2;

/// Counts that differ by less are chance: a loader, a table of contents.
const FEW: u64 = 100;

/// Difference of refaults that is agreement as well, as a share of the accesses.
const REFAULTS_PER_ACCESS: f64 = 0.005;

/// The counter of refaults of files.
const REFAULTS: &str = "workingset_refault_file";

/// A number that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustMetric {
    /// Share of accesses that met their page in memory.
    HitRate,
    /// Accesses that did not.
    Misses,
    /// Refaults of files.
    Refaults,
    /// Pages read from disks.
    DiskReads,
    /// Single accesses: whether each misses.
    SingleAccesses,
}

impl TrustMetric {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            TrustMetric::HitRate => "hit_rate",
            TrustMetric::Misses => "misses",
            TrustMetric::Refaults => "refaults",
            TrustMetric::DiskReads => "disk_reads",
            TrustMetric::SingleAccesses => "single_accesses",
        }
    }

    /// Its name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            TrustMetric::HitRate => "hit rate",
            TrustMetric::Misses => "misses",
            TrustMetric::Refaults => "refaults",
            TrustMetric::DiskReads => "disk reads",
            TrustMetric::SingleAccesses => "single accesses",
        }
    }
}

/// Metrics for which a replay is to be trusted. A number that the recording does not have is in
/// neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Metrics in which lab and kernel agree.
    pub for_: Vec<TrustMetric>,
    /// Metrics in which they do not agree, each with a reason.
    pub not_for: Vec<(TrustMetric, String)>,
}

impl Trust {
    /// Trust in a replay under the limit of the recording.
    pub fn of(compared: &Compared, loaded: &LoadedRecording) -> Trust {
        let mut trust = Trust::default();
        let total = &compared.total;
        let points = total.difference();
        trust.add(TrustMetric::HitRate, points.abs() <= POINTS, || {
            format!("the lab hits {} this kernel", apart(points))
        });
        trust.count(TrustMetric::Misses, total.kernel_misses, total.lab_misses, FEW);
        if let Some(kernel) = kernel_count(loaded, REFAULTS) {
            let lab = compared.ours.get(REFAULTS).copied().unwrap_or(0);
            let few = (total.accesses as f64 * REFAULTS_PER_ACCESS) as u64;
            trust.count(TrustMetric::Refaults, kernel, lab, few.max(FEW));
        }
        let [kernel, lab] = [compared.kernel_reads.read_pages, compared.lab_reads.read_pages];
        trust.count(TrustMetric::DiskReads, kernel, lab, FEW);
        let agreement = total.agreement();
        let percent = || format!("{:.2} % are the same", 100.0 * agreement);
        trust.add(TrustMetric::SingleAccesses, agreement >= AGREEMENT, percent);
        trust
    }

    fn count(&mut self, metric: TrustMetric, kernel: u64, lab: u64, few: u64) {
        let is_near = kernel.abs_diff(lab) as f64 <= (kernel as f64 * PART).max(few as f64);
        let unit = if metric == TrustMetric::DiskReads { " pages" } else { "" };
        self.add(metric, is_near, || format!("the lab has {}{unit}, the kernel {}", grouped(lab), grouped(kernel)));
    }

    fn add(&mut self, metric: TrustMetric, is_near: bool, why: impl FnOnce() -> String) {
        match is_near {
            true => self.for_.push(metric),
            false => self.not_for.push((metric, why())),
        }
    }

    /// In words.
    pub fn text(&self) -> String {
        let names: Vec<_> = self.for_.iter().map(|metric| metric.words()).collect();
        let names = match names.split_last() {
            None => "nothing".to_owned(),
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
        };
        let not = |(i, (metric, why)): (usize, &(TrustMetric, String))| {
            let joint = if i == 0 { "; " } else { ", and " };
            format!("{joint}not for {}: {why}", metric.words())
        };
        format!("trust it for {names}") + &self.not_for.iter().enumerate().map(not).collect::<String>()
    }
}

/// Growth of a counter of the recorded group, from the first look at it to the last; none: there
/// was no group, or it has no such counter.
pub fn kernel_count(loaded: &LoadedRecording, name: &str) -> Option<u64> {
    let (first, last) = loaded.recording.series.ends(name).filter(|_| loaded.recording.group.is_some())?;
    Some(last.saturating_sub(first))
}

/// By how many points one hits more than another, in words.
pub fn apart(points: f64) -> String {
    match (points.abs(), points > 0.0) {
        (points, _) if points < 0.005 => "as often as".to_owned(),
        (points, true) => format!("{points:.2} points more than"),
        (points, false) => format!("{points:.2} points less than"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(metric: TrustMetric, kernel: u64, lab: u64, few: u64) -> Trust {
        let mut trust = Trust::default();
        trust.count(metric, kernel, lab, few);
        trust
    }

    #[test]
    fn metrics_have_one_name() {
        use TrustMetric::{DiskReads, HitRate, Misses, Refaults, SingleAccesses};
        for metric in [HitRate, Misses, Refaults, DiskReads, SingleAccesses] {
            assert_eq!(serde_json::to_value(metric).ok(), Some(metric.name().into()));
        }
    }

    #[test]
    fn counts_are_judged_by_ratio() {
        assert_eq!(of(TrustMetric::Misses, 1000, 1200, FEW).for_, [TrustMetric::Misses]);
        // 0.36 % of a million accesses, and twice as many: the hit rates are 0.36 points apart.
        assert_eq!(of(TrustMetric::Misses, 3600, 7200, FEW).not_for.len(), 1);
        assert_eq!(of(TrustMetric::Misses, 5, 90, FEW).for_, [TrustMetric::Misses], "a few");
        assert_eq!(of(TrustMetric::Refaults, 2024, 702, 3728).for_, [TrustMetric::Refaults], "of 745,635 accesses");
    }

    #[test]
    fn regression_refaults_are_part_of_the_verdict() {
        let mut trust = of(TrustMetric::HitRate, 1, 1, 0);
        trust.for_.extend([TrustMetric::Misses, TrustMetric::DiskReads]);
        trust.count(TrustMetric::Refaults, 289_482, 8710, 2700);
        assert_eq!(
            trust.text(),
            "trust it for hit rate, misses and disk reads; not for refaults: the lab has 8,710, the kernel 289,482"
        );
        assert_eq!(of(TrustMetric::Misses, 9, 9, 0).text(), "trust it for misses");
        let mut nothing = of(TrustMetric::Misses, 9, 900, 0);
        nothing.count(TrustMetric::DiskReads, 1, 1000, 0);
        assert_eq!(
            nothing.text(),
            "trust it for nothing; not for misses: the lab has 900, the kernel 9, and not for disk reads: the lab has \
             1,000 pages, the kernel 1"
        );
    }
}
