//! Costs of other sizes, where nobody asked for a target: beyond which one memory is not worth its
//! price, and what can be cut.

use super::report::{Point, Report};
use super::text;
use crate::Failure;
use refault::curve::knee_by_price;
use refault::words::{grouped, printable};
use serde_json::json;
use std::fmt::Write as _;

/// Misses may grow by this part where memory is cut.
const CUT: f64 = 0.02;

/// Rows that are shown of the sizes that were tried.
const ROWS: usize = 12;

/// A summary.
pub(super) struct Summary {
    report: Report,
    /// Places in `report.points`.
    knee: Option<usize>,
    cut: Option<usize>,
}

impl Summary {
    pub(super) fn new(report: Report) -> Summary {
        let curve: Vec<_> = report.points.iter().filter_map(|p| Some((p.pages as f64, p.value?))).collect();
        let place = |pages: f64| report.points.iter().position(|p| p.pages as f64 == pages);
        let knee = knee_by_price(&curve).and_then(|at| place(curve[at].0));
        // The start is the memory that a recording had, or all that a trace touches.
        let from = match &report.recorded {
            Some(recorded) => place(recorded.pages as f64),
            None => report.points.len().checked_sub(1),
        };
        let worst = |p: &Point| p.bounds.map(|of| of.1).or(p.value);
        let enough = from.and_then(|at| Some(report.points[at].value? * (1.0 + CUT)));
        let cut = enough.zip(from).map(|(enough, from)| {
            let fails = |p: &Point| worst(p).is_none_or(|misses| misses > enough);
            report.points[..from].iter().rposition(fails).map_or(0, |failed| failed + 1).min(from)
        });
        Summary { report, knee, cut: cut.filter(|cut| Some(*cut) != from) }
    }

    /// The page for people.
    pub(super) fn text(&self) -> String {
        let report = &self.report;
        let mut out = format!("{}: sizes of {}\n", printable(&report.name), printable(&report.group));
        let _ = writeln!(out, "{}, seed {}\n", report.policy, report.seed);
        out += &text::baseline(report);
        out += &text::table_of(report, &self.rows(), false);
        out.push('\n');
        let size = |at: usize| text::size(report, report.points[at].pages);
        let misses = |at: usize| grouped(report.points[at].value.unwrap_or(0.0) as u64);
        let _ = match self.knee {
            Some(at) => writeln!(
                out,
                "knee: {} ({} misses){}",
                size(at),
                misses(at),
                if at + 1 == report.points.len() {
                    ", the largest that was tried; --range says where to look further"
                } else {
                    "; from there on a tenth more memory saves less than a twentieth of the misses"
                },
            ),
            None => writeln!(out, "knee: none; the smallest size that was tried does as well as others"),
        };
        let from = report.recorded.as_ref().map_or_else(
            || "all that it touches".to_owned(),
            |recorded| format!("the {} that it was recorded with", text::size(report, recorded.pages)),
        );
        let _ = match self.cut {
            Some(at) => writeln!(
                out,
                "can be cut: from {from} to {}, of the sizes that were tried, for at most 2 % more misses",
                size(at)
            ),
            None => writeln!(out, "can be cut: nothing of {from} without more than 2 % more misses"),
        };
        out += &text::recorded(report);
        for note in &report.notes {
            let _ = writeln!(out, "unknown: {}", printable(note));
        }
        out
    }

    /// Places that are shown: spread evenly, with those that are spoken of.
    fn rows(&self) -> Vec<usize> {
        let all = self.report.points.len();
        let step = all.div_ceil(ROWS).max(1);
        let recorded = self.report.recorded.as_ref().map(|of| of.pages);
        let is_shown = |at: &usize| {
            at.is_multiple_of(step)
                || at + 1 == all
                || [self.knee, self.cut].contains(&Some(*at))
                || Some(self.report.points[*at].pages) == recorded
        };
        (0..all).filter(is_shown).collect()
    }

    /// One object: that of a search, with what is said beside the curve.
    pub(super) fn json(&self, of_traces: &[String]) -> Result<String, Failure> {
        let mut all: serde_json::Value = serde_json::from_str(&super::json::json(&self.report, of_traces)?)?;
        let bytes = |at: usize| self.report.points[at].pages * self.report.page_size;
        for key in
            ["target", "metric", "bound", "verdict", "answer_pages", "answer_bytes", "certain_bytes", "possible_bytes"]
        {
            if let Some(all) = all.as_object_mut() {
                all.remove(key);
            }
        }
        all["knee_bytes"] = json!(self.knee.map(bytes));
        all["cut_bytes"] = json!(self.cut.map(bytes));
        Ok(serde_json::to_string_pretty(&all)? + "\n")
    }
}
