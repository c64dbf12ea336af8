//! A summary for people: costs of other sizes, and conclusions from them.

use super::text;
use refault::size::{SizeSummary, Sizing};
use refault::words::{grouped, printable};
use std::fmt::Write as _;

/// Rows that are shown of the sizes that were tried.
const ROWS: usize = 12;

/// The page for people; `settings` is a line of flags.
pub(super) fn text(sizing: &Sizing, summary: &SizeSummary, settings: &str) -> String {
    let mut out = format!("{}: sizes of {}\n", printable(&sizing.name), printable(&sizing.group));
    let _ = writeln!(out, "{}, seed {}\n{settings}", sizing.policy, sizing.seed);
    out += &text::baseline(sizing);
    out += &text::table_of(sizing, &rows(sizing, summary), false);
    out.push('\n');
    let size = |at: usize| sizing.size_in_words(sizing.points[at].pages);
    let misses = |at: usize| grouped(sizing.points[at].value.unwrap_or(0.0) as u64);
    let _ = match summary.knee {
        Some(at) => writeln!(
            out,
            "knee: {} ({} misses){}",
            size(at),
            misses(at),
            if at + 1 == sizing.points.len() {
                ", the largest that was tried; --range says where to look further"
            } else {
                "; from there on a tenth more memory saves less than a twentieth of the misses"
            },
        ),
        None => writeln!(out, "knee: none; the smallest size that was tried does as well as others"),
    };
    let from = sizing.recorded.as_ref().map_or_else(
        || "all that it touches".to_owned(),
        |recorded| format!("the {} that it was recorded with", sizing.size_in_words(recorded.pages)),
    );
    let _ = match summary.cut {
        Some(at) => writeln!(
            out,
            "can be cut: from {from} to {}, of the sizes that were tried, for at most 2 % more misses",
            size(at)
        ),
        None => writeln!(out, "can be cut: nothing of {from} without more than 2 % more misses"),
    };
    out += &text::recorded(sizing);
    for note in &sizing.notes {
        let _ = writeln!(out, "unknown: {}", printable(note));
    }
    out
}

/// Places that are shown: spread evenly, with those that are spoken of.
fn rows(sizing: &Sizing, summary: &SizeSummary) -> Vec<usize> {
    let all = sizing.points.len();
    let step = all.div_ceil(ROWS).max(1);
    let recorded = sizing.recorded.as_ref().map(|of| of.pages);
    let is_shown = |at: &usize| {
        at.is_multiple_of(step)
            || at + 1 == all
            || [summary.knee, summary.cut].contains(&Some(*at))
            || Some(sizing.points[*at].pages) == recorded
    };
    (0..all).filter(is_shown).collect()
}
