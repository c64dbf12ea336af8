//! Our numbers beside the published ones, as tables for people.
//!
//! Two variants of which only ratios have bands fit into one table. Otherwise the numbers come
//! first, with a table for each variant if the numbers themselves have bands, and then the ratios.

use crate::table::Table;
use refault::bench::{BenchReport, BenchRow, Number, Ratio, spread};
use refault::words::{number, printable};
use refault_lab::scenario::{Band, BandFrom};
use std::fmt::Write as _;

/// All tables of a report.
pub(super) fn tables(report: &BenchReport) -> String {
    let banded = report.rows.iter().any(|row| row.numbers.iter().any(|n| n.band.is_some()));
    let pairs = report.rows.iter().all(|row| matches!(row.ratios.as_slice(), [r] if (r.spec.to, r.spec.of) == (0, 1)));
    if report.variants.len() == 2 && pairs && !banded {
        return before_and_after(report);
    }
    let mut text = if banded { one_by_one(report) } else { side_by_side(report) };
    if report.rows.iter().any(|row| !row.ratios.is_empty()) {
        text.push('\n');
        text += &ratios(report);
    }
    text
}

fn several(report: &BenchReport) -> bool {
    report.seeds.len() > 1
}

/// Numbers and ratios in one table.
fn before_and_after(report: &BenchReport) -> String {
    let [before, after] = [0, 1].map(|n| printable(&report.variants[n].name));
    let mut heads: Vec<String> = ["published", "refault"]
        .iter()
        .flat_map(|whose| [format!("{whose}\n{before}"), format!("\n{after}"), "\nratio".to_owned()])
        .collect();
    heads.insert(0, "  ".to_owned());
    if several(report) {
        heads.push("over the\nseeds".to_owned());
    }
    heads.push("\nband".to_owned());
    let mut table = Table::new(heads, 1);
    for row in &report.rows {
        let [r] = row.ratios.as_slice() else { continue };
        let mut cells = vec![label(row)];
        cells.extend(row.numbers.iter().map(|n| known(n.published, number)));
        cells.push(published_ratio(r));
        cells.extend(row.numbers.iter().map(|n| number(n.mean * row.to_full_size)));
        ratio_cells(&mut cells, r, several(report));
        table.row(cells);
    }
    table.render()
}

/// A column for each variant.
fn side_by_side(report: &BenchReport) -> String {
    let column = |whose: &'static str| {
        let head = move |(n, name): (usize, String)| format!("{}\n{name}", if n == 0 { whose } else { "" });
        report.variants.iter().map(|v| printable(&v.name)).enumerate().map(head)
    };
    let heads = ["  ".to_owned()].into_iter().chain(column("published")).chain(column("refault"));
    let mut table = Table::new(heads, 1);
    for row in &report.rows {
        let published = row.numbers.iter().map(|n| known(n.published, number));
        let ours = row.numbers.iter().map(|n| number(n.mean * row.to_full_size));
        table.row([label(row)].into_iter().chain(published).chain(ours).collect());
    }
    table.render()
}

/// A table for each variant, with the bands of its numbers.
fn one_by_one(report: &BenchReport) -> String {
    let mut text = String::new();
    for (at, variant) in report.variants.iter().enumerate() {
        let mut heads = vec!["  ", "published", "refault"];
        if several(report) {
            heads.push("over the seeds");
        }
        heads.push("band");
        let mut table = Table::new(heads, 1);
        for row in &report.rows {
            let said = |n: &Number| n.published.is_some() || n.band.is_some();
            let n = &row.numbers[at];
            // Leaves out a variant without words on this row where another variant has some.
            if !said(n) && row.numbers.iter().any(said) {
                continue;
            }
            let full = |n: f64| number(n * row.to_full_size);
            let mut cells = vec![label(row), known(n.published, number), full(n.mean)];
            if several(report) {
                cells.push(spread(&n.all).map_or_else(nothing, |ends| ends.map(full).join("..")));
            }
            cells.push(n.band.as_ref().map_or_else(unbanded, band));
            cells.extend(verdict(n.within));
            table.row(cells);
        }
        let gap = if at > 0 { "\n" } else { "" };
        let _ = write!(text, "{gap}  {}\n{}", printable(&variant.name), table.render());
    }
    text
}

