//! Results of a benchmark beside the published ones.

use super::benchmark::Benchmark;
use crate::runner::FinishedRun;
use refault_lab::machine::Ending;
use refault_lab::scenario::{
    Band, BandFrom, Better, Parameters, PolicySpec, PublishedRatio, PublishedRow, PublishedVariant,
};

/// One benchmark.
#[derive(Clone, Debug)]
pub struct BenchReport {
    /// The name of the scenario.
    pub name: String,
    /// A sentence about it.
    pub about: String,
    /// Where it was published.
    pub source: Option<String>,
    /// Factor by which the machine is smaller than the published one.
    pub scale: f64,
    /// The seeds of the runs.
    pub seeds: Vec<u64>,
    /// Whether it is compiled in, and ran at its own scale and with its own seeds.
    pub is_default: bool,
    /// Variants compared, in the order of the scenario.
    pub variants: Vec<Variant>,
    /// The published numbers.
    pub rows: Vec<BenchRow>,
    /// Remarks of the scenario.
    pub notes: Vec<String>,
    /// Where the values of the scenario come from.
    pub parameters: Parameters,
}

/// The runs of one variant.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its policy.
    pub policy: PolicySpec,
    /// Simulated seconds of one run; the mean of several.
    pub virtual_seconds: f64,
    /// Real seconds of all runs together.
    pub real_seconds: f64,
    /// Events of all runs together.
    pub events: u64,
    /// Tasks that all runs together killed for lack of memory.
    pub oom_kills: u64,
    /// Ending of the first run.
    pub ending: Ending,
}

/// One row of the publication: a number for each variant.
#[derive(Clone, Debug)]
pub struct BenchRow {
    /// The row of the scenario.
    pub spec: PublishedRow,
    /// Factor from our numbers to a machine of full size.
    pub to_full_size: f64,
    /// Numbers by variant.
    pub numbers: Vec<Number>,
    /// Ratios of two variants.
    pub ratios: Vec<Ratio>,
}

/// The number of one variant.
#[derive(Clone, Debug)]
pub struct Number {
    /// The published number.
    pub published: Option<f64>,
    /// Band that our number must be in.
    pub band: Option<Band>,
    /// Mean over the seeds.
    pub mean: f64,
    /// Values by seed.
    pub all: Vec<f64>,
    /// Whether the mean is in the band; none: there is no band.
    pub within: Option<bool>,
}

/// The number of one variant through that of another.
#[derive(Clone, Debug)]
pub struct Ratio {
    /// The ratio of the scenario.
    pub spec: PublishedRatio,
    /// The published ratio.
    pub published: Option<f64>,
    /// Ratio of the means.
    pub ratio: f64,
    /// Ratios by seed.
    pub all: Vec<f64>,
    /// Difference of the means, in full size.
    pub difference: f64,
    /// The published difference.
    pub published_difference: Option<f64>,
    /// Whether the ratio (or the difference) of every seed is in the band; none: there is no band.
    pub within: Option<bool>,
}

/// Quotient of two numbers: 0 by 0 is 1, no change; any other number by 0 is infinite.
fn ratio(of: f64, to: f64) -> f64 {
    if to == 0.0 && of == 0.0 { 1.0 } else { of / to }
}

impl BenchReport {
    /// `done`: for each seed every variant.
    pub(super) fn new(bench: &Benchmark, done: &[FinishedRun]) -> Result<BenchReport, String> {
        let published = &bench.published;
        let step = published.variants.len();
        let variant = |(n, v): (usize, &PublishedVariant)| {
            Variant::new(v, &done.iter().skip(n).step_by(step).collect::<Vec<_>>())
        };
        let rows: Result<_, _> = published.rows.iter().map(|row| BenchRow::new(row, step, bench.scale, done)).collect();
        Ok(BenchReport {
            name: bench.scenario.name.clone(),
            about: bench.scenario.about.clone(),
            source: bench.scenario.source.clone(),
            scale: bench.scale,
            seeds: bench.seeds.clone(),
            is_default: bench.is_default,
            variants: published.variants.iter().enumerate().map(variant).collect(),
            rows: rows.map_err(|e| format!("{}: {e}", bench.scenario.name))?,
            notes: published.notes.clone(),
            parameters: published.parameters.clone(),
        })
    }

