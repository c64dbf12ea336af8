//! A line for each band: what was published, what came out, and whether that is in the band.

use super::tables::{band, known, nothing, our_ratio, published_ratio, ratio_spread, verdict};
use super::text::last_lines;
use crate::table::Table;
use refault::bench::{BenchReport, HalfToDouble, all_missing, missing, spread};
use refault::words::{number, printable};
use std::fmt::Write as _;

/// All reports, and what is missing where bands are missed.
pub(super) fn summary(reports: &[BenchReport]) -> String {
    let mut table = Table::new(["row", "published", "refault", "over the seeds", "band"], 1);
    for report in reports {
        for row in &report.rows {
            let mut line = |name: String, published, ours, over, ends, within: Option<bool>| {
                let missing = missing(&name).filter(|_| within == Some(false)).map(|m| format!(" {}", m.name));
                let verdict = verdict(within).unwrap_or_default() + &missing.unwrap_or_default();
                table.row(vec![printable(&name), published, ours, over, ends, verdict]);
            };
            for (at, n) in row.numbers.iter().enumerate() {
                let Some(ends) = &n.band else { continue };
                let over = spread(&n.all).map_or_else(nothing, |ends| ends.map(number).join(".."));
                line(
                    report.name_of_number(row, at),
                    known(n.published, number),
                    number(n.mean * row.to_full_size),
                    over,
                    band(ends),
                    n.within,
                );
            }
            for r in &row.ratios {
                let Some(ends) = &r.spec.band else { continue };
                line(
                    report.name_of_ratio(row, r),
                    published_ratio(r),
                    our_ratio(r),
                    ratio_spread(r),
                    band(ends),
                    r.within,
                );
            }
        }
    }
    let mut text = table.render();
    for (n, missing) in all_missing(reports).into_iter().enumerate() {
        let _ = writeln!(text, "{}MISS {}: {}", if n == 0 { "\n" } else { "" }, missing.name, missing.what);
    }
    text.push('\n');
    let unpublished = reports.iter().flat_map(|report| &report.rows).filter(|row| !row.has_band()).count();
    if unpublished > 0 {
        let _ = writeln!(text, "{unpublished} more rows are of what nobody published, and have no band");
    }
    text + &calibrated(reports) + &last_lines(reports) + &half_to_double(reports)
}

/// A line for each value that a number of the first variant decided, and the numbers it led to.
fn calibrated(reports: &[BenchReport]) -> String {
    let mut text = String::new();
    for report in reports {
        for value in report.calibrated() {
            let [first, ..] = value.row.numbers.as_slice() else { continue };
            let _ = writeln!(
                text,
                "calibrated {}: {} by {}, {}: {} published, {} here",
                report.name,
                printable(value.key),
                value.row.spec.label,
                report.variants[0].name,
                known(first.published, number),
                number(first.mean * value.row.to_full_size),
            );
        }
    }
    text
}

/// The count by the other rule, if anything is counted by it.
fn half_to_double(reports: &[BenchReport]) -> String {
    match HalfToDouble::of(reports) {
        HalfToDouble { all: 0, .. } => String::new(),
        HalfToDouble { met, all } => format!("half to double: {met} of {all}\n"),
    }
}