/// A line for each ratio of each row.
fn ratios(report: &BenchReport) -> String {
    let mut heads = vec!["  ratio", "", "published", "refault"];
    if several(report) {
        heads.push("over the seeds");
    }
    heads.push("band");
    let mut table = Table::new(heads, 2);
    for row in &report.rows {
        for r in &row.ratios {
            let [of, to] = [r.spec.of, r.spec.to].map(|n| printable(&report.variants[n].name));
            let mut cells = vec![format!("  {}", printable(&row.spec.label)), format!("{of} / {to}")];
            cells.push(published_ratio(r));
            ratio_cells(&mut cells, r, several(report));
            table.row(cells);
        }
    }
    table.render()
}

/// Our ratio, those of the seeds, the band, and whether it is met.
fn ratio_cells(cells: &mut Vec<String>, r: &Ratio, several: bool) {
    cells.push(our_ratio(r));
    if several {
        cells.push(ratio_spread(r));
    }
    cells.push(r.spec.band.as_ref().map_or_else(unbanded, band));
    cells.extend(verdict(r.within));
}

/// The published ratio, or the difference where one of the two is nothing.
pub(super) fn published_ratio(r: &Ratio) -> String {
    match r.published_difference.filter(|_| r.is_difference()) {
        Some(difference) => signed(difference),
        None => known(r.published, times),
    }
}

/// Ours.
pub(super) fn our_ratio(r: &Ratio) -> String {
    if r.is_difference() { signed(r.difference) } else { times(r.ratio) }
}

/// The smallest and the largest ratio of the seeds.
pub(super) fn ratio_spread(r: &Ratio) -> String {
    let finite = spread(&r.all).filter(|[low, _]| low.is_finite() && !r.is_difference());
    finite.map_or_else(nothing, |ends| ends.map(factor).join(".."))
}

pub(super) fn label(row: &BenchRow) -> String {
    let unit = if row.spec.unit.is_empty() { String::new() } else { format!(", {}", printable(&row.spec.unit)) };
    format!("  {}{unit}", printable(&row.spec.label))
}

pub(super) fn nothing() -> String {
    "-".to_owned()
}

/// Without a published number there is nothing to meet.
fn unbanded() -> String {
    "not published".to_owned()
}

pub(super) fn known(n: Option<f64>, text: fn(f64) -> String) -> String {
    n.map_or_else(nothing, text)
}

pub(super) fn verdict(within: Option<bool>) -> Option<String> {
    Some(if within? { "ok" } else { "MISS" }.to_owned())
}

/// A ratio as a factor; of nothing there is none.
fn times(ratio: f64) -> String {
    if ratio.is_infinite() { "from 0".to_owned() } else { format!("x{}", factor(ratio)) }
}

/// Thousandths near 1, where they count.
fn factor(r: f64) -> String {
    match r {
        _ if r.is_infinite() => "inf".to_owned(),
        _ if r >= 100.0 => format!("{r:.0}"),
        _ if r >= 10.0 => format!("{r:.1}"),
        _ if r >= 2.0 => format!("{r:.2}"),
        _ => format!("{r:.3}"),
    }
}

/// A difference.
fn signed(n: f64) -> String {
    format!("{}{}", if n < 0.0 { "" } else { "+" }, number(n))
}

pub(super) fn band(band: &Band) -> String {
    let [low, high] = band.ends;
    let end = |n: f64| match band.from {
        BandFrom::Given(_) => format!("{n}"),
        BandFrom::Difference => signed(n),
        BandFrom::Count(_) | BandFrom::Draw => format!("{}", (n * 10.0).round() / 10.0 + 0.0),
        BandFrom::Change | BandFrom::NoChange => factor(n),
    };
    match (low, high) {
        (low, high) if low == high => end(low),
        (low, high) if high.is_infinite() => format!(">= {}", end(low)),
        (low, high) if low <= 0.0 && matches!(band.from, BandFrom::Given(_)) => format!("<= {}", end(high)),
        (low, high) => format!("{}..{}", end(low), end(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_bands_for_people() {
        assert_eq!([5.594, 1.0051, 23.456, f64::INFINITY].map(factor), ["5.59", "1.005", "23.5", "inf"]);
        let given = |ends| band(&Band { ends, from: BandFrom::Given(None) });
        assert_eq!(given([4.0, f64::INFINITY]), ">= 4");
        assert_eq!(given([0.0, 0.96]), "<= 0.96");
        assert_eq!(given([0.98, 1.02]), "0.98..1.02");
        assert_eq!(given([100.0, 100.0]), "100");
        assert_eq!(band(&Band { ends: [0.5, 2.0], from: BandFrom::Change }), "0.500..2.00");
        assert_eq!(band(&Band { ends: [8426.5, 33706.0], from: BandFrom::Difference }), "+8,427..+33,706");
        assert_eq!(band(&Band { ends: [0.0, 1.622], from: BandFrom::Count(233) }), "0..1.6");
    }
}
