//! The result for people.

use super::answer::{Alternative, WhatIf};
use super::effect::WhatIfEffect;
use crate::size::{Confidence, Metric};
use crate::table::Table;
use crate::words::{folded, printable};
use std::fmt::Write as _;

/// The answer, a table, and what is not known; `settings` is a line of flags.
pub(super) fn text(result: &WhatIf, settings: &str) -> String {
    let mut out = format!("{}: {}\n", printable(&result.name), printable(&result.about));
    let values = result.values.iter().filter_map(|(metric, value)| Some(figure(*metric, (*value)?)));
    let values = values.collect::<Vec<_>>().join(", ");
    let _ = writeln!(out, "{}", folded(&format!("today: {} ({}): {values}", result.today, result.limit_is)));
    out += &trust(result);
    out += settings;
    out.push('\n');
    for line in result.answer() {
        let _ = writeln!(out, "{}", folded(&line));
    }
    out.push('\n');
    out += &table(result);
    out.push('\n');
    for line in &result.unknown {
        let _ = writeln!(out, "{}", folded(&format!("not known: {}", printable(line))));
    }
    out
}

fn figure(metric: Metric, value: f64) -> String {
    format!("{} {}", metric.name().replace('_', " "), metric.show(value))
}

/// How near the lab is to the recorded kernel.
fn trust(result: &WhatIf) -> String {
    let of: Vec<_> = result
        .trust
        .iter()
        .map(|of| {
            let word = match of.trust {
                Confidence::Whole => "",
                Confidence::Widened => " (bounds are as far apart)",
                Confidence::Refused => " (too far apart)",
            };
            format!("{} {}{word}", of.metric.name().replace('_', " "), of.metric.show(of.kernel))
        })
        .collect();
    match of.is_empty() {
        true => String::new(),
        false => format!("the recorded kernel: {}\n", of.join(", ")),
    }
}

/// Whether a column of differences stands beside a metric that is not the first.
fn has_difference(metric: Metric) -> bool {
    matches!(metric, Metric::ReadBytes | Metric::Latency(_))
}

/// A row for each change.
fn table(result: &WhatIf) -> String {
    let Some(metric) = result.metric() else { return String::new() };
    let others: Vec<Metric> = result.values.iter().skip(1).map(|(metric, _)| *metric).collect();
    let head = |metric: Metric| metric.name().replacen('_', "\n", 1).replace('_', " ");
    let mut heads = vec!["change".to_owned(), head(metric)];
    heads.extend(["change", "at\nleast", "at\nmost", ""].map(str::to_owned));
    for &metric in &others {
        heads.push(head(metric));
        heads.extend(has_difference(metric).then(|| "change".to_owned()));
    }
    let mut table = Table::new(heads, 1);
    for of in &result.alternatives {
        let mut cells = vec![of.name.clone()];
        cells.extend(primary(of, metric));
        for &metric in &others {
            let effect = of.effect(metric);
            let dash = || "-".to_owned();
            cells.push(effect.map_or_else(dash, |effect| metric.show(effect.value)));
            let difference = || effect.map_or_else(dash, |effect| effect.difference(effect.change));
            cells.extend(has_difference(metric).then(difference));
        }
        cells.extend(of.remark.clone());
        table.row(cells);
    }
    table.render()
}

/// Cells of the first metric.
fn primary(of: &Alternative, metric: Metric) -> Vec<String> {
    let dashes = |last: &str| ["-", "-", "-", "-", last].map(str::to_owned).to_vec();
    match (of.failed, of.effect(metric)) {
        (Some(why), _) => dashes(why),
        (None, None) => dashes("not measured"),
        (None, Some(effect)) => {
            let WhatIfEffect { value, change, low, high, verdict, .. } = *effect;
            let difference = |change: f64| effect.difference(change);
            vec![metric.show(value), difference(change), difference(low), difference(high), verdict.name().to_owned()]
        }
    }
}
