//! A line for each band: what was published, what came out, and whether that is in the band.

use super::tables::{band, known, nothing, our_ratio, published_ratio, ratio_spread, verdict};
use super::text::last_lines;
use crate::table::Table;
use refault::bench::{BenchReport, missing, spread};
use refault::words::{number, printable};
use std::fmt::Write as _;

/// All reports, and what is missing where bands are missed.
pub(super) fn summary(reports: &[BenchReport]) -> String {
    let mut table = Table::new(["row", "published", "refault", "over the seeds", "band"], 1);
    let mut unpublished = 0;
    for report in reports {
        for row in &report.rows {
            let mut line = |name: String, published, ours, over, ends, within: Option<bool>| {
                let missing = missing(&name).filter(|_| within == Some(false)).map(|m| format!(" {}", m.name));
                let verdict = verdict(within).unwrap_or_default() + &missing.unwrap_or_default();
                table.row(vec![printable(&name), published, ours, over, ends, verdict]);
            };
            let before = row.numbers.iter().filter(|n| n.band.is_some()).count();
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
            let mut ratios = 0;
            for r in &row.ratios {
                let Some(ends) = &r.spec.band else { continue };
                ratios += 1;
                line(
                    report.name_of_ratio(row, r),
                    published_ratio(r),
                    our_ratio(r),
                    ratio_spread(r),
                    band(ends),
                    r.within,
                );
            }
            unpublished += usize::from(before + ratios == 0);
        }
    }
    let mut text = table.render();
    let mut names: Vec<&'static str> = Vec::new();
    for (row, _) in reports.iter().flat_map(BenchReport::verdicts).filter(|(_, within)| !within) {
        let Some(missing) = missing(&row).filter(|m| !names.contains(&m.name)) else { continue };
        let lead = if names.is_empty() { "\n" } else { "" };
        let _ = writeln!(text, "{lead}MISS {}: {}", missing.name, missing.what);
        names.push(missing.name);
    }
    text.push('\n');
    if unpublished > 0 {
        let _ = writeln!(text, "{unpublished} more rows are of what nobody published, and have no band");
    }
    text + &last_lines(reports)
}
