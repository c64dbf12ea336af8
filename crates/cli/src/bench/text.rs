//! The result for people.

use super::tables::tables;
use crate::table::Table;
use refault::bench::{BenchReport, Differences, Missed, default_scale};
use refault::runner::policy_text;
use refault::words::printable;
use refault_lab::machine::Ending;
use refault_lab::scenario::Scenario;
use std::fmt::Write as _;

/// Text that `--list` prints.
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
pub(super) fn text(reports: &[BenchReport]) -> String {
    let mut text = String::new();
    for report in reports {
        text += &one(report);
        text.push('\n');
    }
    text + &last_lines(reports)
}

/// How many bands are met, and where that is not what was known.
pub(super) fn last_lines(reports: &[BenchReport]) -> String {
    let verdicts: Vec<_> = reports.iter().flat_map(BenchReport::verdicts).collect();
    let real: f64 = reports.iter().map(BenchReport::real_seconds).sum();
    let within = verdicts.iter().filter(|(_, within)| *within).count();
    let mut text = format!("{within} of {} bands are met; the runs took {real:.1} s\n", verdicts.len());
    let found = Differences::of(reports);
    for (what, rows) in [("not known to miss", found.new), ("known to miss, and met", found.met_again)] {
        for row in rows {
            let _ = writeln!(text, "{what}: {}", printable(&row));
        }
    }
    text
}

fn one(report: &BenchReport) -> String {
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
    let width = report.variants.iter().map(|v| v.name.len()).max().unwrap_or(0).max(8);
    for v in &report.variants {
        let oom = match v.oom_kills {
            0 => String::new(),
            n => format!(", {n} killed for lack of memory"),
        };
        let stuck = if v.ending == Ending::Stuck { ", stuck" } else { "" };
        let (policy, seconds, real) = (policy_text(&v.policy), v.virtual_seconds, v.real_seconds);
        let _ = writeln!(text, "  {:width$} {policy}: {seconds:.1} s virtual in {real:.1} s{oom}{stuck}", v.name);
    }
    text.push('\n');
    text += &tables(report);
    for Missed { what, rows, .. } in report.missed() {
        let _ = writeln!(text, "  missed: {}: {what}", printable(&rows.join("; ")));
    }
    for note in &report.notes {
        let _ = writeln!(text, "  note: {}", printable(note));
    }
    text
}