    /// Verdicts of all bands, of numbers and of ratios, by the name of the row.
    pub fn verdicts(&self) -> impl Iterator<Item = (String, bool)> + '_ {
        self.rows.iter().flat_map(|row| {
            let numbers = row.numbers.iter().enumerate().map(|(at, n)| (self.name_of_number(row, at), n.within));
            let ratios = row.ratios.iter().map(|r| (self.name_of_ratio(row, r), r.within));
            numbers.chain(ratios).filter_map(|(name, within)| Some((name, within?))).collect::<Vec<_>>()
        })
    }

    /// Name of a variant's number in the list of known misses.
    pub fn name_of_number(&self, row: &BenchRow, variant: usize) -> String {
        format!("{}: {}, {}", self.name, row.spec.label, self.variants[variant].name)
    }

    /// Name of a ratio in that list.
    pub fn name_of_ratio(&self, row: &BenchRow, ratio: &Ratio) -> String {
        let [of, to] = [ratio.spec.of, ratio.spec.to].map(|n| &self.variants[n].name);
        let which = if self.variants.len() == 2 { String::new() } else { format!(", {of} / {to}") };
        format!("{}: {}{which}", self.name, row.spec.label)
    }

    /// Real seconds of all runs, as if one followed the other.
    pub fn real_seconds(&self) -> f64 {
        self.variants.iter().map(|variant| variant.real_seconds).sum()
    }
}

impl Variant {
    fn new(variant: &PublishedVariant, runs: &[&FinishedRun]) -> Variant {
        Variant {
            name: variant.name.clone(),
            policy: variant.policy.clone(),
            virtual_seconds: runs.iter().map(|d| d.result.seconds).sum::<f64>() / runs.len().max(1) as f64,
            real_seconds: runs.iter().map(|d| d.real_seconds).sum(),
            events: runs.iter().map(|d| d.result.events).sum(),
            oom_kills: runs.iter().map(|d| d.result.oom_kills).sum(),
            ending: runs.first().map_or(Ending::Stuck, |d| d.result.ending),
        }
    }
}

impl BenchRow {
    /// Whether a number or a ratio of it has a band: somebody published it.
    pub fn has_band(&self) -> bool {
        self.numbers.iter().any(|n| n.band.is_some()) || self.ratios.iter().any(|r| r.spec.band.is_some())
    }

    /// `done`: for each seed, a run of each of `variants`. An error: a run lacks the number.
    fn new(spec: &PublishedRow, variants: usize, scale: f64, done: &[FinishedRun]) -> Result<BenchRow, String> {
        let to_full_size = if spec.scaled { scale } else { 1.0 };
        let number = |done: &FinishedRun| {
            let unknown = || format!("published.row: {} is not a result of a run", spec.metric);
            done.result.metric(&spec.metric).ok_or_else(unknown)
        };
        let all: Vec<_> = done.iter().map(number).collect::<Result<_, _>>()?;
        let numbers = (0..variants).map(|n| {
            let all: Vec<f64> = all.iter().copied().skip(n).step_by(variants).collect();
            let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
            let band = spec.bands[n].clone().and_then(|band| of_seeds(band, &all));
            let within = band.as_ref().map(|b| is_in(b.ends, mean * to_full_size));
            Number { published: spec.published[n], band, mean, all, within }
        });
        let numbers: Vec<_> = numbers.collect();
        let ratio = |r: &PublishedRatio| Ratio::new(r, &numbers[r.of], &numbers[r.to], to_full_size);
        let ratios = spec.ratios.iter().map(ratio).collect();
        Ok(BenchRow { spec: spec.clone(), to_full_size, numbers, ratios })
    }
}

