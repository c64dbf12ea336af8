//! Half and double of every value that a scenario has chosen, as a table.

use super::tables::{known, our_ratio, verdict};
use crate::table::Table;
use refault::bench::{BandedFigure, BenchReport, Benchmark, Variation, spread};
use refault::words::{number, printable};
use std::fmt::Write as _;

/// The bands of a benchmark with each of the variations.
pub(super) fn table(bench: &Benchmark, variations: &[Variation]) -> String {
    let seed = bench.seeds.first().copied().unwrap_or(bench.scenario.seed);
    let mut text =
        format!("{}: half and double of what was chosen; scale {}, seed {seed}\n", bench.scenario.name, bench.scale);
    let mut table = Table::new(["row", "refault", "least and most", "", "out of its band with"], 1);
    let Some(Variation { report: Ok(plain), .. }) = variations.first() else { return text };
    let others: Vec<_> =
        (variations.iter()).filter_map(|v| Some((&v.label, v.report.as_ref().ok()?.figures()))).collect();
    for (at, figure) in plain.figures().into_iter().enumerate() {
        let values: Vec<f64> = others.iter().map(|(_, figures)| figures[at].value).collect();
        let out = others.iter().skip(1).filter(|(_, figures)| figures[at].within == Some(false));
        let out: Vec<_> = out.map(|(label, _)| label.as_str()).collect();
        let short = figure.name.strip_prefix(&format!("{}: ", bench.scenario.name)).unwrap_or(&figure.name).to_owned();
        let ends = known(spread(&values).map(|[low, _]| low), number)
            + ".."
            + &known(spread(&values).map(|[_, high]| high), number);
        let out = if out.len() == others.len() - 1 { "every one".to_owned() } else { out.join("; ") };
        let verdict = verdict(figure.within).unwrap_or_default();
        table.row(vec![printable(&short), shown(plain, &figure), ends, verdict, printable(&out)]);
    }
    text += &table.render();
    for Variation { label, report } in variations {
        if let Err(why) = report {
            let _ = writeln!(text, "{}: {}", printable(label), printable(why));
        }
    }
    text
}

fn shown(report: &BenchReport, figure: &BandedFigure) -> String {
    match figure.place {
        (row, Some(ratio)) => our_ratio(&report.rows[row].ratios[ratio]),
        (_, None) => number(figure.value),
    }
}
