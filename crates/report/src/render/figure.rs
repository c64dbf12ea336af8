//! A figure with its words and its table.

use super::{ranges, table};
use crate::documentation;
use crate::model::{Body, Figure};
use crate::names::escaped;
use crate::words;
use std::fmt::Write as _;

/// One figure; what is drawn by the script goes to `charts`.
pub(super) fn figure(figure: &Figure, id: &str, charts: &mut Vec<serde_json::Value>) -> String {
    let id = escaped(id);
    let mut out = format!("<figure id=\"{id}\">\n<h3>{}</h3>\n", words::html(&figure.title));
    if !figure.meaning.is_empty() || figure.doc.is_some() {
        let doc = figure.doc.map_or(String::new(), documentation::link);
        let _ = writeln!(out, "<figcaption>{}{doc}</figcaption>", words::html(&figure.meaning));
    }
    let mut drawn = |kind: &str, data: serde_json::Value| {
        charts.push(serde_json::json!({ "id": id, "kind": kind, "data": data }));
        let label = escaped(&words::plain(&figure.title));
        format!(
            "<div class=\"plot\" data-plot=\"{id}\" role=\"img\" aria-label=\"{label}; the table below has its numbers\" tabindex=\"0\"></div>\n"
        )
    };
    match &figure.body {
        Body::Chart(chart) => {
            out += &drawn("chart", serde_json::to_value(chart).unwrap_or_default());
            out += &details(&table::of_chart(chart));
        }
        Body::Heat(heat) => {
            out += &drawn("heat", serde_json::to_value(heat).unwrap_or_default());
            out += &details(&table::of_heat(heat));
        }
        Body::Ranges(ranges) => {
            out += &ranges::svg(ranges, &words::plain(&figure.title));
            out += &details(&ranges::table(ranges));
        }
        Body::Table(table) => out += &table::html(table, &words::plain(&figure.title)),
    }
    out + "</figure>\n"
}

/// The table of what is drawn.
fn details(table: &crate::model::Table) -> String {
    format!("<details><summary>The numbers as a table</summary>\n{}</details>\n", table::html(table, ""))
}