impl Ratio {
    fn new(spec: &PublishedRatio, of: &Number, to: &Number, to_full_size: f64) -> Ratio {
        let pairs = || of.all.iter().zip(&to.all);
        let all: Vec<f64> = pairs().map(|(of, to)| ratio(*of, *to)).collect();
        let within = spec.band.as_ref().map(|band| match band.from {
            BandFrom::Difference => pairs().all(|(of, to)| is_in(band.ends, (of - to) * to_full_size)),
            _ => all.iter().all(|r| is_in(band.ends, *r)),
        });
        Ratio {
            spec: spec.clone(),
            published: of.published.zip(to.published).map(|(of, to)| ratio(of, to)),
            ratio: ratio(of.mean, to.mean),
            difference: (of.mean - to.mean) * to_full_size,
            published_difference: of.published.zip(to.published).map(|(of, to)| of - to),
            within,
            all,
        }
    }

    /// Whether it is the difference that counts: one of the two is nothing.
    pub fn is_difference(&self) -> bool {
        self.spec.band.as_ref().is_some_and(|band| band.from == BandFrom::Difference)
    }
}

/// The band of a published draw: wider by where one more seed would be in 95 of 100 cases. None:
/// one seed says nothing about that.
fn of_seeds(band: Band, all: &[f64]) -> Option<Band> {
    /// Quantiles of Student's distribution, of 1, 2, ... degrees of freedom.
    const T: [f64; 15] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13];
    if band.from != BandFrom::Draw {
        return Some(band);
    }
    let n = all.len() as f64;
    let degrees = all.len().checked_sub(2)?;
    let mean = all.iter().sum::<f64>() / n;
    let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let more = T.get(degrees).copied().unwrap_or(2.0) * (variance * (1.0 + 1.0 / n)).sqrt();
    let [low, high] = band.ends;
    Some(Band { ends: [low - more, high + more], ..band })
}

fn is_in([low, high]: [f64; 2], n: f64) -> bool {
    (low..=high).contains(&n)
}

/// The smallest and the largest of some numbers, if there are any.
pub fn spread(all: &[f64]) -> Option<[f64; 2]> {
    let fold = |of: fn(f64, f64) -> f64| all.iter().copied().reduce(of);
    Some([fold(f64::min)?, fold(f64::max)?])
}

/// The direction that is good, as a word.
pub(super) fn better_name(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher",
        Better::Lower => "lower",
    }
}

/// Where a band comes from, as a word.
pub(super) fn band_from_name(from: &BandFrom) -> &'static str {
    match from {
        BandFrom::Change => "change",
        BandFrom::NoChange => "no-change",
        BandFrom::Difference => "difference",
        BandFrom::Count(_) => "count",
        BandFrom::Draw => "draw",
        BandFrom::Given(_) => "given",
    }
}

#[cfg(test)]
mod tests {
    use super::{Band, BandFrom, of_seeds, ratio};

    #[test]
    fn ratios_of_nothing() {
        assert_eq!(ratio(3.0, 2.0), 1.5);
        assert_eq!(ratio(0.0, 0.0), 1.0);
        assert_eq!(ratio(3.0, 0.0), f64::INFINITY);
    }

    #[test]
    fn a_draw_may_be_where_one_more_seed_would_be() {
        let band = Band { ends: [9.0, 11.0], from: BandFrom::Draw };
        let ends = of_seeds(band.clone(), &[1.0, 3.0]).map(|b| b.ends).expect("two seeds");
        // t = 12.71, s = √2, √(1 + 1/2).
        assert!((ends[0] - (9.0 - 22.014)).abs() < 0.01 && (ends[1] - (11.0 + 22.014)).abs() < 0.01, "{ends:?}");
        assert_eq!(of_seeds(band.clone(), &[5.0; 8]), Some(band.clone()), "nothing varies");
        assert_eq!(of_seeds(band, &[5.0]), None);
    }
}
