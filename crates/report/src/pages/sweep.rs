//! The page of a sweep over many traces.

use crate::model::{Body, Cell, Colour, Figure, Page, Point, RangeRow, Ranges, Table};
use refault::document::sweep::{SweepDocument, SweepRow};
use refault::units::{Unit, counted};

const DOC: &str = "reference/report.md#inputs";

/// The page.
pub(super) fn page(d: &SweepDocument) -> Page {
    Page::new("sweep", "Which policy, over all traces?", answer(d)).with(reductions(d)).with(table(d))
}

fn answer(d: &SweepDocument) -> String {
    let Some(best) = d.summary.iter().max_by(|a, b| a.p50.total_cmp(&b.p50)) else {
        return "No trace has a policy to compare with another.".into();
    };
    let percent = |part: f64| Unit::Percent.text(100.0 * part);
    let mut out = format!(
        "{} with {} has {} fewer misses than {} in the median of {}, between {} and {} in 8 of 10.",
        best.policy,
        best.memory,
        percent(best.p50),
        best.against,
        counted(best.traces, "trace"),
        percent(best.p10),
        percent(best.p90)
    );
    let worse = d.summary.iter().filter(|row| row.p10 < 0.0).count();
    if worse > 0 {
        let rows = counted(d.summary.len() as u64, "row");
        out += &format!(" In {worse} of {rows} a tenth of the traces or more has more misses.");
    }
    out
}

fn reductions(d: &SweepDocument) -> Figure {
    let row = |row: &SweepRow| RangeRow {
        label: row.label(),
        band: Some((100.0 * row.p25, Some(100.0 * row.p75))),
        points: vec![Point {
            name: "median".into(),
            colour: Colour::of_policy(&row.policy),
            shape: "dot",
            value: 100.0 * row.p50,
            spread: Some((100.0 * row.p10, 100.0 * row.p90)),
        }],
        verdict: None,
    };
    let rows = d.summary.iter().map(row).collect();
    let legend = vec![(
        Colour::Ink,
        "dot",
        "median; the field is from the 25th to the 75th percentile, the bar from the 10th to the 90th".to_owned(),
    )];
    let against = d.summary.first().map_or("", |row| row.against.as_str());
    let meaning = "Misses that a policy has less, as a part of those of the other; less than 0 is more of them.";
    let ranges = Ranges { unit: Unit::Percent, share: false, log: false, rows, legend };
    Figure::new(format!("Fewer misses than {against}"), meaning, DOC, Body::Ranges(ranges))
}

fn table(d: &SweepDocument) -> Figure {
    let heads = ["policy", "memory", "settings", "traces", "mean", "p10", "p25", "median", "p75", "p90"];
    let row = |row: &SweepRow| {
        let mut cells = vec![
            Cell::Text(row.policy.clone()),
            Cell::Text(row.memory.clone()),
            Cell::Text(row.settings.clone()),
            Cell::Number(row.traces as f64, Unit::Count),
        ];
        let all = [row.mean, row.p10, row.p25, row.p50, row.p75, row.p90];
        cells.extend(all.map(|part| Cell::Number(100.0 * part, Unit::Percent)));
        cells
    };
    let rows = d.summary.iter().map(row).collect();
    let table = Table { heads: heads.map(str::to_owned).to_vec(), rows, searchable: true };
    let meaning = "A trace that ran out of memory, or that lacks the other policy, does not count.";
    Figure::new("All rows", meaning, DOC, Body::Table(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault::document::Document;

    #[test]
    fn the_policy_with_the_largest_median_is_named() {
        let row = |policy: &str, p50: f64| {
            format!(
                r#"{{"policy":"{policy}","memory":"10%","settings":"{{}}","against":"lru","traces":7,"mean":0.1,"p10":-0.01,
                "p25":0.0,"p50":{p50},"p75":0.2,"p90":0.3}}"#
            )
        };
        let rows = [row("s3fifo", 0.12), row("arc", 0.08)].join(",");
        let json = format!(r#"{{"refault":"1","sweep":"all","failed":0,"summary":[{rows}]}}"#);
        let Ok(Document::Sweep(d)) = Document::from_json(&json) else { panic!("a sweep") };
        let page = page(&d);
        assert!(page.answer.starts_with("s3fifo with 10% has 12.0 % fewer misses than lru"), "{}", page.answer);
        assert!(page.answer.contains("In 2 of 2 rows"), "{}", page.answer);
    }
}
