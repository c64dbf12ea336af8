//! The pages of `refault bench --json`.

use crate::model::{Body, Cell, Colour, Figure, Page, Point, RangeRow, Ranges, Table};
use refault::document::bench::{BenchDocument, Benchmark, Figure as Number, Row};
use refault::units::{Unit, counted};

const DOC: &str = "reference/bench.md#variants-ratios-bands";

/// A page for each benchmark.
pub(super) fn pages(d: &BenchDocument) -> Vec<Page> {
    d.benchmarks.iter().enumerate().map(|(n, bench)| page(n, bench)).collect()
}

fn page(n: usize, bench: &Benchmark) -> Page {
    let (met, all) = bench.bands_met();
    let source = bench.source.as_ref().map_or(String::new(), |s| format!(" Published: {s}."));
    let answer =
        format!("{} {met} of {} met, at scale {}.{source}", bench.about, counted(all as u64, "band"), bench.scale);
    let question = format!("{}: does it agree with what was published?", bench.name);
    Page::new(&format!("b{}", n + 1), &question, answer)
        .with_all(ratios(bench))
        .with(numbers(bench))
        .with(variants(bench))
}

fn point(name: &str, number: f64, spread: Option<(f64, f64)>, is_ours: bool) -> Point {
    let (colour, shape) = if is_ours { (Colour::Vermillion, "dot") } else { (Colour::Blue, "diamond") };
    Point { name: name.into(), colour, shape, value: number, spread }
}

fn ratios(bench: &Benchmark) -> Option<Figure> {
    let row = |row: &Row, f: &Number| {
        let mut points = Vec::new();
        points.extend(f.published.map(|n| point("published", n, None, false)));
        points.extend(f.number.map(|n| point("ours", n, f.spread(), true)));
        RangeRow {
            label: format!("{}: {} / {}", row.label, f.of, f.to),
            band: f.band,
            points,
            verdict: f.within.map(|met| (met, if met { "ok" } else { "MISS" })),
        }
    };
    let rows: Vec<_> = bench.rows.iter().flat_map(|r| r.ratios.iter().map(move |f| row(r, f))).collect();
    if rows.is_empty() {
        return None;
    }
    let legend = vec![
        (Colour::Blue, "diamond", "published".into()),
        (
            Colour::Vermillion,
            "dot",
            "ours, with the span over the seeds; the green field with its two ends is the band in which ours must be"
                .into(),
        ),
    ];
    let meaning = "Ratios of one variant to another, such as after a change of the kernel to before it. Places are ratios, too: \
                   twice is as far as half.";
    Some(Figure::new(
        "Ratios",
        meaning,
        DOC,
        Body::Ranges(Ranges { unit: Unit::Number, share: false, log: true, rows, legend }),
    ))
}

/// Unit of numbers, by its name in a scenario.
fn unit(name: &str) -> Unit {
    match name {
        "%" => Unit::Percent,
        "s" => Unit::Seconds,
        "B" | "bytes/s" => Unit::Bytes,
        _ => Unit::Number,
    }
}

fn numbers(bench: &Benchmark) -> Figure {
    let all: Vec<(&Row, &Number)> = bench.rows.iter().flat_map(|r| r.numbers.iter().map(move |f| (r, f))).collect();
    let (has_spread, has_band) =
        (all.iter().any(|(_, f)| f.spread().is_some()), all.iter().any(|(_, f)| f.within.is_some()));
    let mut heads = ["what", "variant", "unit", "published", "ours"].map(str::to_owned).to_vec();
    heads.extend(["smallest", "largest"].into_iter().filter(|_| has_spread).map(String::from));
    heads.extend(has_band.then(|| "band".to_owned()));
    let row = |&(row, f): &(&Row, &Number)| {
        // JSON has numbers of the scaled machine for rows that grow with the machine.
        let ours = if row.scaled { bench.scale } else { 1.0 };
        let number = |n: Option<f64>| n.map_or(Cell::None, |n| Cell::Number(n, unit(&row.unit)));
        let number_of_ours = |n: Option<f64>| number(n.map(|n| ours * n));
        let mut cells = vec![
            Cell::Text(row.label.clone()),
            Cell::Text(f.variant.clone()),
            Cell::Text(row.unit.clone()),
            number(f.published),
            number_of_ours(f.number),
        ];
        if has_spread {
            cells.extend([number_of_ours(f.spread().map(|s| s.0)), number_of_ours(f.spread().map(|s| s.1))]);
        }
        if has_band {
            cells.push(f.within.map_or(Cell::None, |met| Cell::Text(if met { "ok" } else { "MISS" }.into())));
        }
        cells
    };
    let rows = all.iter().map(row).collect();
    let scaled = match (bench.scale == 1.0, bench.rows.iter().any(|row| row.scaled)) {
        (true, _) => "The machine is as large as the published one.".to_owned(),
        (false, true) => format!(
            "The machine is {} times smaller than the published one. What grows with it, such as seconds or pages, is shown \
             times {0}.",
            Unit::Number.text(bench.scale)
        ),
        (false, false) => {
            format!("The machine is {} times smaller than the published one.", Unit::Number.text(bench.scale))
        }
    };
    let meaning = format!(
        "{scaled} Ratios are what compares: a simulated machine is not as fast as the published one. With several seeds \
         numbers are means."
    );
    Figure::new("Numbers", meaning, DOC, Body::Table(Table { heads, rows, searchable: false }))
}

fn variants(bench: &Benchmark) -> Figure {
    let heads = ["variant", "policy", "virtual time", "OOM kills", "ending"].map(str::to_owned).to_vec();
    let rows = bench.variants.iter().map(|v| {
        vec![
            Cell::Text(v.name.clone()),
            Cell::Text(v.policy.clone()),
            Cell::Number(v.virtual_seconds, Unit::Seconds),
            Cell::Number(v.oom_kills as f64, Unit::Count),
            Cell::Text(v.ending.clone()),
        ]
    });
    let table = Table { heads, rows: rows.collect(), searchable: false };
    Figure::new("Variants", "What was compared.", DOC, Body::Table(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_of_full_size_with_their_units_and_no_column_is_empty() {
        let number = |n: f64| Number { variant: "before".into(), number: Some(n), ..Number::default() };
        let row = |unit: &str, scaled: bool, n: f64| Row {
            unit: unit.into(),
            scaled,
            numbers: vec![number(n)],
            ..Row::default()
        };
        let rows = vec![row("s", true, 10.0), row("bytes/s", false, 1_048_576.0)];
        let bench = Benchmark { scale: 32.0, rows, ..Benchmark::default() };
        let figure = numbers(&bench);
        let Body::Table(table) = &figure.body else { panic!("a table") };
        assert_eq!(table.heads, ["what", "variant", "unit", "published", "ours"]);
        let ours: Vec<_> = table
            .rows
            .iter()
            .map(|row| match row[4] {
                Cell::Number(n, unit) => unit.text(n),
                _ => panic!("a number"),
            })
            .collect();
        assert_eq!(ours, ["320 s", "1 MiB"]);
        assert!(figure.meaning.contains("is shown times 32"), "{}", figure.meaning);
    }
}
