//! The result for people.

use super::builtin::default_scale;
use super::report::{Report, Row};
use crate::lab::policy_text;
use crate::replay::table::Table;
use crate::terminal::{number, printable};
use refault_sim::machine::Ending;
use refault_sim::scenario::Scenario;
use std::fmt::Write as _;

/// What `--list` prints.
pub(super) fn list(all: &[Scenario]) -> String {
    let mut table = Table::new(["name", "scale", "rows"], 1);
    for s in all {
        let rows = s.published.as_ref().map_or(0, |p| p.rows.len());
        let scale = default_scale(s).to_string();
        table.row(vec![s.name.clone(), scale, rows.to_string(), s.about.clone()]);
    }
    table.render()
}

/// All reports.
pub(super) fn text(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        text += &one(report);
        text.push('\n');
    }
    let banded: Vec<_> = reports.iter().flat_map(|r| &r.rows).filter_map(|row| row.within).collect();
    let real: f64 = reports.iter().map(Report::real_seconds).sum();
    let within = banded.iter().filter(|within| **within).count();
    let _ = writeln!(text, "{within} of {} ratios with a band are in it; the runs took {real:.1} s", banded.len());
    text
}

fn one(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.name, printable(&report.about));
    if let Some(source) = &report.source {
        let _ = writeln!(text, "  source   {}", printable(source));
    }
    let seeds = match report.seeds.as_slice() {
        [seed] => format!("seed {seed}"),
        seeds => format!("means over seeds 1 to {}", seeds.len()),
    };
    let scale = match report.scale {
        1.0 => "1, full size".to_owned(),
        k => format!("{k}: sizes, work and times are divided by it"),
    };
    let _ = writeln!(text, "  scale    {scale}; {seeds}");
    for (what, side) in [("before", &report.sides[0]), ("after", &report.sides[1])] {
        let oom = match side.oom_kills {
            0 => String::new(),
            n => format!(", {n} killed for lack of memory"),
        };
        let stuck = if side.ending == Ending::Stuck { ", stuck" } else { "" };
        let _ = writeln!(
            text,
            "  {what:8} {}: {:.1} s virtual in {:.1} s{oom}{stuck}",
            policy_text(&side.policy),
            side.virtual_seconds,
            side.real_seconds,
        );
    }
    text.push('\n');
    text += &table(report);
    for note in &report.notes {
        let _ = writeln!(text, "  note: {}", printable(note));
    }
    text
}

fn table(report: &Report) -> String {
    let several = report.seeds.len() > 1;
    let mut heads = vec!["  ", "published\nbefore", "\nafter", "\nratio", "refault\nbefore", "\nafter", "\nratio"];
    if several {
        heads.push("over the\nseeds");
    }
    heads.push("\nband");
    let mut table = Table::new(heads, 1);
    for row in &report.rows {
        let unit = if row.spec.unit.is_empty() { String::new() } else { format!(", {}", printable(&row.spec.unit)) };
        let mut cells = vec![format!("  {}{unit}", printable(&row.spec.label))];
        let known = |n: Option<f64>, text: fn(f64) -> String| n.map_or("-".to_owned(), text);
        cells.extend([row.spec.before, row.spec.after].map(|n| known(n, number)));
        cells.push(known(row.published_ratio(), times));
        cells.extend(row.ours.map(number));
        cells.push(times(row.ratio));
        if several {
            let [low, high] = row.spread();
            cells.push(if low.is_finite() { format!("{}..{}", factor(low), factor(high)) } else { "-".to_owned() });
        }
        cells.push(row.spec.band.map_or(String::new(), band));
        cells.extend(verdict(row));
        table.row(cells);
    }
    table.render()
}

fn verdict(row: &Row) -> Option<String> {
    Some(if row.within? { "ok" } else { "MISS" }.to_owned())
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

fn band([low, high]: [f64; 2]) -> String {
    match (low, high) {
        (low, high) if high.is_infinite() => format!(">= {low}"),
        (low, high) if low <= 0.0 => format!("<= {high}"),
        (low, high) => format!("{low}..{high}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_bands_for_people() {
        assert_eq!([5.594, 1.0051, 23.456, f64::INFINITY].map(factor), ["5.59", "1.005", "23.5", "inf"]);
        assert_eq!(band([4.0, f64::INFINITY]), ">= 4");
        assert_eq!(band([0.0, 0.96]), "<= 0.96");
        assert_eq!(band([0.98, 1.02]), "0.98..1.02");
    }
}
