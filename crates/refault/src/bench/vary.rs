//! Half and double of every value that a scenario has chosen: what becomes of the bands.

use super::benchmark::Benchmark;
use super::result::BenchReport;
use crate::Failure;
use crate::runner::{Job, Runner, scaled};
use refault_lab::scenario::{PublishedVariant, Scenario};

/// Variation to try: the scenario as it is, or with another value.
struct Try {
    label: String,
    /// The scenario, scaled; or why there is none.
    scenario: Result<Scenario, String>,
}

/// A benchmark with another value.
#[derive(Clone, Debug)]
pub struct Variation {
    /// The value, or `as it is`.
    pub label: String,
    /// Its result; or why there is none.
    pub report: Result<BenchReport, String>,
}

/// A number or a ratio with a band.
#[derive(Clone, Debug)]
pub struct BandedFigure {
    /// Its name in the list of known misses.
    pub name: String,
    /// Its value in full size.
    pub value: f64,
    /// The place of its row, and of the ratio in that; none: it is a number.
    pub place: (usize, Option<usize>),
    /// Whether it is in its band.
    pub within: Option<bool>,
}

impl BenchReport {
    /// All numbers and ratios with bands.
    pub fn figures(&self) -> Vec<BandedFigure> {
        let mut found = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            for (at, n) in row.numbers.iter().enumerate().filter(|(_, n)| n.band.is_some()) {
                let (name, value) = (self.name_of_number(row, at), n.mean * row.to_full_size);
                found.push(BandedFigure { name, value, place: (place, None), within: n.within });
            }
            for (at, r) in row.ratios.iter().enumerate().filter(|(_, r)| r.spec.band.is_some()) {
                let value = if r.is_difference() { r.difference } else { r.ratio };
                found.push(BandedFigure {
                    name: self.name_of_ratio(row, r),
                    value,
                    place: (place, Some(at)),
                    within: r.within,
                });
            }
        }
        found
    }
}

/// Runs a benchmark as it is, and with half and double of each chosen value that is a number, with
/// its first seed.
///
/// # Errors
/// A scenario that cannot be run, or cancel.
pub fn vary(bench: &Benchmark, runner: &Runner) -> Result<Vec<Variation>, Failure> {
    let tries = tries(bench);
    let of_try = |t: &Try| {
        let jobs = |scenario: &Scenario| {
            let seed = bench.seeds.first().copied().unwrap_or(scenario.seed);
            let one = |variant: &PublishedVariant| Job {
                name: format!("{}, {}", t.label, variant.name),
                scenario: Scenario { seed, ..scenario.clone() },
                policy: variant.policy.clone(),
            };
            bench.published.variants.iter().map(one).collect::<Vec<_>>()
        };
        t.scenario.as_ref().map(jobs).unwrap_or_default()
    };
    let jobs: Vec<Job> = tries.iter().flat_map(of_try).collect();
    let done = runner.run("running", &jobs)?;
    let mut chunks = done.chunks(bench.published.variants.len());
    let mut variations = Vec::new();
    for Try { label, scenario } in tries {
        let report = match scenario.map(|_| chunks.next()) {
            Ok(Some(done)) => Ok(BenchReport::new(bench, done)?),
            Ok(None) => Err("it did not run".to_owned()),
            Err(why) => Err(why),
        };
        variations.push(Variation { label, report });
    }
    Ok(variations)
}

fn tries(bench: &Benchmark) -> Vec<Try> {
    let mut all = vec![Try { label: "as it is".to_owned(), scenario: Ok(bench.scenario.clone()) }];
    for (key, place) in Scenario::chosen_values(&bench.text, &bench.published.parameters) {
        for (what, factor) in [("half", 0.5), ("double", 2.0)] {
            let Some(value) = multiplied(&bench.text[place.clone()], factor) else { continue };
            let text = format!("{}{value}{}", &bench.text[..place.start], &bench.text[place.end..]);
            let scenario = Scenario::parse(&bench.scenario.name, &text).map_err(|e| e.to_string());
            let scenario = scenario.and_then(|s| scaled(&s, &s.name, bench.scale).map_err(|e| e.to_string()));
            all.push(Try { label: format!("{key}, {what}: {}", value.trim_matches('"')), scenario });
        }
    }
    all
}

/// A number with or without a unit, as a scenario writes it, times a factor. None: it is none.
fn multiplied(value: &str, factor: f64) -> Option<String> {
    let quote = if value.starts_with('"') { "\"" } else { "" };
    let inner = value.trim_matches('"');
    let digits = inner.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(inner.len());
    let (figure, unit) = inner.split_at(digits);
    let times = figure.replace('_', "").parse::<f64>().ok()? * factor;
    (times.is_finite() && times > 0.0).then(|| format!("{quote}{times}{unit}{quote}"))
}

#[cfg(test)]
mod tests {
    use super::multiplied;

    #[test]
    fn values_with_units_are_halved_and_doubled() {
        let half = |value| multiplied(value, 0.5);
        assert_eq!(half("\"28G\"").as_deref(), Some("\"14G\""));
        assert_eq!(half("963_000").as_deref(), Some("481500"));
        assert_eq!(multiplied("\"23.3us\"", 2.0).as_deref(), Some("\"46.6us\""));
        assert_eq!(multiplied("\"1600/s\"", 2.0).as_deref(), Some("\"3200/s\""));
        assert_eq!((half("\"ramdisk\""), half("true"), half("[1, 2]"), half("0")), (None, None, None, None));
    }
}
