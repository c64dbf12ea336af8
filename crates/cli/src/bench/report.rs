//! What came out, beside what was published.

use super::command::Bench;
use crate::lab::Done;
use refault_sim::machine::Ending;
use refault_sim::scenario::{Better, PolicySpec, PublishedRow};

/// One benchmark.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) source: Option<String>,
    pub(super) scale: f64,
    pub(super) seeds: Vec<u64>,
    /// Before and after.
    pub(super) sides: [Side; 2],
    pub(super) rows: Vec<Row>,
    pub(super) notes: Vec<String>,
}

/// The runs of one side.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) policy: PolicySpec,
    /// Of one run; the mean of several.
    pub(super) virtual_seconds: f64,
    /// Of all runs.
    pub(super) real_seconds: f64,
    pub(super) events: u64,
    pub(super) oom_kills: u64,
    /// Of the first run.
    pub(super) ending: Ending,
}

/// One number of the publication.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) spec: PublishedRow,
    /// Ours; the mean over the seeds.
    pub(super) ours: [f64; 2],
    /// Of those.
    pub(super) ratio: f64,
    /// Of each seed.
    pub(super) ratios: Vec<f64>,
    /// Whether the ratio of every seed is in the band; none: there is no band.
    pub(super) within: Option<bool>,
}

/// After through before. Nothing on both sides is no change; a number out of nothing is infinitely more.
pub(super) fn ratio([before, after]: [f64; 2]) -> f64 {
    if before == 0.0 && after == 0.0 { 1.0 } else { after / before }
}

impl Report {
    /// `done`: for each seed before and after.
    pub(super) fn new(bench: &Bench, done: &[Done]) -> Result<Report, String> {
        let published = &bench.published;
        let side = |n: usize, policy: &PolicySpec| {
            let runs: Vec<_> = done.iter().skip(n).step_by(2).collect();
            Side {
                policy: policy.clone(),
                virtual_seconds: runs.iter().map(|d| d.result.seconds).sum::<f64>() / runs.len().max(1) as f64,
                real_seconds: runs.iter().map(|d| d.real_seconds).sum(),
                events: runs.iter().map(|d| d.result.events).sum(),
                oom_kills: runs.iter().map(|d| d.result.oom_kills).sum(),
                ending: runs.first().map_or(Ending::Stuck, |d| d.result.ending),
            }
        };
        let rows: Result<_, _> = published.rows.iter().map(|row| Row::new(row, done)).collect();
        Ok(Report {
            name: bench.scenario.name.clone(),
            about: bench.scenario.about.clone(),
            source: bench.scenario.source.clone(),
            scale: bench.scale,
            seeds: bench.seeds.clone(),
            sides: [side(0, &published.before), side(1, &published.after)],
            rows: rows.map_err(|e| format!("{}: {e}", bench.scenario.name))?,
            notes: published.notes.clone(),
        })
    }

    /// Whether every ratio that has a band is in it.
    pub(super) fn is_within(&self) -> bool {
        self.rows.iter().all(|row| row.within != Some(false))
    }

    /// Real seconds of all runs, as if one followed the other.
    pub(super) fn real_seconds(&self) -> f64 {
        self.sides.iter().map(|side| side.real_seconds).sum()
    }
}

impl Row {
    /// `done`: for each seed before and after. An error: the runs have no such number.
    fn new(spec: &PublishedRow, done: &[Done]) -> Result<Row, String> {
        let number = |done: &Done| {
            let unknown = || format!("published.row: {} is not a result of a run", spec.metric);
            done.result.metric(&spec.metric).ok_or_else(unknown)
        };
        let numbers: Vec<_> = done.iter().map(number).collect::<Result<_, _>>()?;
        let mean = |side: usize| {
            let of_side = || numbers.iter().skip(side).step_by(2);
            of_side().sum::<f64>() / of_side().count().max(1) as f64
        };
        let ours = [mean(0), mean(1)];
        let ratios: Vec<_> = numbers.chunks_exact(2).map(|pair| ratio([pair[0], pair[1]])).collect();
        let inside = |[low, high]: [f64; 2]| ratios.iter().all(|r| (low..=high).contains(r));
        Ok(Row { spec: spec.clone(), ours, ratio: ratio(ours), within: spec.band.map(inside), ratios })
    }

    /// Of the published numbers.
    pub(super) fn published_ratio(&self) -> Option<f64> {
        Some(ratio([self.spec.before?, self.spec.after?]))
    }

    /// The smallest and the largest ratio of the seeds.
    pub(super) fn spread(&self) -> [f64; 2] {
        let fold = |of: fn(f64, f64) -> f64| self.ratios.iter().copied().reduce(of).unwrap_or(self.ratio);
        [fold(f64::min), fold(f64::max)]
    }
}

/// Which direction is good, as a word.
pub(super) fn better_name(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher",
        Better::Lower => "lower",
    }
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn ratios_of_nothing() {
        assert_eq!(ratio([2.0, 3.0]), 1.5);
        assert_eq!(ratio([0.0, 0.0]), 1.0);
        assert_eq!(ratio([0.0, 3.0]), f64::INFINITY);
    }
}
