//! The pages of `refault whatif --json`.

use crate::model::{Body, Cell, Colour, Figure, Page, Point, RangeRow, Ranges, Table, Verdict};
use refault::document::whatif::{EffectFacts, WhatIfDocument};
use refault::units::Unit;

const DOC: &str = "reference/whatif.md#uncertainty";

/// A page of the answer, and one of what is not known.
pub(super) fn pages(d: &WhatIfDocument) -> Vec<Page> {
    // Misses and hits are one thing: the table has both.
    let metrics = d.metrics();
    let drawn = metrics.iter().filter(|metric| **metric != "hit_rate" || !metrics.contains(&"misses"));
    let figures = drawn.map(|metric| differences(d, metric)).collect::<Vec<_>>();
    let mut all = vec![Page::new("whatif", "What would a change bring?", answer(d)).with_all(figures).with(table(d))];
    if !d.unknown.is_empty() {
        let text = d.unknown.join(". ");
        all.push(Page::new("unknown", "What is not known?", format!("{}.", text.trim_end_matches('.'))));
    }
    all
}

fn answer(d: &WhatIfDocument) -> String {
    let mut out: Vec<String> = vec![format!("Today: {} ({})", d.today.machine, d.today.limit_is)];
    let sentences = d.answer.iter().map(|text| {
        let mut letters = text.chars();
        letters.next().map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
    });
    out.extend(sentences);
    out.join(". ") + "."
}

/// Whether differences of a metric are of shares, and not parts of today's value.
fn is_share(metric: &str) -> bool {
    metric == "hit_rate" || metric.ends_with("_per_access")
}

/// Differences as percent, or as points.
fn unit(metric: &str) -> &'static str {
    if is_share(metric) || metric.starts_with("some") || metric.starts_with("full") { "points" } else { "% of today's" }
}

/// From the number of an effect to what is drawn.
fn drawn(metric: &str, n: f64) -> f64 {
    if metric.starts_with("some") || metric.starts_with("full") { n } else { 100.0 * n }
}

/// Changes with the span of the difference that they make.
fn differences(d: &WhatIfDocument, metric: &str) -> Figure {
    let row = |name: &str, effect: &EffectFacts| {
        let (colour, verdict) = match effect.verdict.as_str() {
            "better" => (Colour::Blue, Some((true, "better"))),
            "worse" => (Colour::Vermillion, Some((false, "worse"))),
            _ => (Colour::Grey, None),
        };
        let of = |n: f64| drawn(metric, n);
        RangeRow {
            label: name.to_owned(),
            band: None,
            points: vec![Point {
                name: "difference".into(),
                colour,
                shape: if verdict.is_some() { "dot" } else { "ring" },
                value: of(effect.change),
                spread: Some((of(effect.low), of(effect.high))),
            }],
            verdict,
        }
    };
    let known = d.alternatives.iter().filter_map(|of| Some((of, of.effect(metric)?)));
    let rows =
        known.filter(|(_, effect)| effect.verdict != "unknown").map(|(of, effect)| row(&of.name, effect)).collect();
    let legend = vec![
        (Colour::Blue, "dot", "better".to_owned()),
        (Colour::Vermillion, "dot", "worse".to_owned()),
        (Colour::Grey, "ring", "the same, or not sure; the bar is from at least to at most".to_owned()),
    ];
    let title = format!("Difference in {}, {}", metric.replace('_', " "), unit(metric));
    let meaning =
        "What each change by itself makes of today's machine. A bar that reaches over 0 may be no difference.";
    let ranges = Ranges { unit: Unit::Number, share: false, log: false, rows, legend };
    Figure::new(title, meaning, DOC, Body::Ranges(ranges))
}

/// All effects in numbers.
fn table(d: &WhatIfDocument) -> Figure {
    let metrics = d.metrics();
    let mut heads = vec!["change".to_owned()];
    for metric in &metrics {
        let name = metric.replace('_', " ");
        heads.extend([name.clone(), format!("{name}: difference, {}", unit(metric)), "verdict".to_owned()]);
    }
    heads.push("remark".into());
    let number = |metric: &str, n: f64| match metric {
        metric if is_share(metric) => Cell::Number(100.0 * n, Unit::Percent),
        "read_bytes" => Cell::Number(n, Unit::Bytes),
        "p50" | "p90" | "p99" | "p999" => Cell::Number(n, Unit::Nanoseconds),
        _ => Cell::Number(n, Unit::Number),
    };
    let mut rows = vec![];
    let mut today = vec![Cell::Text("today".into())];
    for metric in &metrics {
        let value = d.today.values.get(*metric).copied().flatten();
        today.extend([value.map_or(Cell::None, |n| number(metric, n)), Cell::None, Cell::Text(String::new())]);
    }
    today.push(Cell::Text(d.today.failed.clone().unwrap_or_default()));
    rows.push(today);
    rows.extend(d.alternatives.iter().map(|of| {
        let mut cells = vec![Cell::Text(of.name.clone())];
        for metric in &metrics {
            cells.extend(match of.effect(metric) {
                Some(effect) => {
                    let verdict = match effect.verdict.as_str() {
                        "better" => Verdict::Better,
                        "worse" => Verdict::Worse,
                        _ => Verdict::Neither,
                    };
                    [
                        number(metric, effect.value),
                        Cell::Difference(drawn(metric, effect.change), Unit::Number, verdict),
                        Cell::Text(effect.verdict.replace("unknown", "not known")),
                    ]
                }
                None => [Cell::None, Cell::None, Cell::Text(String::new())],
            });
        }
        let said = of.failed.iter().chain(&of.remark).chain(&of.doubts).cloned().collect::<Vec<_>>();
        cells.push(Cell::Text(said.join("; ")));
        cells
    }));
    let table = Table { heads, rows, searchable: true };
    let meaning = "Each change with its value and its difference from today's.";
    Figure::new("All changes", meaning, "reference/whatif.md#flags", Body::Table(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use refault::document::Document;

    #[test]
    fn a_change_has_its_difference_and_its_bounds() {
        let json = r#"{"refault":"1","name":"web","about":"a trace","today":{"machine":"lru in 24M","limit_is":"as recorded",
            "values":{"misses":100.0},"failed":null},"trust":[],"starts":5,"answer":["fewer misses: limit 150% (-29.4 %)"],
            "unknown":["writes"],"alternatives":[{"name":"limit 150%","changes":[["limit","150%"]],"failed":null,"doubts":[],
            "remark":null,"effects":[{"metric":"misses","value":70.6,"change":-0.294,"low":-0.35,"high":-0.25,
            "verdict":"better"}]}]}"#;
        let Ok(Document::WhatIf(d)) = Document::from_json(json) else { panic!("a result of whatif") };
        let pages = pages(&d);
        assert!(pages[0].answer.contains("Fewer misses: limit 150% (-29.4 %)."), "{}", pages[0].answer);
        assert_eq!(pages[1].answer, "writes.");
        let Body::Ranges(ranges) = &pages[0].figures[0].body else { panic!("ranges") };
        assert_eq!(ranges.rows[0].points[0].spread, Some((-35.0, -25.0)));
        assert_eq!(ranges.rows[0].verdict, Some((true, "better")));
    }
}
