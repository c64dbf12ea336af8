//! Half and double of every value that a scenario has chosen: what becomes of the bands.

use super::benchmark::Bench;
use super::report::{Report, spread};
use super::tables::{known, our_ratio, verdict};
use crate::Failure;
use crate::table::Table;
use refault::runner::{Job, Runner, scaled};
use refault::words::{number, printable};
use refault_lab::scenario::Scenario;
use std::fmt::Write as _;

/// Variation to try: the scenario as it is, or with another value.
struct Try {
    label: String,
    /// The scenario, scaled; or why there is none.
    scenario: Result<Scenario, String>,
}

/// Runs a benchmark with half and double of each chosen value that is a number, with its first
/// seed, and says in a table what its bands say.
pub(super) fn vary(bench: &Bench, runner: &Runner) -> Result<String, Failure> {
    let tries = tries(bench);
    let of_try = |t: &Try| {
        let jobs = |scenario: &Scenario| {
            let seed = bench.seeds.first().copied().unwrap_or(scenario.seed);
            let one = |variant: &refault_lab::scenario::PublishedVariant| Job {
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
    let mut reports = Vec::new();
    for t in &tries {
        let report = match (&t.scenario, &t.scenario.as_ref().ok().and_then(|_| chunks.next())) {
            (Ok(_), Some(done)) => Ok(Report::new(bench, done)?),
            (Err(why), _) => Err(why.clone()),
            (Ok(_), None) => Err("it did not run".to_owned()),
        };
        reports.push((t.label.clone(), report));
    }
    Ok(render(bench, &reports))
}

fn tries(bench: &Bench) -> Vec<Try> {
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

fn render(bench: &Bench, reports: &[(String, Result<Report, String>)]) -> String {
    let seed = bench.seeds.first().copied().unwrap_or(bench.scenario.seed);
    let mut text =
        format!("{}: half and double of what was chosen; scale {}, seed {seed}\n", bench.scenario.name, bench.scale);
    let mut table = Table::new(["row", "refault", "least and most", "", "out of its band with"], 1);
    let Some((_, Ok(plain))) = reports.first() else { return text };
    let figures = |report: &Report| -> Vec<(String, f64, String, Option<bool>)> {
        let mut found = Vec::new();
        for row in &report.rows {
            for (at, n) in row.numbers.iter().enumerate().filter(|(_, n)| n.band.is_some()) {
                let full = n.mean * row.to_full_size;
                found.push((report.name_of_number(row, at), full, number(full), n.within));
            }
            for r in row.ratios.iter().filter(|r| r.spec.band.is_some()) {
                let figure = if r.is_difference() { r.difference } else { r.ratio };
                found.push((report.name_of_ratio(row, r), figure, our_ratio(r), r.within));
            }
        }
        found
    };
    for (at, (name, _, shown, within)) in figures(plain).into_iter().enumerate() {
        let others: Vec<_> = reports.iter().filter_map(|(label, r)| Some((label, figures(r.as_ref().ok()?)))).collect();
        let values: Vec<f64> = others.iter().map(|(_, f)| f[at].1).collect();
        let out = others.iter().skip(1).filter(|(_, f)| f[at].3 == Some(false)).map(|(label, _)| label.as_str());
        let short = name.strip_prefix(&format!("{}: ", bench.scenario.name)).unwrap_or(&name).to_owned();
        let ends = known(spread(&values).map(|[low, _]| low), number)
            + ".."
            + &known(spread(&values).map(|[_, high]| high), number);
        let out = match out.clone().count() {
            n if n == others.len() - 1 => "every one".to_owned(),
            _ => out.collect::<Vec<_>>().join("; "),
        };
        table.row(vec![printable(&short), shown, ends, verdict(within).unwrap_or_default(), printable(&out)]);
    }
    text += &table.render();
    for (label, report) in reports {
        if let Err(why) = report {
            let _ = writeln!(text, "{}: {}", printable(label), printable(why));
        }
    }
    text
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
